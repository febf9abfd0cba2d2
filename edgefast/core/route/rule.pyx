# Rule: a served rule: decoded from the table's payload at its first hit, then only read.
#
# In: ir.Rule. Out: everything that a request needs: clusters by reference, compiled header operations, the row of counters. The share of
# each backend is smooth weighted round robin. Nothing here waits or writes.

cdef class HttpSettings:
    def __init__(self, spec):
        self.request_limits.head = min(spec.request_head, 262144)
        self.request_limits.line = min(spec.request_line, 262144)
        self.request_limits.count = min(spec.header_count, EF_MAX_HEADERS)
        self.request_limits.underscore = {
            "Reject": EF_UNDERSCORE_REJECT, "Allow": EF_UNDERSCORE_ALLOW, "Drop": EF_UNDERSCORE_DROP
        }[spec.underscores]
        self.response_limits.head = min(spec.response_head, 262144)
        self.response_limits.line = min(spec.response_head, 262144)
        self.response_limits.count = min(spec.header_count, EF_MAX_HEADERS)
        self.response_limits.underscore = EF_UNDERSCORE_ALLOW
        self.request_limits.raw = {"Reject": EF_RAW_REJECT, "Allow": EF_RAW_ALLOW}[spec.raw_characters]
        self.response_limits.raw = EF_RAW_REJECT  # a response has no target
        self.default_host = spec.http10_host.encode()
        self.request_limits.http10 = EF_HTTP10_REJECT if not spec.http10 else EF_HTTP10_ALLOW if spec.http10_host else EF_HTTP10_WITH_HOST
        self.response_limits.http10 = EF_HTTP10_REJECT  # the version of a response is not limited
        self.drop_flags = EF_SPAN_HOP | EF_SPAN_NOMINATED | (EF_SPAN_UNDERSCORE if spec.underscores == "Drop" else 0)
        self.body_size = spec.body_size
        self.buffer_bytes = spec.buffer_bytes
        self.body_start = min(spec.body_start, REPLAY_LIMIT)
        self.body_start_timeout = spec.body_start_timeout or NEVER_MS
        self.body_buffer = spec.body_buffer
        self.mirror_buffer = spec.mirror_buffer
        self.body_share = spec.body_share
        self.body_client_share = spec.body_client_share
        self.body_rate = spec.body_rate
        self.answer_share = spec.answer_share
        self.answer_rate = spec.answer_rate
        self.upstream_idle = spec.upstream_idle or NEVER_MS
        self.head_timeout = spec.head_timeout or NEVER_MS
        self.idle_timeout = spec.idle_timeout or NEVER_MS
        self.stream_idle_timeout = spec.stream_idle_timeout or NEVER_MS
        self.route_timeout = spec.route_timeout
        self.connect_timeout = spec.connect_timeout or NEVER_MS
        self.max_connections = spec.max_connections
        self.stream_share = spec.stream_share
        self.max_streams = spec.max_streams
        self.address_streams = spec.address_streams
        self.max_requests = spec.max_requests_per_connection
        self.h2_enabled = spec.http2.enabled
        self.h2_streams = spec.http2.max_concurrent_streams
        self.h2_requests = spec.http2.max_requests_per_connection or 0xffffffff
        self.h2_stream_window = spec.http2.initial_stream_window
        self.h2_window = spec.http2.initial_connection_window
        self.h2_ping = spec.http2.keepalive_ping
        self.h2_up_streams = spec.http2.upstream.max_concurrent_streams
        self.h2_up_stream_window = spec.http2.upstream.initial_stream_window
        self.h2_up_window = spec.http2.upstream.initial_connection_window
        self.h2_up_ping = spec.http2.upstream.keepalive_ping
        self.grpc_web = spec.grpc.web
        self.grpc_attempts = min(spec.grpc.retry_attempts, RETRY_MAX_ATTEMPTS)
        self.grpc_backoff = spec.grpc.retry_backoff
        if self.grpc_attempts:
            for code in spec.grpc.retry_codes:
                self.grpc_codes |= <uint32_t>1 << <uint32_t>code
        self.escaped_slashes = {"UnescapeAndRedirect": 0, "KeepUnchanged": 1, "Reject": 2}[spec.escaped_slashes]
        self.path_parameters = {"keep": PARAMETERS_KEEP, "strip": PARAMETERS_STRIP, "reject": PARAMETERS_REJECT}[spec.path_parameters]
        self.via = b"via: 1.1 %b\r\n" % spec.via.encode() if spec.via else b""
        self.via_0 = b"via: 1.0 %b\r\n" % spec.via.encode() if spec.via else b""
        self.via_2 = b"via: 2.0 %b\r\n" % spec.via.encode() if spec.via else b""
        self.trusted_hops = spec.client_address.trusted_hops
        self.trusted = inet_ranges(spec.client_address.trusted_cidrs)
        self.n_trusted = <int>len(spec.client_address.trusted_cidrs)
        self.forwarded = ForwardedHeaders(spec.forwarded, spec.underscores == "Allow") if spec.forwarded != ir.ForwardedHeaders() else None
        self.rate_limit_headers = spec.rate_limit_headers
        self.retry_after = spec.retry_after
        self.proxy_protocol = {"off": 0, "optional": 1, "required": 2}[spec.client_address.proxy_protocol]
        self.senders = PreambleSenders(spec.client_address.proxy_senders)
        self.tls_drain = spec.tls_drain

    def __dealloc__(self):
        free(self.trusted)


