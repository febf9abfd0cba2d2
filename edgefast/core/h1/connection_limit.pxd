# Connection limit: the maximum of a port, and the connections of each client.

cdef class ConnectionShare(ClientShare):    # members: Connection
    cdef:
        bint busy               # also connections with a request that waits for its client
