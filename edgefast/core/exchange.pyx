# One request in flight: match, filters, backend, tries, deadlines, counters.
#
# In: a scanned request head and body bytes from the client's codec; response events from an upstream codec. Out: calls on both. It
# ends exactly once (finish), with one answer or one aborted connection, and owns no timer but its own. Retry rules: RFC 9110 9.2.2 and
# docs/http1.md. Timeouts: HTTPRouteTimeouts; without one, the default bounds the time to the response head once the request is complete.

cdef inline bint idempotent(unsigned method) noexcept:
    return (
        method == EF_M_GET or method == EF_M_HEAD or method == EF_M_OPTIONS or method == EF_M_PUT or method == EF_M_DELETE
        or method == EF_M_TRACE
    )


cdef class Exchange(UpstreamUser):
    def __cinit__(self, Downstream down):
        self.down = down
        self.engine = down.engine

    def __dealloc__(self):
        free(self.head.data)
        free(self.body.data)
        free(self.raw.data)

    # --- the request -----------------------------------------------------------------------------------------------

    cdef int begin(self, const uint8_t *base, ef_head *head) except -1:
        """Route the request; afterwards it is answered, or on its way to a backend."""
        cdef PortTable port = self.down.port
        cdef Engine engine = self.engine
        cdef const uint8_t *path = base + head.target_off
        cdef const uint8_t *host = base + head.host_off
        cdef size_t path_len = head.path_len, query_len = 0
        cdef const uint8_t *query = NULL
        cdef ef_request request
        cdef ef_hit hit
        cdef ListenerTable named
        cdef int result, escaped = 0
        cdef bint asterisk
        cdef bytes target
        self.settings = port.settings
        self.started = engine.now_us()
        self.method = head.method
        self.upgrade = head.upgrade
        self.expects_body = head.body != EF_BODY_NONE
        self.chunked = head.body == EF_BODY_CHUNKED
        engine.active += 1
        engine.count(G_REQUESTS_ACTIVE)
        self.note(base, head)
        if head.target_len > path_len:
            query = path + path_len + 1
            query_len = head.target_len - path_len - 1
        if head.target_empty_path:
            path = <const uint8_t *>b"/"
            path_len = 1
        asterisk = path_len == 1 and path[0] == c"*"
        if asterisk:
            request.path = <const uint8_t *>b"/"
            request.path_len = 1
        else:
            if path_len > engine.scratch_size:
                return self.answer(414, b"", 0)
            result = ef_path_normalize(path, path_len, engine.path, engine.scratch_size, &request.path_len, &escaped)
            if result < 0:
                engine.count(G_PATH_REFUSED)
                self.down.closing = True
                return self.fail(400, F_INVALID)
            if result == EF_PATH_WRITTEN:
                path = engine.path
                path_len = request.path_len
            if escaped and port.settings.escaped_slashes != 1:
                if port.settings.escaped_slashes == 2:
                    engine.count(G_PATH_REFUSED)
                    self.down.closing = True
                    return self.fail(400, F_INVALID)
                ef_path_unescape_slashes(path, path_len, engine.scratch, engine.scratch_size, &path_len)
                target = engine.scratch[:path_len]
                if query_len:
                    target += b"?" + query[:query_len]
                return self.answer(
                    307,
                    b"location: %b://%b%b\r\n" % (
                        b"https" if self.down.tls else b"http",
                        base[head.authority_off:head.authority_off + head.authority_len],
                        target,
                    ),
                    F_REDIRECT,
                )
            request.path = path
            request.path_len = path_len
        self.listener = port.find(host, head.host_len)
        if self.down.sni is not None:
            named = port.find(<const uint8_t *>PyBytes_AS_STRING(self.down.sni), PyBytes_GET_SIZE(self.down.sni))
            if named is not self.listener and named is not None and self.listener is not None:
                engine.count(G_MISDIRECTED)
                return self.answer(421, b"", F_MISDIRECTED)
        if self.listener is None:
            engine.count(G_NO_LISTENER)
            return self.answer(404, b"", F_NO_ROUTE)
        self.settings = self.listener.settings
        request.query = query
        request.query_len = query_len
        request.method = head.method
        request.n_spans = head.n_spans
        request.base = base
        request.spans = head.spans
        self.rule = port.match(self.listener, host, head.host_len, &request, &hit)
        if self.rule is None:
            engine.count(G_NO_ROUTE)
            return self.answer(404, b"", F_NO_ROUTE)
        if self.rule.status:
            return self.answer(self.rule.status, b"", F_INVALID)
        if self.settings.body_size and head.content_length > self.settings.body_size:
            engine.count(G_BODY_TOO_LARGE)
            self.down.closing = True
            return self.answer(413, b"", F_TOO_LARGE)
        self.backend = self.rule.choose()
        if self.backend is None:
            return self.answer(500, b"", F_INVALID)
        if self.backend.cors is not None and self.on_cors(base, head):
            return 0
        if self.backend.redirect is not None:
            target = self.backend.redirect.location(
                self, path, path_len, hit.prefix_len, query, query_len, host, head.host_len
            )
            return self.answer(self.backend.redirect.status, b"location: " + target + b"\r\n", F_REDIRECT)
        if self.backend.cluster is None:
            return self.answer(self.backend.status, b"", F_INVALID)
        return self.forward(base, head, path, path_len, query, query_len, hit.prefix_len)

    cdef int note(self, const uint8_t *base, ef_head *head) except -1:
        """Keep what the access log needs: the head's bytes are gone when the exchange ends."""
        cdef uint16_t i
        if self.down.port.log_off:
            return 0
        out_reserve(&self.raw, head.head_len)
        out_raw(&self.raw, base, head.head_len)
        self.method_len = head.method_len
        self.target_off = head.target_off
        self.target_len = head.target_len
        self.authority_off = head.authority_off
        self.authority_len = head.authority_len
        for i in range(head.n_spans):
            if head.spans[i].name_hash == HASH_USER_AGENT and head.spans[i].name_len == 10:
                self.agent_off = head.spans[i].val_off
                self.agent_len = head.spans[i].val_len
                break
        return 0

    cdef bint on_cors(self, const uint8_t *base, ef_head *head) except -1:
        """HTTPCORSFilter: answers preflights (True), remembers the lines for actual requests."""
        cdef Cors cors = self.backend.cors
        cdef const ef_span *span
        cdef uint16_t i
        origin = None
        method = None
        headers = ""
        for i in range(head.n_spans):
            span = &head.spans[i]
            if span.id == EF_H_ORIGIN:
                origin = base[span.val_off:span.val_off + span.val_len].decode("latin-1")
            elif span.id == EF_H_ACCESS_CONTROL_REQUEST_METHOD:
                method = base[span.val_off:span.val_off + span.val_len].decode("latin-1")
            elif span.name_hash == HASH_REQUEST_HEADERS and span.name_len == 30:
                headers = base[span.val_off:span.val_off + span.val_len].decode("latin-1")
        if origin is None:
            return False
        if head.method == EF_M_OPTIONS and method is not None:
            lines = cors.preflight(origin, method, headers) if cors.allows(origin) else b""
            self.answer(204, lines, F_CORS)
            return True
        if cors.allows(origin):
            self.cors_lines = cors.simple(origin)
        return False

    cdef int forward(self, const uint8_t *base, ef_head *head, const uint8_t *path, size_t path_len, const uint8_t *query,
                     size_t query_len, size_t prefix_len) except -1:
        """Write the backend's request head, start mirrors, ask for a connection."""
        cdef MirrorTarget target
        cdef Mirror mirror
        cdef int64_t now = self.engine.wheel.now
        write_request_head(self, base, head, path, path_len, query, query_len, prefix_len)
        self.keeps_body = True
        self.idle_deadline = now + self.settings.stream_idle_timeout
        if self.rule.request_timeout > 0:
            self.route_deadline = now + self.rule.request_timeout
        if self.backend.mirrors is not None and not self.upgrade:
            for target in self.backend.mirrors:
                if target.due():
                    mirror = Mirror.__new__(Mirror)
                    if self.mirrors is None:
                        self.mirrors = []
                    self.mirrors.append(mirror)
                    mirror.open(self, target.cluster)
        self.rearm()
        self.backend.cluster.acquire(self, 0)
        return 0

    cdef int request_body(self, iovec *iov, int n, size_t total) except -1:
        """Body bytes from the client, without framing; valid during the call."""
        cdef int i
        cdef Mirror mirror
        self.bytes_in += total
        if self.tunnel:
            self.idle_deadline = self.engine.wheel.now + self.settings.stream_idle_timeout
            return self.write(iov, n, total, False)
        if self.settings.body_size and self.bytes_in > self.settings.body_size:
            self.engine.count(G_BODY_TOO_LARGE)
            self.down.closing = True
            if self.started_response:
                return self.abort(F_TOO_LARGE)
            self.drop_upstream()
            return self.answer(413, b"", F_TOO_LARGE)
        self.idle_deadline = self.engine.wheel.now + self.settings.stream_idle_timeout
        if self.mirrors is not None:
            for mirror in self.mirrors:
                mirror.request_body(iov, n, total)
        if self.keeps_body:
            if self.up is None or (
                self.body.size + total <= REPLAY_LIMIT and (self.rule.has_retry or idempotent(self.method))
            ):
                out_reserve(&self.body, total)
                for i in range(n):
                    out_raw(&self.body, iov[i].iov_base, iov[i].iov_len)
            else:
                self.keeps_body = False
                free(self.body.data)
                self.body.data = NULL
                self.body.size = self.body.cap = 0
        if self.up is None:
            if self.body.size >= REPLAY_LIMIT:
                self.down.pause()
            return 0
        return self.write(iov, n, total, False)

    cdef int request_end(self) except -1:
        """The client's request is complete."""
        cdef Mirror mirror
        self.body_done = True
        if self.mirrors is not None:
            for mirror in self.mirrors:
                mirror.request_end()
        if self.rule.request_timeout < 0 and not self.upgrade and not self.started_response:
            if self.settings.route_timeout:
                self.route_deadline = self.engine.wheel.now + self.settings.route_timeout
                self.rearm()
        if self.up is not None:
            return self.write(NULL, 0, 0, True)
        return 0

    cdef int flush(self) except -1:
        """End of what the client sent for now: a head that waited for body bytes goes out alone."""
        if self.head_pending and self.up is not None:
            return self.write(NULL, 0, 0, self.body_done)
        return 0

    cdef int write(self, iovec *iov, int n, size_t total, bint end) except -1:
        cdef Out *head = NULL
        if self.head_pending:
            self.head_pending = False
            head = &self.head
            self.sent = self.engine.now_us()
        elif total == 0 and not (end and self.chunked):
            if end:
                self.up.request_done = True
            return 0
        self.up.write_request(head, iov, n, total, self.chunked, end)
        if self.up is not None and self.up.write_paused:
            self.down.pause()
        return 0

    # --- the backend -----------------------------------------------------------------------------------------------

    cdef int on_up_ready(self, Upstream up) except -1:
        cdef iovec kept
        self.up = up
        self.tries += 1
        if self.endpoint.index >= 0 and self.endpoint.index < 64:
            self.tried |= <uint64_t>1 << self.endpoint.index
        up.begin(self, self.method)
        self.head_pending = True
        if self.rule.backend_timeout:
            self.try_deadline = self.engine.wheel.now + self.rule.backend_timeout
            self.rearm()
        if self.body.size:
            kept.iov_base = self.body.data
            kept.iov_len = self.body.size
            self.write(&kept, 1, self.body.size, self.body_done)
        elif self.body_done or self.tries > 1:
            self.write(NULL, 0, 0, self.body_done)
        elif not self.down.processing:
            self.flush()
        if self.up is not None and not self.up.write_paused:
            self.down.resume()
        return 0

    cdef int on_up_failed(self, UpFailure why) except -1:
        cdef Endpoint failed = self.endpoint
        self.endpoint = None
        if why == UP_NO_ENDPOINT:
            return self.fail(503, F_NO_ENDPOINT)
        if why == UP_OVERFLOW:
            return self.fail(503, F_OVERFLOW)
        self.tries += 1
        if failed is not None and failed.index >= 0 and failed.index < 64:
            self.tried |= <uint64_t>1 << failed.index
        # nothing was sent: any method may go to another endpoint, each at most once
        if self.tries < 4 and self.backend.cluster.size > 1 and self.in_budget():
            self.flags |= F_RETRIED
            return self.backend.cluster.acquire(self, self.tried)
        if self.rule.has_retry and self.tries <= <uint32_t>self.rule.attempts and self.in_budget():
            return self.retry(self.backoff())
        return self.fail(503, F_CONNECT)

    cdef int on_response_info(self, const uint8_t *base, ef_head *head) except -1:
        if head.response_status != 100:  # the proxy has answered or stripped Expect itself
            self.down.response_info(base, head)
        return 0

    cdef int on_response_head(self, const uint8_t *base, ef_head *head) except -1:
        cdef int64_t now = self.engine.now_us()
        if self.head_pending:  # an answer to nothing
            self.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
            self.fail(502, F_PROTOCOL)
            return 1
        self.upstream_us = now - self.sent
        if head.response_status == 101 and not self.upgrade:
            self.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
            self.up.drop()
            self.up = None
            self.fail(502, F_PROTOCOL)
            return 1
        if self.rule.has_retry and head.response_status in self.rule.retry_codes and self.may_retry(True):
            self.up.drop()
            self.up = None
            self.retry(self.backoff())
            return 1
        self.status = head.response_status
        self.started_response = True
        if self.rule.request_timeout <= 0 and self.route_deadline:
            self.route_deadline = 0
        self.idle_deadline = self.engine.wheel.now + self.settings.stream_idle_timeout
        if head.response_status == 101:
            self.tunnel = True
            self.route_deadline = self.try_deadline = 0
            self.engine.count(G_TUNNELS_ACTIVE)
        self.rearm()
        self.down.response_head(self, base, head)
        return 0

    cdef int on_response_body(self, const uint8_t *data, size_t n) except -1:
        self.bytes_out += n
        self.idle_deadline = self.engine.wheel.now + self.settings.stream_idle_timeout
        return self.down.response_body(data, n)

    cdef int on_response_flush(self) except -1:
        self.down.response_flush()
        if self.down.write_paused and self.up is not None:
            self.up.bulk = False
            self.up.pause()
        return 0

    cdef int on_response_end(self) except -1:
        self.up = None
        self.down.response_end()
        return self.finish()

    cdef int on_up_lost(self, int why) except -1:
        cdef Upstream up = self.up
        cdef Endpoint endpoint = self.endpoint
        self.up = None
        if self.started_response:
            if self.tunnel:
                self.down.closing = True
                return self.finish()
            endpoint.failed()
            return self.abort(F_PROTOCOL if why == LOST_PROTOCOL else F_RESET)
        if why == LOST_PROTOCOL:
            endpoint.failed()
            return self.fail(502, F_PROTOCOL)
        if not up.got_bytes:
            if self.head_pending:  # not a byte was written: as good as a failed connect
                if self.tries < 4 and self.in_budget():
                    self.flags |= F_RETRIED
                    return self.retry(0)
            elif up.served and self.may_retry(False):
                return self.retry(0)
            elif self.rule.has_retry and self.may_retry(True) and idempotent(self.method):
                endpoint.failed()
                return self.retry(self.backoff())
        endpoint.failed()
        return self.fail(502, F_RESET)

    cdef int on_up_writable(self, bint writable) except -1:
        if writable:
            self.down.resume()
        else:
            self.down.pause()
        return 0

    # --- tries -----------------------------------------------------------------------------------------------------

    cdef bint in_budget(self) except -1:
        cdef int64_t limit
        if self.retrying:
            return True
        limit = self.engine.active * RETRY_BUDGET_PERCENT // 100
        if limit < RETRY_BUDGET_MIN:
            limit = RETRY_BUDGET_MIN
        if self.engine.retrying >= limit:
            self.engine.count(G_RETRIES_OVER_BUDGET)
            return False
        self.retrying = True
        self.engine.retrying += 1
        return True

    cdef bint may_retry(self, bint by_route) except -1:
        """A request that may have reached a backend may go out again only if its bytes are still here, and either it is idempotent
        and its connection was an old one, or the route's retry asks for it."""
        if not self.keeps_body or self.upgrade:
            return False
        if self.expects_body and not self.body_done:
            return False
        if by_route:
            if self.tries > <uint32_t>self.rule.attempts:
                return False
        elif not idempotent(self.method) or self.tries > 3:
            return False
        return self.in_budget()

    cdef int64_t backoff(self) noexcept:
        """Exponential with full jitter; the cap is ten times the base."""
        cdef int64_t base = self.rule.backoff
        cdef int64_t span = base << (self.tries - 1 if self.tries < 5 else 4)
        if span > base * 10:
            span = base * 10
        if span <= 0:
            return 0
        return base // 2 + <int64_t>(ef_random(self.engine.random) % <uint64_t>(span + 1)) // 2

    cdef int retry(self, int64_t wait) except -1:
        self.flags |= F_RETRIED
        self.engine.count(G_RETRIES)
        if self.rule.row != NULL:
            ef_stat_add(&self.rule.row.cells[C_RETRIES], 1)
        self.try_deadline = 0
        self.head_pending = False
        if wait <= 0:
            return self.backend.cluster.acquire(self, self.tried)
        self.retry_at = self.engine.wheel.now + wait
        return self.rearm()

    cdef int rearm(self) except -1:
        cdef int64_t at = self.idle_deadline
        if self.route_deadline and (at == 0 or self.route_deadline < at):
            at = self.route_deadline
        if self.try_deadline and (at == 0 or self.try_deadline < at):
            at = self.try_deadline
        if self.retry_at and (at == 0 or self.retry_at < at):
            at = self.retry_at
        if at and not self.finished:
            self.engine.wheel.arm(self, at)
        return 0

    cdef int on_deadline(self, int64_t now) except -1:
        if self.finished:
            return 0
        if self.retry_at and self.retry_at <= now:
            self.retry_at = 0
            self.rearm()
            return self.backend.cluster.acquire(self, self.tried)
        if self.route_deadline and self.route_deadline <= now:
            return self.on_timeout(F_TIMEOUT)
        if self.try_deadline and self.try_deadline <= now:
            self.try_deadline = 0
            if self.endpoint is not None:
                self.endpoint.failed()
            if (
                not self.started_response and self.rule.has_retry and idempotent(self.method)
                and (504 in self.rule.retry_codes or not self.rule.retry_codes) and self.may_retry(True)
            ):
                self.drop_upstream()
                self.rearm()
                return self.retry(self.backoff())
            return self.on_timeout(F_TIMEOUT)
        if self.idle_deadline and self.idle_deadline <= now:
            return self.on_timeout(F_IDLE)
        return self.rearm()

    cdef int on_timeout(self, uint32_t flag) except -1:
        if self.rule.row != NULL:
            ef_stat_add(&self.rule.row.cells[C_TIMEOUTS], 1)
        if self.started_response:
            return self.abort(flag)
        if self.endpoint is not None and self.up is not None:
            self.endpoint.failed()
        return self.fail(504, flag)

    # --- ends ------------------------------------------------------------------------------------------------------

    cdef int drop_upstream(self) except -1:
        """Let go of the try in progress, whatever its state."""
        cdef Upstream up = self.up
        self.ticket += 1
        self.waiting = False
        self.head_pending = False
        self.up = None
        if up is not None:
            up.drop()
        return 0

    cdef int answer(self, int status, bytes lines, uint32_t flag) except -1:
        """The proxy's own answer, without a body."""
        self.flags |= flag
        self.status = status
        self.drop_upstream()
        self.down.answer(status, lines, b"", self, self.method == EF_M_HEAD)
        return self.finish()

    cdef int fail(self, int status, uint32_t flag) except -1:
        """The proxy's own answer to a failure, with a short reason."""
        self.flags |= flag
        self.status = status
        self.drop_upstream()
        self.down.answer(status, b"", failure_text(status, flag), self, self.method == EF_M_HEAD)
        return self.finish()

    cdef int abort(self, uint32_t flag) except -1:
        """The response cannot be completed: a reset says so, a proper end would lie."""
        self.flags |= flag
        self.drop_upstream()
        self.down.response_abort()
        return self.finish()

    cdef int client_gone(self) except -1:
        """The client's connection has ended, or what it sends is not to be trusted any more."""
        self.flags |= F_CLIENT_GONE
        return self.finish()

    cdef int tunnel_closed(self) except -1:
        """The client has closed its half of a tunnel: what it sent goes out, then both sides close."""
        cdef Upstream up = self.up
        self.up = None
        if up is not None:
            up.user = None
            up.cluster.done(up.endpoint)
            up.shut(False)
        self.down.closing = True
        return self.finish()

    cdef int finish(self) except -1:
        cdef Mirror mirror
        cdef ef_stat_row *row
        cdef int64_t took
        cdef int kind
        if self.finished:
            return 0
        self.finished = True
        self.drop_upstream()
        self.engine.wheel.disarm(self)
        self.engine.active -= 1
        self.engine.count_down(G_REQUESTS_ACTIVE)
        if self.tunnel:
            self.engine.count_down(G_TUNNELS_ACTIVE)
        if self.retrying:
            self.engine.retrying -= 1
        if self.mirrors is not None and not self.body_done:
            for mirror in self.mirrors:
                mirror.stop()
        took = self.engine.now_us() - self.started
        row = self.rule.row if self.rule is not None else self.engine.unmatched
        kind = self.status // 100 - 1
        if self.flags & F_CLIENT_GONE or kind < 0 or kind > 4:
            kind = C_ABORTED
        ef_stat_add(&row.cells[kind], 1)
        ef_stat_add(&row.cells[C_BYTES_RECEIVED], self.bytes_in)
        ef_stat_add(&row.cells[C_BYTES_SENT], self.bytes_out)
        ef_stat_add(&row.cells[C_DURATION_US], took)
        ef_stat_add(&row.cells[C_UPSTREAM_US], self.upstream_us)
        ef_stat_add(&row.cells[C_BUCKETS + ef_stat_bucket(took)], 1)
        if self.raw.size:
            log_exchange(self.engine, self, took)
        return self.down.exchange_done(self)


cdef bytes failure_text(int status, uint32_t flag):
    if flag & F_NO_ENDPOINT:
        return b"no healthy endpoint\n"
    if flag & F_OVERFLOW:
        return b"too many connections and requests wait for this backend\n"
    if flag & F_CONNECT:
        return b"the backend could not be reached\n"
    if flag & F_RESET:
        return b"the backend closed the connection before it answered\n"
    if flag & F_PROTOCOL:
        return b"the backend's answer was not valid HTTP\n"
    if flag & F_IDLE:
        return b"nothing was sent or received for too long\n"
    if status == 504:
        return b"the backend did not answer in time\n"
    return b"the request was not valid\n"
