# Access: authorization by client address, headers, method, path and token claims of a request (ir.Authorization).
#
# In: rules, requests that matched a route's rule. Out: whether they are admitted, and the deciding rule; the first that matches decides.
# Ambiguous values never match an Allow rule. A header in several lines matches every Deny rule with one of these values: a line of it, an
# element of a line's list, or all lines joined with ",". A name that a backend may take for it is one of its lines (headernames.pyx). A
# client without an address is in the ranges of Deny rules alone. Paths are those of the match (csrc/path.h); Deny rules also match what
# else servers may read (path_variants.pyx). It must never show a header's value.

cdef enum:
    ACCESS_EXACT = 0
    ACCESS_PREFIX = 1
    ACCESS_REGEX = 2


cdef tuple access_spans(object cidrs):
    """Ranges of IPv4 and of IPv6 as sorted pairs of numbers, those that touch as one. A range of IPv6 has no IPv4 address in it, however
    wide it is (InetRange.v4)."""
    cdef InetRange one
    cdef list v4 = [], v6 = []
    cdef object least = 1, below  # numbers of 128 bits
    for cidr in cidrs:
        memset(&one, 0, sizeof(InetRange))
        inet_range(cidr, &one)
        first = int.from_bytes((<const char *>one.address)[:INET_SIZE], "big")
        below = 128 - one.bits
        last = first | ((least << below) - 1)
        if one.v4:
            v4.append((first & 0xFFFFFFFF, last & 0xFFFFFFFF))
        else:
            v6.append((first, last))
    return merge_spans(v4), merge_spans(v6)


cdef list merge_spans(list spans):
    cdef list merged = []
    for first, last in sorted(spans):
        if merged and first <= merged[len(merged) - 1][1] + 1:
            before, end = merged.pop()
            merged.append((before, max(last, end)))
        else:
            merged.append((first, last))
    return merged


cdef AccessSpan *place_spans(list spans) except NULL:
    """The same for the caller to free; one more than there are, so that none has room, too."""
    cdef AccessSpan *placed = <AccessSpan *>calloc(len(spans) + 1, sizeof(AccessSpan))
    cdef Py_ssize_t i
    if placed == NULL:
        raise MemoryError
    for i in range(len(spans)):
        first, last = spans[i]
        placed[i].from_high, placed[i].from_low = first >> 64, first & 0xFFFFFFFFFFFFFFFF
        placed[i].to_high, placed[i].to_low = last >> 64, last & 0xFFFFFFFFFFFFFFFF
    return placed


cdef inline bint in_spans(const AccessSpan *spans, int n, uint64_t high, uint64_t low) noexcept:
    """Binary search for the last range that begins at or before the address."""
    cdef int begin = 0, end = n, middle
    while begin < end:
        middle = (begin + end) >> 1
        if spans[middle].from_high < high or (spans[middle].from_high == high and spans[middle].from_low <= low):
            begin = middle + 1
        else:
            end = middle
    if begin == 0:
        return False
    spans += begin - 1
    return high < spans.to_high or (high == spans.to_high and low <= spans.to_low)


cdef inline uint64_t read_half(const uint8_t *at) noexcept:
    """Eight bytes of an address as a number."""
    cdef uint64_t half = 0
    cdef int i
    for i in range(8):
        half = half << 8 | at[i]
    return half


cdef class AccessHeader:
    def __init__(self, str name, values):
        if name == "host" or name.startswith(":"):  # "a.example", "A.Example." and "a.example:80" are one
            raise ValueError(f"{name} is not a valid condition (allowed: hostnames of routes and listeners)")
        self.name = name.encode()
        self.spellings = HeaderNames((name,))
        self.values = frozenset(value.encode() for value in values)

    cdef bint holds(self, bint allow, const ef_request *request) except -1:
        """allow: one line of this very name, whose value is one of them. Else a line, an element of one, or all lines joined, in whatever
        spelling."""
        cdef const ef_span *span
        cdef const uint8_t *name
        cdef bytes value, joined = None
        cdef uint32_t i
        for i in range(request.n_spans):
            span = &request.spans[i]
            name = request.base + span.name_off
            if not self.spellings.covers(name, span.name_len):
                continue
            value = request.base[span.val_off:span.val_off + span.val_len]
            if allow and (joined is not None or not self.spellings.has(name, span.name_len)):
                return False  # what a backend makes of a second line, or of another spelling, is not known
            joined = value if joined is None else joined + b"," + value
            if not allow and self.denies(value):
                return True
        return joined is not None and joined in self.values

    def denies(self, bytes value):
        """A line's value, or an element of its list (RFC 9110 5.6.1: lines of a list and its elements are the same)."""
        return value in self.values or (b"," in value and any([one.strip(b" \t") in self.values for one in value.split(b",")]))


