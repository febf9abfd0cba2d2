# Who gives way when a UDP listener has all the sessions that it may have: whichever of its addresses and ports they came to.
#
# In: sessions as they begin, become conversations and end. Out: the one that ends for another one's sake. Those that are no conversations
# come first, as anybody can begin them in anybody's name, the oldest first; but a share of the places is theirs, so that they can become
# some. Conversations give way to an address that has fewer sessions alone, those of the address that has most, first who has been silent
# for longest: so one address may have all places, and has them while nobody else asks. Each step costs the same among few and many.

cdef class DatagramSeats(Ranked):
    def __cinit__(self):
        self.fresh = OrderedDict()
        self.proven = OrderedDict()


cdef class DatagramRoom:
    def __cinit__(self):
        self.fresh = OrderedDict()
        self.addresses = {}
        self.ranks = Ranks()

    cdef DatagramSession first(self, bytes client, uint32_t places):
        """Who gives way to a session of this address, of so many places; None: nobody."""
        cdef DatagramSeats seats = self.addresses.get(client), most = self.ranks.first()
        cdef Py_ssize_t held = seats.count + len(seats.fresh) if seats is not None else 0
        if most is not None and len(self.fresh) * UNPROVEN_SHARE < places and most.count > held + 1:  # it would have as many still
            return next(iter(most.proven))
        return next(iter(self.fresh)) if self.fresh else None

    cdef int enter(self, DatagramSession session) except -1:
        cdef DatagramSeats seats = self.addresses.get(session.client_key)
        if seats is None:
            seats = self.addresses[session.client_key] = DatagramSeats.__new__(DatagramSeats)
        seats.fresh[session] = None
        self.fresh[session] = None
        return 0

    cdef int prove(self, DatagramSession session) except -1:
        """It is a conversation from here on."""
        cdef DatagramSeats seats = self.addresses[session.client_key]
        del self.fresh[session]
        del seats.fresh[session]
        seats.proven[session] = None
        return self.ranks.up(seats)

    cdef int speak(self, DatagramSession session) except -1:
        """The client of a conversation has spoken."""
        (<DatagramSeats>self.addresses[session.client_key]).proven.move_to_end(session)
        return 0

    cdef int give_up(self, DatagramSession session) except -1:
        """Its client has another one: it is the first to give way."""
        cdef DatagramSeats seats = self.addresses[session.client_key]
        if session in seats.proven:
            del seats.proven[session]
            self.ranks.down(seats)
        seats.fresh[session] = self.fresh[session] = None
        seats.fresh.move_to_end(session, False)
        self.fresh.move_to_end(session, False)
        return 0

    cdef int leave(self, DatagramSession session) except -1:
        """It is over."""
        cdef DatagramSeats seats = self.addresses.get(session.client_key)
        if seats is None:
            return 0
        self.fresh.pop(session, None)
        seats.fresh.pop(session, None)
        if session in seats.proven:
            del seats.proven[session]
            self.ranks.down(seats)
        if not seats.fresh and not seats.proven:
            del self.addresses[session.client_key]
        return 0
