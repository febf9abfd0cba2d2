# Eviction heap: users by the time until which their received bytes suffice.

cdef class EvictionHeap:
    cdef:
        list heap           # (ms, number, UpstreamUser): the user is not behind before; it may be later than that by now
        uint64_t number     # of entries so far: users have no order
        bint trusted        # by trusted_until; else by progress_until

    cdef int add(self, UpstreamUser user, size_t holders) except -1
    cdef UpstreamUser first(self, int64_t by, int64_t now)
    cdef int64_t until(self, UpstreamUser user) noexcept
