# Places of connections: how many a port may have, and whose they are.

cdef class ConnectionShare(ClientShare):    # members: Connection
    cdef:
        bint busy               # also those with a request whose client is waited for
