# Memory budget: the shared memory and streams of a worker's HTTP/2 clients, for requests and unread answers.

cdef class H2ClientUsage(ClientEntry):  # members: H2Server, its connections
    cdef:
        size_t held         # bytes of memory, of all of them
        size_t late         # of these, in streams that are behind the rate, as of the last look
        size_t fresh        # ... and in those that are not, and whose client has taken nothing to speak of
        uint32_t streams    # open

    cdef int look(self, int64_t now) except -1
    cdef tuple rank(self)
    cdef H2Server first_to_give(self)


cdef class H2Clients(ClientShare):
    pass


cdef class H2MemoryBudget:
    cdef:
        H2Clients clients   # H2Servers by address; a proxy that speaks for others: each connection by itself
        size_t held
        uint32_t streams

    cdef int join(self, H2Server session) except -1
    cdef void count(self, int streams) noexcept
    cdef void hold(self, H2Server session, size_t held) noexcept
    cdef int leave(self, H2Server session) except -1
    cdef bint has_stream(self, H2ClientUsage holder) noexcept
    cdef bint is_crowded(self, H2ClientUsage holder) noexcept
    cdef bint refuses(self, H2Server session) noexcept
    cdef int make_room(self, int64_t now) except -1
