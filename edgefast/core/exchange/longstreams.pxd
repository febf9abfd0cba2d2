# Long-lived streams of a port, or of a cluster.

cdef class LongStreams(ClientShare):    # members: Exchange
    pass