cdef class Redirect:
    def __init__(self, Engine engine, spec):
        self.status = spec.status
        self.scheme = spec.scheme
        self.hostname = spec.hostname
        self.port = spec.port
        self.path = spec.path
        self.trim_slash = spec.trim_slash
        self.write_port = spec.write_port
        self.drop_query = spec.drop_query
        self.relative = spec.relative
        self.template = LocationTemplate(engine, spec.template, spec.pattern) if spec.template else None

    cdef bytes locate(self, Exchange ex, Routed *at):
        """The Location; None if the template gives none for this request."""
        cdef bytes found
        if self.template is None:
            return self.location(
                ex, at.path, at.path_len, at.prefix_len, at.query, at.query_len, at.base + at.head.host_off, at.head.host_len
            )
        found = self.template.expand(ex, at)
        if found is not None and at.query_len and not self.drop_query:
            found += (b"&" if b"?" in found else b"?") + at.query[:at.query_len]
        return found

    cdef bytes location(self, Exchange ex, const uint8_t *path, size_t path_len, size_t prefix_len, const uint8_t *query,
                        size_t query_len, const uint8_t *host, size_t host_len):
        """The Location value: absolute unless a filter says otherwise, by the port rules of HTTPRequestRedirectFilter (port, else the scheme's default, else the
        listener's; 80 and 443 are left out where they are the default). Without a scheme the client's stays."""
        scheme = self.scheme or ("https" if ex.https else "http")
        port = self.port
        if port == 0:
            if self.scheme == "http":
                port = 80
            elif self.scheme == "https":
                port = 443
            else:
                port = ex.down.peer.port.number
                if ex.https != ex.down.peer.tls:  # the client's port is that of the proxy before this one
                    port = 443 if ex.https else 80
        name = self.hostname.encode() if self.hostname else host[:host_len]
        authority = name
        if self.write_port or not ((scheme == "http" and port == 80) or (scheme == "https" and port == 443)):
            authority = b"%b:%d" % (name, port)
        target = path[:path_len] if path[0] == c"/" else b"/"  # OPTIONS *
        if self.path is not None:
            target = replace_path(target, prefix_len, self.path.kind == "full", self.path.value.encode())
        if query_len and not self.drop_query:
            target += b"?" + query[:query_len]
        if self.trim_slash and target.endswith(b"/"):
            target = target[:PyBytes_GET_SIZE(target) - 1]
        if self.relative and target.startswith(b"/") and not target.startswith(b"//"):  # which would be a host
            return target
        return b"%b://%b%b" % (scheme.encode(), authority, target)


