# The connections of a cluster.

cdef class Pool:
    cdef:
        Engine engine
        list endpoints
        ef_endpoint_load *load  # of each endpoint
        uint32_t size           # how many
        uint32_t connections
        Turns pending       # who waits for a connection
        uint32_t max_connections, max_pending   # of the spec
        BodyShare bodies    # None while no body is on its way
        AnswerShare answers # None while no client is slower than its backend

    cdef Endpoint pick(self, uint64_t tried)
    cdef bint resolving(self)
    cdef int acquire(self, UpstreamUser user, uint64_t tried) except -1
    cdef int dial(self, UpstreamUser user, Endpoint endpoint) except -1
    cdef int on_dialed(self, UpstreamUser user, uint32_t ticket, Outbound up) except -1
    cdef int on_dial_failed(self, UpstreamUser user, uint32_t ticket, Endpoint endpoint, UpFailure why) except -1
    cdef Outbound checkout(self, Endpoint endpoint)
    cdef Outbound any_idle(self)
    cdef int release(self, Outbound up) except -1
    cdef int lost(self, Outbound up) except -1
    cdef void done(self, Endpoint endpoint) noexcept
    cdef BodyShare share(self)
    cdef AnswerShare slow_answers(self)
    cdef int wait(self, UpstreamUser user) except -1
    cdef UpstreamUser next_pending(self)
    cdef int serve_pending(self) except -1
