# Pool: the connections of a cluster.

# What is spoken on them (ir.Cluster.protocol).
cdef enum UpstreamProtocol:
    SPEAKS_H1 = 0
    SPEAKS_H2 = 1
    SPEAKS_ALPN = 2     # what TLS agrees on


cdef class Pool(Timer):
    cdef:
        Engine engine
        UpstreamProtocol protocol
        list endpoints
        ef_endpoint_load *load  # of each endpoint
        uint32_t size           # how many
        ZoneRanges runs           # of them, by zone; None: they are all of one
        HealthRecord record     # how it fares, and what of it all workers have
        uint32_t *own           # this worker's part (EF_SHARE_*): connections, users that wait, tries in progress, retries
        uint32_t retiring       # of these, that end because so many requests were cancelled on them (h2/backend_cancels.pyx)
        PoolQueue pending   # who waits for a connection
        bint serving        # it is being looked who of them may have one
        uint32_t max_connections, max_pending   # of the spec
        BodyShare bodies    # None while no body is on its way
        LongStreams streams # long-lived streams that hold a connection; None: no stream is open
        AnswerShare answers # None while no client is slower than its backend
        int64_t back_at     # ms; when the next endpoint that is out is back; 0: none is
        int64_t request_at   # ms; when it is looked for what other workers have (worker_rebalance.pyx); 0: nobody waits for that
        uint32_t tightest   # the least bound of connections that any breaker had; 0: none had one
        uint32_t tightest_each  # the same of one endpoint's
        uint32_t held_to    # how many this worker had when a breaker let it have no more; 0: none has, since somebody waits
        int32_t release_to    # the worker whose the next connection that is free is; -1: nobody's
        int64_t lent_until  # ms; until then none is made where others may have its place
        FairShareEviction fair_share_eviction   # None while nobody waits for one of max_connections

    cdef Endpoint pick(self, uint64_t tried, uint8_t health_mask, Balance balance, uint64_t key)
    cdef bint resolving(self)
    cdef int acquire(self, UpstreamUser user) except -1
    cdef int find(self, UpstreamUser user) except -1
    cdef int overflow(self, UpstreamUser user, int why) except -1
    cdef int give(self, UpstreamUser user, Outbound up) except -1
    cdef int dial(self, UpstreamUser user, Endpoint endpoint) except -1
    cdef int dial_more(self, UpstreamUser user, Endpoint endpoint) except -1
    cdef PoolDial make_dial(self, UpstreamUser user, Endpoint endpoint, bint alone)
    cdef int on_dialed(self, UpstreamUser user, uint32_t ticket, Outbound up) except -1
    cdef int on_dialed_by_many(self, PoolDial dial, Outbound up) except -1
    cdef int on_shared(self, PoolDial dial, MultiplexedSession session) except -1
    cdef int on_capacity(self, MultiplexedSession session) except -1
    cdef int ask_again(self, DialQueue turns) except -1
    cdef int on_dial_failed(self, PoolDial dial, UpFailure why) except -1
    cdef int lost_shared(self, MultiplexedSession session) except -1
    cdef int release(self, Outbound up) except -1
    cdef int lost(self, Outbound up) except -1
    cdef void begin(self, UpstreamUser user, Endpoint endpoint) noexcept
    cdef void keep_place(self, UpstreamUser user, Endpoint endpoint) noexcept
    cdef void count(self, Endpoint endpoint) noexcept
    cdef void done(self, Endpoint endpoint) noexcept
    cdef BodyShare share(self)
    cdef AnswerShare slow_answers(self)
    cdef int wait(self, UpstreamUser user) except -1
    cdef int look(self) except -1
    cdef int rearm(self) except -1
    cdef int share_out(self) except -1
    cdef int serve_pending(self) except -1

cdef int release_connections(Pool pool, uint32_t to) except -1
