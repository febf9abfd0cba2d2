# Connection limit: the maximum of a port, and the connections of each client.

cdef class ConnectionShare(ClientShare):    # members: Connection
    cdef:
        bint busy               # also connections with a request that waits for its client

cdef int change_client(Peer peer, Connection connection) except -1

cdef bytes client_key_of(HttpSettings settings, bytes address)

cdef int release_slot(Peer peer, Connection connection) except -1

cdef Py_ssize_t slots_left(Engine engine, PortTable port, const uint8_t *host, Py_ssize_t opening) except -1
