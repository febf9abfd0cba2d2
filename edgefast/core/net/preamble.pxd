# Who may say who a client is.

cdef class PreambleSenders:
    cdef:
        InetRange *ranges
        int n

    cdef bint has(self, const NetAddress *peer) noexcept
    cdef bint has_peer(self, Connection connection) except -1