cdef class AccessTest:
    def __init__(self, Engine engine, spec, int number):
        self.allow = spec.allow
        self.asks_address = bool(spec.sources)
        self.asks_method = bool(spec.methods)
        v4, v6 = access_spans(spec.sources)
        self.v4, self.n_v4 = place_spans(v4), len(v4)
        self.v6, self.n_v6 = place_spans(v6), len(v6)
        for method in spec.methods:
            name = method.encode()
            known = ef_method_lookup(<const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
            if known:  # requests with others are refused where they are read
                self.methods |= <uint64_t>1 << known
        if spec.headers:
            self.headers = [AccessHeader(name, values) for name, values in spec.headers]
        if spec.paths:
            self.paths = [self.take_path(engine, kind, path.encode()) for kind, path in spec.paths]
        self.token = spec.token
        if spec.server_names:
            self.server_names = frozenset([one.encode() for one in spec.server_names if not one.startswith("*.")])
            self.suffixes = [one[1:].encode() for one in spec.server_names if one.startswith("*.")]
        if spec.certificate:
            self.dns = frozenset([name.encode() for kind, name in spec.certificate if kind == "dns"])
            self.uris = frozenset([name.encode() for kind, name in spec.certificate if kind == "uri"])
        self.asks_tls = self.server_names is not None or self.dns is not None
        self.asks_request = self.asks_method or self.headers is not None or self.paths is not None or self.token is not None
        self.log = json_encode(spec.name) if spec.name else b"%d" % number

    def take_path(self, Engine engine, str kind, bytes path):
        cdef list readings
        if kind == "regex":
            return ACCESS_REGEX, path, path, read_regex(engine, path)
        if kind == "prefix":
            path = path.rstrip(b"/")
        readings = read_path(engine, <const uint8_t *>PyBytes_AS_STRING(path), PyBytes_GET_SIZE(path)) if b"%" in path else None
        return ACCESS_EXACT if kind == "exact" else ACCESS_PREFIX, path, readings[0] or path if readings else path, None

    def __dealloc__(self):
        free(self.v4)
        free(self.v6)

    cdef bint has_token(self, RuleAuthFlow flow) except -1:
        """The token that the client has shown says what is asked for. A rule that denies holds as well where nobody has looked for a token
        of its provider: whose it would be is not known."""
        cdef Exchange ex = flow.ex
        cdef LivePolicy policy
        cdef Tokens tokens
        if ex.token is not None and (not self.token.unit or self.token.unit == ex.token_unit):
            if ex.token.provider == self.token.provider:
                return has_access(self.token, ex.token.provider, ex.token.claims)
        if self.allow:
            return False
        for policy, proof in zip(flow.proof_policies or (), flow.proofs or ()):
            if isinstance(proof, Tokens) and (not self.token.unit or self.token.unit == policy.name):
                tokens = proof
                if self.token.provider in tokens.names:
                    return False
        return True

    cdef bint holds(self, const uint8_t *address, Peer peer, const ef_request *request, list readings, RuleAuthFlow flow) except -1:
        """All that it asks for. `address`: 16 bytes; NULL: the client has none. `peer` None: without TLS. `readings`: of the path, for a rule
        that denies."""
        cdef AccessHeader header
        if self.token is not None and not self.has_token(flow):
            return False
        if self.asks_method and not self.methods >> request.method & 1:
            return False
        if self.asks_address and not (self.has_address(address) if address != NULL else not self.allow):
            return False
        if self.asks_tls and not self.holds_for_connection(
            address, peer.sni if peer is not None else None, peer.certificate if peer is not None else None
        ):
            return False
        if self.headers is not None:
            for header in self.headers:
                if not header.holds(self.allow, request):
                    return False
        return self.paths is None or self.has_path(request, None if self.allow else readings)

    cdef bint holds_for_connection(self, const uint8_t *address, bytes sni, ClientCertificate certificate) except -1:
        """The same for a connection, of a rule without conditions about requests."""
        if self.asks_address and not (self.has_address(address) if address != NULL else not self.allow):
            return False
        if self.server_names is not None and not self.has_server_name(sni):
            return False
        return self.dns is None or self.has_certificate(certificate)

    cdef bint has_server_name(self, bytes sni) except -1:
        """A missing name matches Deny rules alone; so does a name with dots at its end, which a backend may take for the name without."""
        cdef bytes suffix
        if sni is None:
            return not self.allow
        if not self.allow:
            sni = sni.rstrip(b".")
        if sni in self.server_names:
            return True
        for suffix in self.suffixes:
            if sni.endswith(suffix) and len(sni) > len(suffix):
                return True
        return False

    cdef bint has_certificate(self, ClientCertificate certificate) except -1:
        """No certificate, or one that no authority of the listener has issued, matches Deny rules alone."""
        if certificate is None or not certificate.verified:
            return not self.allow
        for name in certificate.dns:
            if (<bytes>name).lower() in self.dns:
                return True
        for name in certificate.uris:
            if name in self.uris:
                return True
        return False

    cdef bint has_address(self, const uint8_t *address) noexcept:
        if inet_is_v4(address):
            return in_spans(self.v4, self.n_v4, 0, read_half(address + 8) & 0xFFFFFFFF)
        return in_spans(self.v6, self.n_v6, read_half(address), read_half(address + 8))

    cdef bint has_path(self, const ef_request *request, list readings) except -1:
        """One of its paths is the request's, as the match saw it ("/" of OPTIONS *) or as it may be read."""
        cdef bytes want, wanted, one
        cdef int kind
        for kind, want, wanted, regex in self.paths:
            if is_path(kind, want, regex, request.path, request.path_len):
                return True
            if not self.allow and wanted is not want and is_path(kind, wanted, regex, request.path, request.path_len):
                return True
            if readings is not None:
                for one in readings:
                    if one is None or is_path(kind, wanted, regex, <const uint8_t *>PyBytes_AS_STRING(one), PyBytes_GET_SIZE(one)):
                        return True
        return False


cdef bint is_path(int kind, bytes want, object regex, const uint8_t *path, size_t size) except -1:
    cdef size_t n = PyBytes_GET_SIZE(want)
    if kind == ACCESS_REGEX:
        return regex.fullmatch(path[:size]) is not None
    if size < n or memcmp(path, PyBytes_AS_STRING(want), n) != 0:
        return False
    return size == n or (kind == ACCESS_PREFIX and path[n] == c"/")


cdef object read_regex(Engine engine, bytes pattern):
    """An expression over bytes. Raises ValueError, as all that is refused when a table is applied."""
    try:
        return engine.tables.byte_regex(pattern)
    except re2.error as error:
        raise ValueError(f"not a regular expression: {error}") from None


cdef class Access:
    def __init__(self, Engine engine, spec):
        """spec: ir.Authorization. Raises ValueError."""
        cdef AccessTest rule
        self.engine = engine
        self.allow = spec.allow
        self.rules = [AccessTest(engine, one, i) for i, one in enumerate(spec.rules)]
        for rule in self.rules:
            self.asks_address |= rule.asks_address
            self.denies_paths |= not rule.allow and rule.paths is not None
            self.asks_token |= rule.token is not None
            self.asks_request |= rule.asks_request
            self.asks_certificate |= rule.dns is not None
        names = dict.fromkeys([name for one in spec.rules for name, _ in one.headers])
        if names:
            self.names = HeaderNames(names)

    cdef bint admits(self, bytes client, Peer peer, const ef_request *request, RuleAuthFlow flow) except -1:
        """client: an address as text; what is none is in no range. `peer`: with the facts of its TLS. `flow`: whose token rules may ask for; None: none does."""
        cdef uint8_t read[INET_SIZE]
        cdef const uint8_t *address = NULL
        cdef AccessTest rule
        cdef list readings = None
        if self.asks_address and inet_read_bytes(client, read):
            address = read
        if self.denies_paths:
            readings = read_path(self.engine, request.path, request.path_len)
        for rule in self.rules:
            if rule.holds(address, peer, request, readings, flow):
                self.decided = rule
                return rule.allow
        self.decided = None
        return self.allow

    cdef bint admits_connection(self, const uint8_t *address, bytes sni, ClientCertificate certificate) except -1:
        """address: 16 bytes; NULL: the client has none. sni, certificate: None if absent. Only for rules without conditions about requests."""
        cdef AccessTest rule
        for rule in self.rules:
            if rule.holds_for_connection(address, sni, certificate):
                self.decided = rule
                return rule.allow
        self.decided = None
        return self.allow


cdef bint evaluate_token_policies(RuleAuthFlow flow) except -1:
    """Authorizations that ask for a token, when all else has let the request pass; False: one of them has refused it."""
    cdef Exchange ex = flow.ex
    cdef LivePolicy policy
    cdef Access access
    cdef Py_ssize_t i
    for i in range(PyList_GET_SIZE(flow.token_policies)):
        policy, access = flow.token_policies[i], flow.accesses[i]
        if not access.admits(ex.client, ex.down.peer, &flow.request, flow):
            policy.refuse(ex, 403, access.decided.log if access.decided is not None else None, F_DENIED)
            return False
        ef_stat_add(&policy.row.cells[P_ALLOWED], 1)
    return True


def count_admitted(Engine engine, spec, bytes client, bytes path, int times):
    """How many of so many equal requests an ir.Authorization admits: GET, no headers (for benches)."""
    cdef Access access = Access(engine, spec)
    cdef ef_request request
    cdef int i, admitted = 0
    memset(&request, 0, sizeof(request))
    request.method = EF_M_GET
    request.path = <const uint8_t *>PyBytes_AS_STRING(path)
    request.path_len = PyBytes_GET_SIZE(path)
    for i in range(times):
        admitted += access.admits(client, None, &request, None)
    return admitted