cdef bytes replace_path(bytes path, size_t prefix_len, bint full, bytes value):
    """HTTPPathModifier: ReplaceFullPath, or ReplacePrefixMatch on whole segments."""
    if full:
        return value if value.startswith(b"/") else b"/" + value
    rest = path[prefix_len:]
    value = value.rstrip(b"/")
    if rest and not rest.startswith(b"/"):
        rest = b"/" + rest
    return (value + rest) or b"/"


cdef class Cors:
    def __init__(self, spec):
        self.spec = spec
        self.any_origin = "*" in spec.allow_origins
        self.exact = frozenset(origin.lower() for origin in spec.allow_origins if "*" not in origin)
        self.wildcards = []
        for origin in spec.allow_origins:
            if origin != "*" and "*" in origin:
                before, after = origin.lower().split("*", 1)
                self.wildcards.append((before, after))

    cdef bint allows(self, str origin):
        cdef str low = origin.lower()
        if self.any_origin or low in self.exact:
            return True
        for before, after in self.wildcards:
            if len(low) > len(before) + len(after) and low.startswith(before) and low.endswith(after):
                inside = low[len(before):len(low) - len(after)]
                if "/" not in inside and ":" not in inside:
                    return True
        return False

    cdef bytes simple(self, str origin):
        """Lines for an actual request from an allowed origin (Fetch standard, CORS protocol)."""
        if self.any_origin and not self.spec.allow_credentials:
            lines = ["access-control-allow-origin: *"]
        else:
            lines = ["access-control-allow-origin: " + origin, "vary: Origin"]
        if self.spec.allow_credentials:
            lines.append("access-control-allow-credentials: true")
        lines += self._exposed()
        return ("\r\n".join(lines) + "\r\n").encode("latin-1")

    cdef list _exposed(self):
        if not self.spec.expose_headers or ("*" in self.spec.expose_headers and self.spec.allow_credentials):
            return []
        return ["access-control-expose-headers: " + ", ".join(self.spec.expose_headers)]

    cdef bytes preflight(self, str origin, str method, str headers):
        """Lines for a preflight from an allowed origin. A wildcard is answered as asked when credentials are allowed, because
        browsers take "*" literally then."""
        if self.any_origin and not self.spec.allow_credentials:
            lines = ["access-control-allow-origin: *"]
        else:
            lines = ["access-control-allow-origin: " + origin, "vary: Origin"]
        if self.spec.allow_credentials:
            lines.append("access-control-allow-credentials: true")
        methods = list(self.spec.allow_methods)
        if "*" in methods:
            methods = [method] if self.spec.allow_credentials else ["*"]
        if methods:
            lines.append("access-control-allow-methods: " + ", ".join(methods))
        allowed = list(self.spec.allow_headers)
        if "*" in allowed:
            allowed = ([headers] if headers else []) if self.spec.allow_credentials else ["*"]
        if allowed:
            lines.append("access-control-allow-headers: " + ", ".join(allowed))
        lines += self._exposed()  # browsers look for it in the actual answer only; others expect it here as well
        lines.append(f"access-control-max-age: {self.spec.max_age}")
        return ("\r\n".join(lines) + "\r\n").encode("latin-1")


cdef class MirrorTarget:
    def __init__(self, Cluster cluster, spec):
        self.cluster = cluster
        self.numerator = spec.numerator
        self.denominator = max(spec.denominator, 1)
        self.sum = 0

    cdef bint due(self) noexcept:
        """Evenly spread: exactly numerator of every denominator requests."""
        self.sum += self.numerator
        if self.sum >= self.denominator:
            self.sum -= self.denominator
            return True
        return False


