# Long-lived streams of a port, or of a cluster.

cdef class LongStreams(ClientShare):    # members: Exchange
    cdef bint cutting       # for waiting requests: only answers that wait for their client, or pause, may be ended

    cdef object first_to_cut(self, uint32_t least, int64_t now)
    cdef object first_of_crowd(self, uint32_t least, int64_t now)
