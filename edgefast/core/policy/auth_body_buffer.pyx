# Auth body buffer: memory of a worker for bodies that authorization services receive, beyond the limit of each request (REPLAY_LIMIT).
#
# In: bodies that need more of it, or release theirs. Out: whether they may have it. It is separate from the memory of admitted bodies
# (exchange/body_buffer.pyx), so that unauthorized clients cannot exhaust that. Without enough memory, the last body of the client with most
# is evicted, if that client holds more than the requesting one then would. Requests without a client address count as one client.
# Must never lend more than AUTH_BODY_PIECES.

cdef class AuthBodyBuffer:
    def __cinit__(self):
        self.clients = ClientShare.__new__(ClientShare)
        self.clients.ranks_unknown = True

    cdef bint reserve(self, RuleAuthFlow flow, size_t more) except -1:
        """This body may hold so many bytes more."""
        cdef Exchange ex = flow.ex
        cdef bytes client = ex.origin()
        cdef uint32_t needed = <uint32_t>((more + AUTH_BODY_PIECE - 1) // AUTH_BODY_PIECE)
        while self.clients.count + needed > AUTH_BODY_PIECES:
            if not self.make_room(client, needed):
                ex.engine.count(G_BODIES_NOT_GATHERED)
                return False
        self.clients.grow(client, flow, needed)
        flow.lent = True
        ex.body.borrowed += needed * <size_t>AUTH_BODY_PIECE
        return True

    cdef bint make_room(self, bytes client, uint32_t needed) except -1:
        """Evict one body for this client; False: no client holds so much more."""
        cdef ClientEntry most = self.clients.client_to_evict(client, needed)
        cdef RuleAuthFlow last
        cdef Exchange ex
        if most is None:
            return False
        last = most.last()
        ex = last.ex
        ex.engine.count(G_BODIES_NOT_GATHERED)
        if not ex.body.done:
            ex.down.refuse_more()
        ex.fail(503, F_OVERFLOW)
        return True

    cdef int give_back(self, RuleAuthFlow flow) except -1:
        """It is judged, or has ended."""
        flow.lent = False
        flow.ex.body.borrowed = 0
        self.clients.leave(flow)
        return 0