cdef dict PATH_KINDS = {"full": 1, "prefix": 2, "regex": 3}


cdef class DirectAnswer:
    def __init__(self, spec):
        """spec: ir.DirectResponse. No body where the status has none (RFC 9110 15)."""
        self.status = spec.status
        self.body = spec.body if spec.status not in (204, 205, 304) else b""
        self.lines = b"content-type: %b\r\n" % spec.content_type.encode() if spec.content_type and self.body else b""


def is_parallel(limit):
    return limit.kind == "Parallel"


def has_headers(limit):
    return bool(limit.headers or limit.distinct_headers)


cdef class Rule:
    def __init__(self, Engine engine, spec, HttpSettings settings):
        # All at once: to ask for each costs as much as the rest, and a large table has each rule hit for the first time.
        (
            self.route, self.index, name, _, self.status, _, backends, request_headers, response_headers, redirect, rewrite, mirrors, cors,
            timeouts, retry, rate_limits, policies, ext_auth, traffic, _, _, direct, session, response_rewrite,
        ) = astuple(spec)
        self.request_timeout = -1
        if timeouts is not None:
            if timeouts.request is not None:
                self.request_timeout = timeouts.request
            if timeouts.backend_request is not None:
                self.backend_timeout = timeouts.backend_request
        expected = self.request_timeout if self.request_timeout >= 0 else settings.route_timeout
        self.timeout_line = engine.tables.timeout_line(expected)
        if retry is not None:
            self.has_retry = True
            self.retry_codes = frozenset(retry.codes)
            self.attempts = min(retry.attempts, RETRY_MAX_ATTEMPTS)
            self.backoff = retry.backoff
        if rate_limits:
            self.limits = [Limit(engine, spec, one) for one in rate_limits if one.kind == "Window"] or None
            # Tokens first: a request without one is not in progress.
            local = sorted((one for one in rate_limits if one.kind != "Window"), key=is_parallel)
            self.early_limits = [Limit(engine, spec, one) for one in local if not has_headers(one)] or None
            self.late_limits = [Limit(engine, spec, one) for one in local if has_headers(one)] or None
        if policies or ext_auth is not None:
            self.policy_chain = engine.policies.make_chain(spec)
        if traffic or session is not None:
            self.traffic = Traffic(engine, spec, self.request_timeout, settings.route_timeout)
        if direct is not None:
            self.direct = DirectAnswer(direct)
        if response_rewrite is not None:
            self.response_rewrite = ResponseRewrite(engine, response_rewrite)
        if response_headers is not None:
            self.response_ops = compile_ops((response_headers,))
        plain = not (request_headers or response_headers or redirect or rewrite or mirrors or cors)
        if not backends:  # a redirect, or an answer by status
            self.only = resolve_backend(engine, spec, None, plain)
        elif len(backends) > 1:
            self.share_out(engine, spec, plain)
        elif backends[0].weight:
            self.only = resolve_backend(engine, spec, backends[0], plain)
        self.name = name or None
        label = f"{self.route}\t{name or self.index}".encode()
        self.row = ef_stat_hold(engine.stat, <const uint8_t *>PyBytes_AS_STRING(label), PyBytes_GET_SIZE(label))

    cdef int share_out(self, Engine engine, spec, bint plain) except -1:
        """Several backends, by weight. They start anywhere in the round, so that a table change does not favour the first."""
        cdef uint32_t i
        self.backends = [resolve_backend(engine, spec, item, plain) for item in spec.backends]
        self.n_backends = <uint32_t>len(self.backends)
        self.weights = <uint32_t *>calloc(self.n_backends, sizeof(uint32_t))
        self.current = <int64_t *>calloc(self.n_backends, sizeof(int64_t))
        if self.weights == NULL or self.current == NULL:
            raise MemoryError
        for i in range(self.n_backends):
            self.weights[i] = spec.backends[i].weight
        for i in range(<uint32_t>(ef_random(engine.random) & 15)):
            ef_pick_wrr(self.current, self.weights, self.n_backends)
        return 0

    cdef bytes in_log(self):
        """What log lines say of it; made for the first of them."""
        if self.log is None:
            self.log = b'"route":%b,"rule":%b' % (
                json_encode(self.route), json_encode(self.name) if self.name is not None else b"%d" % self.index
            )
        return self.log

    def __dealloc__(self):
        free(self.weights)
        free(self.current)
        if self.row != NULL:
            ef_stat_release(self.row)

    cdef Backend choose(self):
        """The backend of the next request; None when all weights are 0."""
        cdef int i
        if self.only is not None:
            return self.only
        if self.n_backends == 0:
            return None
        i = ef_pick_wrr(self.current, self.weights, self.n_backends)
        return <Backend>PyList_GET_ITEM(self.backends, i) if i >= 0 else None


