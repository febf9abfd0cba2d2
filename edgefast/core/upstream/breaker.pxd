# How much of a cluster the requests of a rule may have, together with all others.

cdef class Breaker:
    cdef int64_t connections, pending, requests, retries    # at most, of all workers; -1: nobody says

    cdef bint admit(self, Pool pool, UpstreamUser user) noexcept
    cdef void settle(self, Pool pool, UpstreamUser user) noexcept
    cdef uint32_t pending_here(self, Pool pool, uint32_t most) noexcept
    cdef bint reserve(self, Pool pool) noexcept
