# Limit: rate limits of rules: conditions, counter keys, results (spec 8; docs/guides/rate-limits.md).
#
# In: ir.RateLimit, requests that matched its rule.
# Out: the key of the request's counter, or None; and the combined result of all limits. Nothing here waits or calls a store.

cdef int add_part(Out *key, const uint8_t *value, size_t length) except -1:
    """One length-prefixed part of a key: no value can be taken for another part, and long ones have a bound."""
    cdef bytes digest
    if length > LIMIT_PART:
        digest = b"#" + blake2b(value[:length], digest_size=20).hexdigest().encode()
        return add_part(key, <const uint8_t *>PyBytes_AS_STRING(digest), PyBytes_GET_SIZE(digest))
    out_reserve(key, length + 24)
    out_number(key, length)
    out_raw(key, <const char *>b":", 1)
    out_raw(key, value, length)
    return 0


cdef class Limit:
    def __init__(self, Engine engine, rule, spec):
        self.counter = spec.counter.encode()
        self.requests = spec.requests
        self.unit = spec.unit
        self.status = spec.status or 429
        self.parallel = spec.kind == "Parallel"
        if spec.kind == "Bucket":
            self.burst = spec.burst
            self.interval = (spec.unit << 32) // max(spec.requests, 1)
        self.sliding = spec.sliding
        self.shadow = spec.shadow
        self.headers = [
            (one.name.encode(), None if one.regex else one.value.encode(), engine.tables.byte_regex(one.value.encode()) if one.regex else None)
            for one in spec.headers
        ]
        self.distinct_headers = [name.encode() for name in spec.distinct_headers]
        self.distinct_source = spec.distinct_source
        self.n_ranges = <int>len(spec.sources)
        self.ranges = inet_ranges(spec.sources)
        self.n_excepts = <int>len(spec.excepts)
        self.excepts = inet_ranges(spec.excepts)
        self.name = spec.name
        self.route = rule.route
        self.log = json_encode(spec.name)
        label = f"limit\t{rule.route}\t{spec.name}".encode()
        self.row = ef_stat_hold(engine.stat, <const uint8_t *>PyBytes_AS_STRING(label), PyBytes_GET_SIZE(label))

    def __dealloc__(self):
        free(self.ranges)
        free(self.excepts)
        if self.row != NULL:
            ef_stat_release(self.row)

    cdef void count(self, bint over) noexcept:
        ef_stat_add(&self.row.cells[(L_SHADOW_OVER if self.shadow else L_OVER) if over else L_OK], 1)

    cdef bytes key_of(self, Exchange ex, const ef_request *request):
        """The counter of a request; None when it is not one that this limit counts."""
        cdef Engine engine = ex.engine
        cdef uint8_t address[INET_SIZE]
        cdef const uint8_t *value
        cdef size_t length
        cdef Out *key = &engine.counter_key
        cdef bytes name, exact
        cdef int i
        for name, exact, regex in self.headers:
            if ef_request_header(request, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), engine.scratch,
                                 engine.scratch_size, &value, &length) != 1:
                return None
            if exact is not None:
                if length != <size_t>PyBytes_GET_SIZE(exact) or memcmp(value, PyBytes_AS_STRING(exact), length) != 0:
                    return None
            elif not regex.fullmatch(value[:length]):
                return None
        if self.n_ranges or self.distinct_source or self.n_excepts:
            if not inet_read_bytes(ex.client, address):
                return None
            for i in range(self.n_ranges):
                if not inet_in(&self.ranges[i], address):
                    return None
            for i in range(self.n_excepts):
                if inet_in(&self.excepts[i], address):
                    return None
        if not self.distinct_headers and not self.distinct_source:
            return self.counter
        key.size = 0
        out_reserve(key, PyBytes_GET_SIZE(self.counter))
        out_bytes(key, self.counter)
        for name in self.distinct_headers:
            if ef_request_header(request, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), engine.scratch,
                                 engine.scratch_size, &value, &length) != 1:
                return None
            add_part(key, value, length)
        if self.distinct_source:
            name = inet_text(address)
            add_part(key, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
        return PyBytes_FromStringAndSize(<const char *>key.data, key.size)


cdef class HeldRequest:
    pass


cdef class LimitDecision:
    cdef void take(self, Limit limit, bint over, uint32_t remaining, int64_t reset_ms, uint64_t window):
        """One limit's answer. The one shown is the first that refuses, else the one with the fewest left."""
        limit.count(over)
        if limit.shadow:
            if self.limit is not None and not self.limit.shadow:
                return
            over = False
        elif self.over:
            return
        if over or self.limit is None or (self.limit.shadow and not limit.shadow) or remaining < self.remaining:
            self.limit = limit
            self.remaining = remaining
            self.reset_ms = reset_ms
            self.window = window
            self.over = over

    cdef bytes lines(self, HttpSettings settings):
        """Response lines (EdgeProxy rateLimit): draft-ietf-httpapi-ratelimit-headers-03 names; RFC 9110 10.2.3 retry-after."""
        cdef int64_t seconds
        cdef bytes lines = b""
        if self.limit is None or self.limit.shadow:
            return lines
        seconds = (self.reset_ms + 999) // 1000
        if settings.rate_limit_headers:
            lines = b"ratelimit-limit: %d\r\nratelimit-remaining: %d\r\nratelimit-reset: %d\r\n" % (
                self.limit.burst or self.limit.requests, 0 if self.over else self.remaining, seconds
            )
        if self.over and settings.retry_after:
            lines += b"retry-after: %d\r\n" % max(seconds, 1)
        return lines
