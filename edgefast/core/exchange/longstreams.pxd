# Long-lived streams of a port, or of a cluster.

cdef class LongStreams(ClientShare):    # members: Exchange
    cdef bint cutting       # for requests that wait: of answers, only those that wait for their client, or pause

    cdef object first_to_cut(self, uint32_t least, int64_t now)
