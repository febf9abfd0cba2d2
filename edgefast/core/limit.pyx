# Rate limits as rules have them: conditions, counter keys, verdicts (spec 8; docs/rate-limits.md).
#
# In: ir.RateLimit, requests that matched its rule. Out: the key of the counter that a request is counted in, or None; and what all
# limits together say. Nothing here waits or asks a store.

cdef bint parse_address(const char *text, uint8_t *out) noexcept:
    """Text to 16 bytes, IPv4 mapped into IPv6."""
    if inet_pton(AF_INET, text, out + 12) == 1:
        memset(out, 0, 10)
        out[10] = out[11] = 255
        return True
    return inet_pton(AF_INET6, text, out) == 1


cdef bytes render_address(const uint8_t *address):
    """One spelling for each address: a counter must not depend on how a proxy wrote it."""
    cdef char text[64]
    if is_v4(address):
        inet_ntop(AF_INET, address + 12, text, sizeof(text))
    else:
        inet_ntop(AF_INET6, address, text, sizeof(text))
    return <bytes>text


cdef bint is_v4(const uint8_t *address) noexcept:
    cdef int i
    for i in range(10):
        if address[i]:
            return False
    return address[10] == 255 and address[11] == 255


cdef bint in_range(const Range *range_, const uint8_t *address) noexcept:
    cdef int whole = range_.bits // 8, rest = range_.bits % 8
    if range_.v4 != is_v4(address):
        return False
    if memcmp(range_.address, address, whole) != 0:
        return False
    return rest == 0 or (range_.address[whole] ^ address[whole]) >> (8 - rest) == 0


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
        cdef int i
        self.counter = spec.counter.encode()
        self.requests = spec.requests
        self.unit = spec.unit
        self.sliding = spec.sliding
        self.shadow = spec.shadow
        self.headers = [
            (one.name.encode(), None if one.regex else one.value.encode(), engine.tables.byte_regex(one.value.encode()) if one.regex else None)
            for one in spec.headers
        ]
        self.distinct_headers = [name.encode() for name in spec.distinct_headers]
        self.distinct_source = spec.distinct_source
        self.n_ranges = <int>len(spec.sources)
        self.ranges = <Range *>calloc(max(self.n_ranges, 1), sizeof(Range))
        if self.ranges == NULL:
            raise MemoryError
        for i in range(self.n_ranges):
            network = ip_network(spec.sources[i], strict=False)
            address = str(network.network_address).encode()
            parse_address(address, self.ranges[i].address)
            self.ranges[i].bits = network.prefixlen + (96 if network.version == 4 else 0)
            self.ranges[i].v4 = self.ranges[i].bits >= 96 and is_v4(self.ranges[i].address)
        self.name = spec.name
        self.log = json_encode(spec.name)
        label = f"limit\t{rule.route}\t{spec.name}".encode()
        self.row = ef_stat_hold(engine.stat, <const uint8_t *>PyBytes_AS_STRING(label), PyBytes_GET_SIZE(label))

    def __dealloc__(self):
        free(self.ranges)
        if self.row != NULL:
            ef_stat_release(self.row)

    cdef void count(self, bint over) noexcept:
        ef_stat_add(&self.row.cells[(L_SHADOW_OVER if self.shadow else L_OVER) if over else L_OK], 1)

    cdef bytes key_of(self, Exchange ex, const ef_request *request):
        """The counter of a request; None when it is not one that this limit counts."""
        cdef Engine engine = ex.engine
        cdef uint8_t address[16]
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
        if self.n_ranges or self.distinct_source:
            if not parse_address(PyBytes_AS_STRING(ex.client), address):
                return None
            for i in range(self.n_ranges):
                if not in_range(&self.ranges[i], address):
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
            name = render_address(address)
            add_part(key, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
        return PyBytes_FromStringAndSize(<const char *>key.data, key.size)


cdef class Verdict:
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
                self.limit.requests, 0 if self.over else self.remaining, seconds
            )
        if self.over and settings.retry_after:
            lines += b"retry-after: %d\r\n" % max(seconds, 1)
        return lines
