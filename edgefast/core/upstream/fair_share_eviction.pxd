# Fair share eviction: evicts slow exchanges of a client with a large part of a cluster's connections while other clients wait.

cdef class FairShareEviction(Timer):
    cdef:
        Engine engine
        Cluster cluster

    cdef int make_room(self) except -1
    cdef ClientShare find_slow(self)
    cdef uint32_t count_others(self, ClientShare slow)
