# Answer share: connections of a cluster that slowly read answers hold.

cdef class AnswerShare(Timer):
    cdef:
        Engine engine
        Cluster cluster
        set holders         # Exchange whose answer waits for its client
        object late         # deque of (reads_until, Exchange), as of the last look; the furthest behind first
        object fresh        # the same of those held since, while others wait for connections
        int64_t look_at     # ms; the next look
        uint32_t leaving    # connections that were cut and are not given back yet
        bint watching       # others wait, or did a moment ago
        bint serving

    cdef uint32_t limit(self, HttpSettings settings) noexcept
    cdef int hold(self, Exchange user) except -1
    cdef int leave(self, Exchange user) except -1
    cdef int make_room(self) except -1
    cdef Exchange next_one(self)
    cdef int credit(self, Exchange user) except -1
    cdef int look(self) except -1
    cdef void connection_lost(self) noexcept
    cdef int end_unused(self) except -1
