# Upstream user: the user of an upstream connection: an exchange or a mirrored request.

# What can go wrong before a connection is ready (UpstreamUser.on_up_failed).
cdef enum UpFailure:
    UP_NO_ENDPOINT = 1
    UP_OVERFLOW = 2
    UP_CONNECT = 3
    UP_CONNECT_TIMEOUT = 4
    UP_TLS = 5          # TLS failed before the handshake began
    UP_PROTOCOL = 6     # it does not speak what it has to
    UP_REQUESTS = 7     # of a breaker: as many requests as may be are on their way
    UP_SHUT = 8         # of a breaker: there may be no connection at all
    UP_STARVED = 10     # of an interval: too many requests were repeats
    UP_STREAMS = 11     # no place for another long-lived stream
    UP_TLS_BY = 12      # + enum ef_tls_backend_failure
    UP_OTHERWISE = 9    # of who only wants to know how an endpoint is: not in this way; it may ask anew


# References come first, then plain fields (freelist.pyx).
cdef class UpstreamUser(Timer):
    cdef:
        # references
        Engine engine
        HttpSettings settings
        Outbound up
        Endpoint endpoint   # chosen last; while its try is in progress its load counts us
        list tried_past     # those whose index is beyond `tried`; None: none was
        Endpoint bound      # the one that its session names, for its first try; None: none does
        Outlier outlier     # which failures are too many; None: no policy says
        Breaker breaker     # how much of a cluster there may be; None: no policy says
        RetryWindow window  # how many repeats there may be in an interval; None: no policy says
        ZoneRule zones      # whose endpoints come first; None: no policy says
        EndpointCheck check # by which endpoints may be out; None: by none
        FairQueue waits_in  # None: it waits for its own connect, or not at all
        BodyShare place     # the share it has a place in; None: none
        # plain fields
        uint64_t tried      # endpoints that were tried, by index ...
        uint32_t tried_at   # ... in this version of their cluster
        uint32_t ticket     # number of the try: a late connection finds out that nobody waits
        uint64_t hash_key   # of BY_KEY (policy/hashpolicy.pyx)
        Balance balance     # by what it gets its endpoint
        uint32_t panic      # percent of endpoints; fewer that are not out, and all are used
        int64_t slow_start  # ms in which a new endpoint comes to its share; 0: at once
        int64_t connect_timeout # ms of a connection that is made for it; 0: of `settings`
        int64_t waits_since # ms; since then it waits for a connection; 0: it does not, or has one
        bint chosen         # for this try; False: `endpoint` is an earlier one's, if there is any
        bint grpc           # a gRPC call: its request ends with a DATA frame, and own answers are gRPC's (grpc.pyx)
        bint probing        # it only wants to know how its endpoint is (probe.pyx)
        bint counted        # as a try of a cluster's, before it has an endpoint
        bint waiting
        bint wants_tunnel       # asks for a tunnel: not every connection can have one
        bint streams        # asks for a connection before its request is complete
        int64_t progress_until  # ms; the body that has come is enough until then (bodyRate)
        int64_t held_at         # ms; since then its client is what is waited for
        uint64_t brought        # bytes of its body that have come since
        int64_t trusted_until   # ms; ... even where others come faster

    cdef int on_up_ready(self, Outbound up) except -1
    cdef int on_up_failed(self, UpFailure why) except -1
    cdef int on_response_info(self, const uint8_t *base, ef_head *head) except -1
    cdef int on_response_head(self, const uint8_t *base, ef_head *head) except -1
    cdef int on_response_body(self, const uint8_t *data, size_t n) except -1
    cdef int on_response_trailers(self, const uint8_t *lines, size_t n) except -1
    cdef int on_response_end(self) except -1
    cdef int on_response_flush(self) except -1
    cdef int on_up_lost(self, int why) except -1
    cdef int on_up_writable(self, bint writable) except -1
    cdef bint takes_bulk(self) noexcept
    cdef int stop_waiting(self) except -1
    cdef uint64_t tried_of(self, Cluster cluster) noexcept
    cdef int note_tried(self) except -1
    cdef bint has_untried(self, Cluster cluster) noexcept
    cdef bytes origin(self)
    cdef bint keeps_waiting(self) noexcept
    cdef bint comes(self) noexcept
    cdef int share_left(self) except -1
    cdef void set_out(self) noexcept
    cdef int evict(self) except -1
    cdef int64_t slow_rate(self)
    cdef int yield_connection(self) except -1
    cdef void progress(self, size_t n) noexcept
    cdef int complete(self) except -1
