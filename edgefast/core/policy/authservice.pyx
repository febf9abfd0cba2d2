# Auth service: an authorization service (ir.ExtAuth): its cluster, its check request and the headers that it may set.
#
# In: ir.ExtAuth, requests to check. Out: a cached decision, or a call in progress; requests with the same check wait for one call. The call
# makes the check (authcall.pyx), the request applies the decision (auth_flow.pyx).

# Lines of the proxy, of framing and of one connection: no service is shown them as the client's, and none sets them.
cdef frozenset _NEVER_SHOWN = frozenset((
    "host", "connection", "content-length", "transfer-encoding", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "expect",
    "http2-settings", "via", "x-request-id", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-uri",
    "x-forwarded-method",
))
cdef frozenset _NEVER_SET = frozenset((
    "host", "connection", "content-length", "content-type", "transfer-encoding", "keep-alive", "proxy-connection", "te", "trailer",
    "upgrade", "expect", "http2-settings", "via", "date", "server", "x-request-id", "x-forwarded-for", "x-forwarded-proto",
))
# Headers of the proxy that every service gets, and that a narrower key may contain: the client's address and scheme.
cdef frozenset _OWN_LINES = frozenset(("x-forwarded-for", "x-forwarded-proto", "x-edge-external-address", "x-edge-internal"))
# Lines that repeat the method, Host and path, which are in every key.
cdef frozenset _IN_EVERY_KEY = frozenset(("x-forwarded-method", "x-forwarded-host", "x-forwarded-uri"))
cdef frozenset _NEVER_CHECKED = _NEVER_SHOWN - {"content-length", "expect"}  # by those of gRPC, to whom they are no framing


cdef HeaderNames names_but(names, frozenset never):
    low = [name.lower() for name in names]
    return HeaderNames(dict.fromkeys([name for name in low if name.replace("_", "-") not in never and not name.startswith("x-edge-")]))


cdef class AuthService:
    def __init__(self, Engine engine, spec):
        cdef uint32_t i
        self.engine = engine
        self.clusters = [backend.cluster for backend in spec.backends]
        self.weights = <uint32_t *>calloc(len(self.clusters) + 1, sizeof(uint32_t))
        self.current = <int64_t *>calloc(len(self.clusters) + 1, sizeof(int64_t))
        if self.weights == NULL or self.current == NULL:
            raise MemoryError
        for i in range(<uint32_t>len(self.clusters)):
            self.weights[i] = max(spec.backends[i].weight, 0)
        self.path = spec.path.rstrip("/").encode()
        if self.path and not self.path.startswith(b"/"):
            self.path = b"/" + self.path
        self.path_override = spec.path_override.encode()
        for target in (self.path, self.path_override):
            if any([byte <= 32 or byte >= 127 for byte in target]):
                raise ValueError("the path of an authorization service is not a valid HTTP path")
        # What a body is has to come with it.
        shown = ("authorization", *spec.headers, *(("content-type", "content-encoding") if spec.body else ()))
        self.grpc = spec.grpc
        if spec.grpc:
            self.shows_all = not spec.headers
            self.named = frozenset([name.lower().encode() for name in spec.headers])
            self.sends = OtherNames(_NEVER_CHECKED) if self.shows_all else names_but(spec.headers, _NEVER_CHECKED)
        else:
            self.options = make_options(spec)
            self.sends = names_but(shown, _NEVER_SHOWN)
            if spec.all_headers:
                self.sends = OtherNames([*_NEVER_SHOWN, *_ORIGINAL, *[name for name, _ in spec.fixed]])
            elif self.options is not None:  # in place of the client's
                own = self.options.names.union(_ORIGINAL) if self.options.original else self.options.names
                self.sends = HeaderNames([name.decode() for name in self.sends.names if name.decode().replace("_", "-") not in own])
        self.sets = names_but(() if spec.grpc else spec.to_backend, _NEVER_SET)
        self.statuses = frozenset(spec.statuses)
        self.body = spec.body
        self.timeout = min(spec.timeout or AUTH_TIMEOUT_MOST, AUTH_TIMEOUT_MOST)
        self.fail_open = spec.fail_open
        self.status_on_error = spec.status_on_error
        if spec.cache is not None:
            self.ttl = min(spec.cache.ttl, AUTH_CACHE_TTL)
            if spec.cache.key_headers is not None:
                self.narrow_key(spec.cache.key_headers)
        self.secret = os.urandom(32)
        self.calls = {}

    def __dealloc__(self):
        free(self.weights)
        free(self.current)

    cdef int narrow_key(self, key_headers) except -1:
        """Take the headers of the cache key. A header that no question has would be missing from the key: then nothing is cached."""
        low = [name.lower() for name in key_headers]
        own = [name for name in low if name in _OWN_LINES]
        other = [name for name in low if name not in _OWN_LINES and name not in _IN_EVERY_KEY]
        # Every service gets it, so every answer may be for one user only.
        self.keys = names_but(("authorization", *other), _NEVER_SHOWN)
        self.own_keys = HeaderNames(dict.fromkeys(own))
        if len(self.keys.names) != len({"authorization", *other}):
            self.ttl = 0
        return 0

    cdef Cluster choose(self):
        """Where the next call goes; None: nowhere."""
        cdef int i = ef_pick_wrr(self.current, self.weights, <uint32_t>len(self.clusters)) if self.clusters else -1
        return self.engine.tables.cluster(self.clusters[i]) if i >= 0 and self.clusters[i] else None

    cdef bytes digest(self, RuleAuthFlow flow):
        """Of a question whose answer may be believed; None: it may not. The text of a head is read in one way only, so that it needs no
        lengths; 128 bits of a digest with a key that nobody knows: no two questions have the same."""
        cdef AuthCache cache = units_of(self.engine).auth_cache
        cdef Out *out = &cache.question
        if self.ttl == 0 or (self.body and flow.ex.body.expected):
            return None
        write_question(out, flow, self, self.sends if self.keys is None else self.keys, self.own_keys)
        if self.grpc and self.keys is None:
            put_about(out, flow.ex)
        return blake2b(out.data[:out.size], digest_size=16, key=self.secret).digest()

    cdef AuthDecision known(self, RuleAuthFlow flow):
        """What it said of the same, lately; afterwards asker.key is the question's digest."""
        flow.key = self.digest(flow)
        return units_of(self.engine).auth_cache.find(flow.key, self.engine.wheel.now) if flow.key is not None else None

    cdef int ask(self, RuleAuthFlow flow) except -1:
        """RuleAuthFlow.on_decision is called, now or later."""
        cdef AuthCall call = self.calls.get(flow.key) if flow.key is not None else None
        if call is not None:
            return call.join(flow)
        call = CheckCall.__new__(CheckCall) if self.grpc else AuthCall.__new__(AuthCall)
        call.service = self
        call.key = flow.key
        if call.key is not None:
            self.calls[call.key] = call
        return call.open(flow)
