# Preamble: peers that are trusted to set the client address.

cdef class PreambleSenders:
    cdef:
        InetRange *ranges
        int n

    cdef bint has(self, const NetAddress *peer) noexcept
    cdef bint has_peer(self, Connection connection) except -1
