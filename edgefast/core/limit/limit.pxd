# Limit: the rate limits of a rule, and their result for a request.

# ir.RateLimit, ready to use.
cdef class Limit:
    cdef:
        bytes counter           # the key without distinct values
        uint32_t requests, unit
        uint64_t interval       # of a token bucket: time of one token in 2^-32 s
        uint32_t burst          # of a token bucket: its size; else 0
        bint parallel           # counts requests in progress
        int status              # of a refusal
        bint sliding, shadow
        list headers            # (name, exact value or None, compiled RE2 or None)
        list distinct_headers   # names
        bint distinct_source
        InetRange *ranges
        InetRange *excepts
        int n_ranges, n_excepts
        ef_stat_row *row
        int64_t crowded         # ms of Wheel.now; until then it is known that there is no room for further values
        str route
        readonly str name
        bytes log               # b'"default/shop#0"'

    cdef void count(self, bint over) noexcept
    cdef bytes key_of(self, Exchange ex, const ef_request *request)


# A request in progress that a limit counts.
cdef class HeldRequest:
    cdef ef_held held


# What the limits of its rule say about one request.
cdef class LimitDecision:
    cdef:
        int left                # checks that the store has not answered
        bint over               # the status of its limit
        bint failed             # the store failed and the policy is to refuse: 500
        bint passed_blind       # the store failed and the policy is to let through
        Limit limit             # the one that decides, or is nearest to its end
        uint32_t remaining
        int64_t reset_ms
        uint64_t window
        list held               # HeldRequest, of limits of requests in progress; None: none
        int held_status         # the proxy's own answer that waits for the verdict; 0: the request goes on to a backend
        bytes held_lines
        uint32_t held_flag

    cdef void take(self, Limit limit, bint over, uint32_t remaining, int64_t reset_ms, uint64_t window)
    cdef bytes lines(self, HttpSettings settings)
