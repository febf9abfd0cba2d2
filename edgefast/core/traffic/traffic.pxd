# Traffic: the effective traffic policies of one rule, or of one of its backends (ir.BackendPolicy). Of the latter only
# `apply_backend_policy` and `choose` are used.

cdef class Traffic:
    cdef:
        Engine engine
        list policies           # of Policy: overrides, then defaults
        int ceilings            # how many of them are overrides
        bint calls              # of gRPC: they may last where nobody says otherwise
        int64_t own_timeout     # ms; the route's timeouts.request; -1 unset
        int64_t default_timeout # ms; of the listener, for the line
        uint64_t epoch          # of Tables, what follows was made of
        Policy closed           # the unit that is broken or not here; None: all are well
        int64_t body_size       # bytes; -1 not said, 0 without end
        int64_t request_timeout # ms; as Rule.request_timeout
        int64_t idle_timeout    # ms; -1 not said
        int64_t send_timeout    # ms; 0 none
        int64_t connect_timeout # ms; 0: of the port
        int64_t retry_timeout   # ms; 0 none
        bytes timeout_line
        Fault fault             # None: none
        Overrides overrides     # None: none
        Compression compression # None: none
        Bandwidth bandwidth     # None: none
        Balance balance         # of endpoints; BY_KEY: as `hash` says it, where a request has a key
        HashPolicy hash         # None: none
        object own_session      # ir.SessionPersistence of the rule itself; None: it says nothing
        tuple named             # the rule: its route, and its name or place there
        SessionPolicy session   # None: none
        bint session_bound      # an Override says it: before what a backend says of its clients
        Outlier outlier         # None: as where there is no policy
        Breaker breaker         # None: none
        ZoneRule zones          # None: as a backend's Service says
        int64_t slow            # ms of a slow start; 0: none
        EndpointCheck check             # None: none
        uint32_t panic          # 0: never
        RetryWindow window      # None: none

    cdef bint inject_fault(self, Exchange ex, Routed *at, const ef_request *request) except -1
    cdef object first(self, str leaf)
    cdef int64_t settle(self, str leaf, int64_t own) except? -2
    cdef int64_t least(self, str leaf) except? -2
    cdef Breaker learn_breaker(self)
    cdef SessionPolicy learn_session(self)
    cdef int learn(self) except -1
    cdef bint refresh(self) except -1
    cdef Endpoint choose_endpoint(self, Cluster cluster, uint64_t tried, const uint8_t *host)
    cdef bint apply(self, Exchange ex) except -1
    cdef bint apply_backend_policy(self, Exchange ex) except -1
    cdef int choose(self, Exchange ex, const uint8_t *base, const ef_head *head, const uint8_t *query, size_t query_len) except -1
    cdef int read(self, Exchange ex, const uint8_t *base, const ef_head *head, const uint8_t *query, size_t query_len) except -1
    cdef int let_wait(self, Exchange ex) noexcept
