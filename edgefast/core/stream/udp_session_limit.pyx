# UDP session limit: the session to evict when a UDP listener has its maximum of sessions, over all its addresses and ports.
#
# In: sessions as they begin, become conversations and end. Out: the session to evict for another one. Sessions that are not conversations
# end first, because any sender can begin them with a spoofed address. Of these, sessions of an address with a large part of them come
# first, else the oldest. A share of the places is reserved for them, so that they can become conversations. A conversation ends only for an
# address with fewer sessions: the longest idle one of the address with most sessions. One address may therefore have all places while no
# other address needs one. Each step takes constant time.

cdef class UdpSessionLimit:
    def __cinit__(self):
        self.order = OrderedDict()
        self.fresh = ClientShare.__new__(ClientShare)
        self.proven = ClientShare.__new__(ClientShare)

    cdef DatagramSession first(self, bytes client, uint32_t places):
        """The session to end for one of this address, with `places` places; None: no session may end."""
        cdef ClientEntry most = self.proven.most(), joined_share = self.fresh.most()
        cdef uint32_t held = self.proven.held(client) + self.fresh.held(client)
        if most is not None and self.fresh.count * UNPROVEN_SHARE < places and most.count > held + 1:  # it keeps at least as many
            return next(iter(most.members))
        if joined_share is not None and joined_share.count * UNPROVEN_SHARE > self.fresh.count and not (<DatagramSession>next(iter(self.order))).left:
            return next(iter(joined_share.members))
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
        (<ClientEntry>self.proven.owners[session]).members.move_to_end(session)
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
