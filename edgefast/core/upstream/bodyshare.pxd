# Connections of a cluster that are held for request bodies still to come.

cdef enum Entry:
    SHARE_ENTERED = 1   # has a place
    SHARE_WAITS = 2     # stands in the queue
    SHARE_FULL = 3      # and so is the queue


cdef class BodyShare:
    cdef:
        Engine engine
        Cluster cluster
        set holders         # UpstreamUser that have a place
        object waiting      # deque of (UpstreamUser, ticket)
        int64_t look_at     # ms; before then nobody can be found who has to give way
        bint serving

    cdef uint32_t limit(self, HttpSettings settings) noexcept
    cdef bint crowded(self, HttpSettings settings) noexcept
    cdef bint has_room(self, HttpSettings settings) except -1
    cdef bint try_enter(self, UpstreamUser user) except -1
    cdef Entry enter(self, UpstreamUser user) except <Entry>-1
    cdef int leave(self, UpstreamUser user) except -1
    cdef int serve(self) except -1
    cdef bint evict(self) except -1
    cdef int hold(self, UpstreamUser user) except -1
