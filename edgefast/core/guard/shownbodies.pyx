# Memory of a worker that is lent to bodies which authorisation services are shown, past what every request may hold (REPLAY_LIMIT).
#
# In: bodies that would hold more of it, or hold none any more. Out: whether they may. It is apart from what bodies have that were let in
# (exchange/gathered.pyx): strangers send as much as they like, and are not to take that from anybody. Among those that nobody has judged
# each client address has its part: when there is too little, the last body of the one that holds most gives way, if that one still holds
# more than the one that asks would. Must never lend more than SHOWN_PIECES.

cdef class ShownOwner(Ranked):
    def __cinit__(self):
        self.bodies = OrderedDict()


cdef class ShownBodies:
    def __cinit__(self):
        self.owners = {}
        self.richest = Ranks.__new__(Ranks)

    cdef bint lend(self, Admittance asker, size_t more) except -1:
        """This body may hold so many bytes more."""
        cdef Exchange ex = asker.ex
        cdef bytes address = ex.origin()
        cdef uint32_t i, needed = <uint32_t>((more + SHOWN_PIECE - 1) // SHOWN_PIECE)
        cdef ShownOwner owner = self.owners.get(address)
        while self.pieces + needed > SHOWN_PIECES:
            if not self.make_room(owner, needed):
                ex.engine.count(G_BODIES_NOT_GATHERED)
                return False
            owner = self.owners.get(address)
        if owner is None:
            owner = self.owners[address] = ShownOwner.__new__(ShownOwner)
            owner.address = address
        owner.bodies[asker] = None
        asker.owner = owner
        for i in range(needed):
            self.richest.up(owner)
        self.pieces += needed
        ex.borrowed += needed * <size_t>SHOWN_PIECE
        return True

    cdef bint make_room(self, ShownOwner owner, uint32_t needed) except -1:
        """Somebody has given way to this one (None: it has nothing); False: nobody holds so much more."""
        cdef ShownOwner rich = <ShownOwner>self.richest.first()
        cdef Admittance last
        cdef Exchange ex
        if rich is None or rich is owner or rich.count <= needed + (owner.count if owner is not None else 0):
            return False
        last = next(reversed(rich.bodies))
        ex = last.ex
        ex.engine.count(G_BODIES_NOT_GATHERED)
        if not ex.body_done:
            ex.down.refuse_more()
        ex.fail(503, F_OVERFLOW)
        return True

    cdef int give_back(self, Admittance asker) except -1:
        """It is judged, or has ended."""
        cdef Exchange ex = asker.ex
        cdef ShownOwner owner = asker.owner
        cdef uint32_t i, lent = <uint32_t>(ex.borrowed // SHOWN_PIECE)
        asker.owner = None
        ex.borrowed = 0
        self.pieces -= lent
        for i in range(lent):
            self.richest.down(owner)
        del owner.bodies[asker]
        if not owner.bodies:
            del self.owners[owner.address]
        return 0
