# Who gives way when a UDP listener has all the sessions that it may have: whichever of its addresses and ports they came to.
#
# In: sessions as they begin, become conversations and end. Out: the one that ends for another one's sake. Those that are no conversations
# come first, as anybody can begin them in anybody's name: those of an address that has a large part of them, else the oldest; but a share of the
# places is theirs, so that they can become some. Conversations give way to an address that has fewer sessions alone, those of the address that has most, first who has been silent
# for longest: so one address may have all places, and has them while nobody else asks. Each step costs the same among few and many.

cdef class DatagramRoom:
    def __cinit__(self):
        self.order = OrderedDict()
        self.fresh = ClientShare.__new__(ClientShare)
        self.proven = ClientShare.__new__(ClientShare)

    cdef DatagramSession first(self, bytes client, uint32_t places):
        """The session that gives way to one of this address, of so many places; None: there is none."""
        cdef ClientPart most = <ClientPart>self.proven.ranks.first(), crowd = <ClientPart>self.fresh.ranks.first()
        cdef uint32_t held = self.proven.held(client) + self.fresh.held(client)
        if most is not None and self.fresh.count * UNPROVEN_SHARE < places and most.count > held + 1:  # it would have as many still
            return next(iter(most.members))
        if crowd is not None and crowd.count * UNPROVEN_SHARE > self.fresh.count and not (<DatagramSession>next(iter(self.order))).left:
            return next(iter(crowd.members))
        return next(iter(self.order)) if self.order else None

    cdef int enter(self, DatagramSession session) except -1:
        self.order[session] = None
        return self.fresh.enter(session.client_key, session)

    cdef int prove(self, DatagramSession session) except -1:
        """It is a conversation from here on."""
        del self.order[session]
        self.fresh.leave(session)
        return self.proven.enter(session.client_key, session)

    cdef int speak(self, DatagramSession session) except -1:
        """The client of a conversation has spoken."""
        (<ClientPart>self.proven.owners[session]).members.move_to_end(session)
        return 0

    cdef int give_up(self, DatagramSession session) except -1:
        """Its client has another one: it is the first to give way."""
        if self.proven.leave(session):
            self.fresh.enter(session.client_key, session)
        self.order[session] = None
        self.order.move_to_end(session, False)
        return 0

    cdef int leave(self, DatagramSession session) except -1:
        """It is over."""
        self.order.pop(session, None)
        self.fresh.leave(session)
        self.proven.leave(session)
        return 0
