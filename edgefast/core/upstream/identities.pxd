# Identities: endpoints by their identity in sessions.

cdef class Identities:
    cdef:
        ef_map places           # identity -> place among endpoints, those that drain behind the others
        bint made

    cdef int find(self, uint64_t identity) noexcept

cdef uint64_t identity_of(Endpoint endpoint) except? 0

cdef Endpoint named_endpoint(Cluster cluster, uint64_t identity)

cdef bint takes_bound(Cluster cluster, Endpoint endpoint, uint8_t health_mask) except -1
