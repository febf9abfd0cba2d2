# Places of connections: the limit of a port, and how many each client has.

cdef class ConnectionShare(ClientShare):    # members: Connection
    cdef:
        bint busy               # also connections with a request that waits for its client