cdef Backend resolve_backend(Engine engine, rule, item, bint plain):
    """A backendRef with the rule's filters folded in; item None: the rule's own filters alone. Those without filters are shared
    by all rules that send to the cluster. plain: the rule has none."""
    cdef Backend backend
    cdef str cluster
    if plain and item is not None:
        cluster, _, _, _, request_headers, response_headers, rewrite, redirect, mirrors, cors, treatment, session = astuple(item)
        plain = bool(cluster) and not (
            request_headers or response_headers or redirect or rewrite or mirrors or cors or treatment is not None or session is not None
        )
    else:
        plain = False
    if plain:
        backend = engine.tables.plain_backends.get(cluster)
        if backend is not None:
            return backend
    backend = Backend.__new__(Backend)
    rewrite = merge_rewrites(rule.rewrite, item.rewrite if item is not None else None)
    redirect = (item.redirect if item is not None else None) or rule.redirect
    cors = (item.cors if item is not None else None) or rule.cors
    mirrors = rule.mirrors + (item.mirrors if item is not None else ())
    backend.cluster = engine.tables.cluster(item.cluster) if item is not None and item.cluster else None
    backend.status = item.status if item is not None else 500
    backend.request_ops = compile_ops((rule.request_headers, item.request_headers if item is not None else None))
    backend.response_ops = compile_ops((rule.response_headers, item.response_headers if item is not None else None))
    if backend.request_ops is not None and backend.request_ops.host is not None:
        backend.host = backend.request_ops.host
    if rewrite is not None:
        if rewrite.hostname:
            backend.host = rewrite.hostname.encode()
        if rewrite.path is not None:
            backend.path_kind = PATH_KINDS[rewrite.path.kind]
            if backend.path_kind == 3:
                backend.pattern = PathPattern(engine, rewrite.path.pattern, rewrite.path.value)
            backend.path = rewrite.path.value.encode()
    backend.redirect = Redirect(engine, redirect) if redirect is not None else None
    backend.cors = Cors(cors) if cors is not None else None
    if item is not None and item.treatment is not None:
        backend.traffic = Traffic(engine, item.treatment, -1, 0)
    if item is not None and item.session is not None:
        backend.session = SessionPolicy(item.session, rule.route, rule.name or rule.index)
    backend.mirrors = [MirrorTarget(engine.tables.cluster(m.cluster), m) for m in mirrors] or None
    if plain:
        engine.tables.plain_backends[cluster] = backend
    return backend


cdef object merge_rewrites(outer, inner):
    """The rule's URLRewrite, and the backendRef's in addition: what both say, the backendRef decides."""
    if outer is None or inner is None:
        return inner or outer
    return ir.Rewrite(hostname=inner.hostname or outer.hostname, path=inner.path or outer.path)


cdef inline void prefetch_row(ef_stat_row *row) noexcept:
    """Those of its cells that every request counts in."""
    prefetch(&row.cells[0])
    prefetch(&row.cells[8])
    prefetch(&row.cells[16])
