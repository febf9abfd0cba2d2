# Breaker: the limits of a rule's requests at a cluster, together with all others.

cdef class Breaker:
    cdef:
        int64_t connections, pending, requests, retries     # at most, of all workers; -1: nobody says
        int64_t each                        # connections of one endpoint
        uint64_t reuses                     # requests that a connection carries; 0: any number
        uint64_t numerator, denominator     # repeats, of all that are on their way or wait; 0 of 0: nobody says
        uint32_t least                      # ... and so many at least

    cdef int admit(self, Pool pool, UpstreamUser user) noexcept
    cdef void settle(self, Pool pool, UpstreamUser user) noexcept
    cdef uint32_t pending_here(self, Pool pool, uint32_t most) noexcept
    cdef bint bounds(self) noexcept
    cdef bint bounds_connections(self) noexcept
    cdef bint repeat(self, Pool pool) noexcept
    cdef bint reserve(self, Pool pool) noexcept

cdef bint has_room(Pool pool, UpstreamUser user) noexcept

cdef bint may_connect(Pool pool, UpstreamUser user, Endpoint endpoint) noexcept

cdef bint may_replace(Pool pool, Endpoint endpoint) noexcept
