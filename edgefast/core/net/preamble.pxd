# Preamble: peers that are trusted to set the client address.

cdef enum:
    PREAMBLE_MORE = 0
    PREAMBLE_BAD = -1
    PREAMBLE_ABSENT = -2


cdef class PreambleSenders:
    cdef:
        InetRange *ranges
        int n

    cdef bint has(self, const NetAddress *peer) noexcept
    cdef bint has_peer(self, Connection connection) except -1

cdef bint is_preamble_refused(object length, int mode, bint trusted) except -1

cdef tuple parse_preamble(bytes data)

cdef bytes V2_SIGNATURE
