# Which of many has most.

cdef class Ranked:
    cdef uint32_t count     # goes up and down by one (Ranks.up, Ranks.down)


cdef class Ranks:
    cdef:
        dict floors         # count -> OrderedDict Ranked -> None: those that have so many; none is empty
        uint32_t top        # the highest of them; 0: there is nobody

    cdef Ranked first(self)
    cdef int up(self, Ranked one) except -1
    cdef int down(self, Ranked one) except -1
    cdef int move(self, Ranked one, uint32_t count) except -1
