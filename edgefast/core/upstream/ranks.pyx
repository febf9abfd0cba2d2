# Counts that go up and down by one, and who has most: each step costs the same among few and many.
#
# In: steps. Out: one of those with the highest count, of equals the one that has been there longest. Who has none is not held.

cdef class Ranks:
    def __cinit__(self):
        self.floors = {}

    cdef Ranked first(self):
        """None: nobody has any."""
        return next(iter(self.floors[self.top])) if self.top else None

    cdef int up(self, Ranked one) except -1:
        self.move(one, one.count + 1)
        if one.count > self.top:
            self.top = one.count
        return 0

    cdef int down(self, Ranked one) except -1:
        cdef uint32_t count = one.count
        self.move(one, count - 1)
        if count == self.top and count not in self.floors:
            self.top = one.count  # it has just come there, and nobody else was above
        return 0

    cdef int move(self, Ranked one, uint32_t count) except -1:
        floor = self.floors.get(one.count)
        if floor is not None:
            del floor[one]
            if not floor:
                del self.floors[one.count]
        one.count = count
        if count:
            floor = self.floors.get(count)
            if floor is None:
                floor = self.floors[count] = OrderedDict()
            floor[one] = None
        return 0
