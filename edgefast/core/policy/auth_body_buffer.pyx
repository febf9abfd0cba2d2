# Auth body buffer: memory of a worker for bodies that authorization services receive, beyond the limit of each request (REPLAY_LIMIT).
#
# In: bodies that need more of it, or release theirs. Out: whether they may have it. It is separate from the memory of admitted bodies
# (exchange/body_buffer.pyx), so that unauthorized clients cannot exhaust that. Each client address has its part for requests without a
# decision. Without enough memory, the last body of the largest holder is evicted. That holder must still hold more than the requesting one
# would.
# Must never lend more than AUTH_BODY_PIECES.

cdef class AuthBodyOwner(HeapEntry):
    def __cinit__(self):
        self.bodies = OrderedDict()


cdef class AuthBodyBuffer:
    def __cinit__(self):
        self.owners = {}
        self.richest = Heap.__new__(Heap)

    cdef bint reserve(self, RuleAuthFlow flow, size_t more) except -1:
        """This body may hold so many bytes more."""
        cdef Exchange ex = flow.ex
        cdef bytes address = ex.origin()
        cdef uint32_t i, needed = <uint32_t>((more + AUTH_BODY_PIECE - 1) // AUTH_BODY_PIECE)
        cdef AuthBodyOwner owner = self.owners.get(address)
        while self.pieces + needed > AUTH_BODY_PIECES:
            if not self.make_room(owner, needed):
                ex.engine.count(G_BODIES_NOT_GATHERED)
                return False
            owner = self.owners.get(address)
        if owner is None:
            owner = self.owners[address] = AuthBodyOwner.__new__(AuthBodyOwner)
            owner.address = address
        owner.bodies[flow] = None
        flow.owner = owner
        for i in range(needed):
            self.richest.up(owner)
        self.pieces += needed
        ex.body.borrowed += needed * <size_t>AUTH_BODY_PIECE
        return True

    cdef bint make_room(self, AuthBodyOwner owner, uint32_t needed) except -1:
        """Somebody has given way to this one (None: it has nothing); False: nobody holds so much more."""
        cdef AuthBodyOwner rich = <AuthBodyOwner>self.richest.first()
        cdef RuleAuthFlow last
        cdef Exchange ex
        if rich is None or rich is owner or rich.count <= needed + (owner.count if owner is not None else 0):
            return False
        last = next(reversed(rich.bodies))
        ex = last.ex
        ex.engine.count(G_BODIES_NOT_GATHERED)
        if not ex.body.done:
            ex.down.refuse_more()
        ex.fail(503, F_OVERFLOW)
        return True

    cdef int give_back(self, RuleAuthFlow flow) except -1:
        """It is judged, or has ended."""
        cdef Exchange ex = flow.ex
        cdef AuthBodyOwner owner = flow.owner
        cdef uint32_t i, lent = <uint32_t>(ex.body.borrowed // AUTH_BODY_PIECE)
        flow.owner = None
        ex.body.borrowed = 0
        self.pieces -= lent
        for i in range(lent):
            self.richest.down(owner)
        del owner.bodies[flow]
        if not owner.bodies:
            del self.owners[owner.address]
        return 0
