# One client whose slow exchanges hold a large part of a cluster's connections while others wait for one.

cdef class FairShareEviction(Timer):
    cdef:
        Engine engine
        Cluster cluster

    cdef int make_room(self) except -1
    cdef dict find_slow(self)
    cdef uint32_t count_others(self, dict slow, bytes most)
