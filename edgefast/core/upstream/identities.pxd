# Identities: endpoints by their identity in sessions.

cdef class Identities:
    cdef:
        ef_map places           # identity -> place among endpoints, those that drain behind the others
        bint made

    cdef int find(self, uint64_t identity) noexcept
