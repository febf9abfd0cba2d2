# Exchange: one request in flight: match, filters, backend and end.
#
# In: a scanned request head and body bytes from the client's codec. Out: a request at a backend (attempts.pyx), or an answer. It ends
# exactly once (finish), with one answer or one aborted connection, and owns no timer but its own. Its parts have their states in tables:
# Body (body.pyx), RetryState (retry_state.pyx), AuthFlow (policy/auth_flow.pyx; made when a policy holds the request).

cdef Exchange make_exchange(Inbound down):
    """Of a constructor's arguments Python would make a tuple, for each request."""
    cdef Exchange ex = down.engine.freelist.take()
    ex.down = down
    ex.engine = down.engine
    return ex


@cython.final
cdef class Exchange(UpstreamUser):
    def __cinit__(self):
        self.body, self.retry = Body.__new__(Body), RetryState.__new__(RetryState)

    def __dealloc__(self):
        out_free(&self.head)
        out_free(&self.raw)

    # --- the request -----------------------------------------------------------------------------------------------

    cdef int begin(self, const uint8_t *base, ef_head *head) except -1:
        """Route the request; afterwards it is answered, or on its way to a backend."""
        cdef Peer peer = self.down.peer
        cdef PortTable port = peer.port
        cdef Engine engine = self.engine
        cdef const uint8_t *path = base + head.target_off
        cdef const uint8_t *host = base + head.host_off
        cdef size_t path_len = head.path_len, query_len = 0
        cdef const uint8_t *query = NULL
        cdef ef_request request
        cdef ListenerTable named
        cdef Routed at
        self.settings = port.settings
        self.client = peer.address
        self.https = peer.tls
        self.started, self.method = engine.reactor.now_us(), head.method
        self.upgrade = head.upgrade and head.body == EF_BODY_NONE  # with a body it is an ordinary request
        self.wants_tunnel = self.upgrade
        self.body.expected = head.body != EF_BODY_NONE
        self.body.unsized = self.body.expected and head.body != EF_BODY_LENGTH
        self.takes_trailers = head.te_trailers
        self.grpc_status = -1
        self.body.announced = head.content_length if head.body == EF_BODY_LENGTH else 0
        self.body.left = -1 if self.body.unsized else <int64_t>self.body.announced
        if head.grpc:
            begin_grpc(self, base, head)
        engine.active += 1
        engine.count(G_REQUESTS_ACTIVE)
        port.approach_table()
        keep_head(self, base, head)
        if head.target_len > path_len:
            query = path + path_len + 1
            query_len = head.target_len - path_len - 1
        if path_len == 1 and path[0] == c"*":
            request.path = <const uint8_t *>b"/"
            request.path_len = 1
        elif settle_path(self, base, head, query, query_len, &request):
            path, path_len = request.path, request.path_len
        else:
            return 0
        self.listener = port.find(host, head.host_len)
        if peer.sni is not None:
            named = port.find(<const uint8_t *>PyBytes_AS_STRING(peer.sni), PyBytes_GET_SIZE(peer.sni))
            if named is not self.listener and named is not None and self.listener is not None:
                engine.count(G_MISDIRECTED)
                return self.answer(421, b"", F_MISDIRECTED)
        if self.listener is None:
            if not port.listeners:
                self.down.refuse_more()  # nothing is served here any more
                if port.number in engine.stream_tables.served:  # at other addresses, or other clients, it is
                    return self.answer(421, b"", F_MISDIRECTED)
            engine.count(G_NO_LISTENER)
            return self.answer(404, b"", F_NO_ROUTE)
        self.settings = self.listener.settings
        if self.listener.traces:
            engine.observer.start_trace(self, self.listener.trace_share, base, head)
        learn_client(self, base, head)
        if self.listener.client_check is not None and self.listener.client_check.refuse(self):
            return 0
        request.query, request.query_len, request.method = query, query_len, head.method
        request.base, request.spans, request.n_spans = base, head.spans, head.n_spans
        at.base, at.head, at.path, at.path_len, at.prefix_len = base, head, path, path_len, 0
        at.query, at.query_len, at.hidden, at.given = query, query_len, 0, 0
        if self.listener.filters is not None and self.listener.filters.filter(self, &at, &request) != ADMITTED:
            return 0
        return self.route(&at, &request)

    cdef int route(self, Routed *at, ef_request *request) except -1:
        """Find its rule, and what speaks against it there; its head may be a copy with lines of its listener's filters."""
        cdef PortTable port = self.down.peer.port
        cdef Engine engine = self.engine
        cdef ef_head *head = at.head
        cdef ef_hit hit
        self.rule = port.match(self.listener, at.base + head.host_off, head.host_len, request, &hit)
        if self.rule is None:
            engine.count(G_NO_ROUTE)
            return self.answer(404, b"", F_NO_ROUTE)
        if self.rule.policy_chain is not None:
            self.rule.policy_chain.redact(self, at.base, head, at.query, at.query_len)
        if (
            head.notes & EF_NOTE_PARAMETERS and self.settings.path_parameters == PARAMETERS_KEEP
            and not is_read_alike(self, at, request, &hit)
        ):
            self.rule = None
            engine.count(G_PATH_REFUSED)
            return self.fail(400, F_INVALID)
        if self.rule.status:
            return self.answer(self.rule.status, b"", F_INVALID)
        prefetch_row(self.rule.row)  # counted in when the exchange ends
        self.body.limit = self.settings.body_size
        self.idle_timeout = self.settings.stream_idle_timeout
        self.request_timeout = self.rule.request_timeout
        if self.rule.traffic is not None:
            if self.rule.traffic.apply(self):
                return 0
            if self.rule.traffic.overrides is not None and self.rule.traffic.overrides.asks:
                keep_error_request(self, at)
        if self.body.limit and self.body.announced > self.body.limit:
            return self.refuse_body()
        self.backend = self.rule.choose() if self.rule.traffic is None else choose_backend(self, at)
        if self.backend is None:
            return self.answer(500, b"", F_INVALID)
        if self.backend.traffic is not None and self.backend.traffic.apply_backend_policy(self):
            return 0
        read_session(self, at)
        if self.backend.cors is not None and apply_cors(self, at.base, head):
            return 0
        at.prefix_len = hit.prefix_len
        if self.rule.early_limits is not None and self.engine.limiter.refuses(self, request, self.rule.early_limits):
            return 0
        if self.rule.policy_chain is not None and self.rule.policy_chain.evaluate(self, at, request) != ADMITTED:
            return 0
        return self.admit(at, request)

    cdef int admit(self, Routed *at, const ef_request *request) except -1:
        """Nobody speaks against the request: count it, and send it where its rule says."""
        cdef bytes target
        if self.body.shown and not self.body.keep_auth_body(self):
            return 0
        if self.rule.traffic is not None and self.rule.traffic.inject_fault(self, at, request):
            return 0
        if self.rule.late_limits is not None and self.engine.limiter.refuses(self, request, self.rule.late_limits):
            return 0
        if self.rule.limits is not None:
            self.decision = self.engine.limiter.ask(self, request)
            if self.decision is not None and self.decision.left == 0 and (self.decision.over or self.decision.failed):
                return end_decision(self)
        if self.backend.redirect is not None:
            target = self.backend.redirect.locate(self, at)
            if target is None:
                return reply(self, 500, b"", F_INVALID)
            return reply(self, self.backend.redirect.status, b"location: " + target + b"\r\n", F_REDIRECT)
        if self.rule.direct is not None:
            return reply_direct(self)
        if self.backend.cluster is None:
            return reply(self, self.backend.status, b"", F_INVALID)
        return self.forward(at)

    cdef int forward(self, Routed *at) except -1:
        """Write the backend's request head; its bytes are gone when the limits' answer comes."""
        cdef int64_t now = self.engine.wheel.now
        cdef bytes rewritten = None
        if self.backend.path_kind == 3 and at.path[0] == c"/":
            rewritten = self.backend.pattern.replace(at.path, at.path_len)
            if rewritten is None:
                return reply(self, 500, b"", F_INVALID)
        if self.grpc:
            bound_by_client(self, at.base, at.head)
        if self.web is not None:
            self.web.begin_request(at.base, at.head)
        if self.body.trailers.size:
            self.body.sift_trailers(self)
        write_request_head(self, at.base, at.head, at.path, at.path_len, at.query, at.query_len, at.prefix_len, rewritten)
        self.backend.cluster.active += 1
        self.forwarded = self.body.replayable = True
        self.idle_deadline = now + self.idle_timeout
        if self.request_timeout > 0 and self.route_deadline == 0:  # else it has waited to enter
            self.route_deadline = (self.since or now) + self.request_timeout
        if self.timeout_at:
            write_timeout(self)
        if self.body.limit and self.body.received > self.body.limit:  # of a body that came before its rule was known
            return self.refuse_body()
        if self.decision is not None and self.decision.left:
            return self.rearm()
        return self.body.start(self)

    cdef int refuse_body(self) except -1:
        self.engine.count(G_BODY_TOO_LARGE)
        self.down.refuse_more()
        return self.answer(413, b"", F_TOO_LARGE)

    cdef bytes origin(self):
        """The client's address, of IPv6 the network that one client has. A trusted proxy that does not say whose request it brings
        is not its client."""
        cdef uint8_t address[INET_SIZE]
        if not inet_read_bytes(self.client, address) or is_trusted(self.settings, self.client):
            return None
        return address[:INET_SIZE] if inet_is_v4(address) else address[:INET_CLIENT]

    # --- what its client sends and takes (inbound.pyx) --------------------------------------------------------------

    cdef int request_body(self, iovec *iov, int n, size_t total, int64_t left) except -1:
        """Body bytes from the client, without framing; valid during the call. `left`: how many more there are; -1: not known."""
        if self.web is not None and self.web.text and not self.tunnel:
            return self.web.request_body(self, iov, n, left)
        return self.body.take(self, iov, n, total, left)

    cdef int request_trailers(self, const uint8_t *lines, size_t n) except -1:
        """Fields behind the body, "name: value" lines, valid during the call; request_end follows."""
        return self.body.take_trailers(self, lines, n)

    cdef int request_end(self) except -1:
        """The client's request is complete."""
        return self.body.end(self)

    cdef int flush(self) except -1:
        """End of what the client sent for now: a head that waited for body bytes goes out alone."""
        cdef AuthFlow auth = self.auth
        if auth is not None:
            return auth.advance(AUTH_READ_END)
        if self.body.state == BODY_DEFERRED:
            return self.body.go(self)
        if self.body.state == BODY_GATHERING:
            return self.body.gather(self)
        if self.retry.state == TRY_CONNECTED and self.up is not None:
            return self.write(NULL, 0, 0, self.body.done)
        return 0

    cdef int malformed(self) except -1:
        """What comes is no body of its kind."""
        self.down.refuse_more()
        return self.abort(F_INVALID) if self.retry.state == TRY_ANSWERED else self.fail(400, F_INVALID)

    cdef int allow_body(self) except -1:
        """The client waits for leave to send its body: it has it once its limits have let it pass, or who judges it is shown its body."""
        if self.auth is not None and self.auth.state != AUTH_BODY_WAIT:
            return 0
        return self.down.send_continue() if self.decision is None or self.decision.left == 0 else 0

    cdef int client_gone(self) except -1:
        """The client's connection has ended, or what it sends is not to be trusted any more."""
        self.flags |= F_CLIENT_GONE
        return self.finish()

    cdef int tunnel_closed(self) except -1:
        """The client has closed its half of a tunnel: what it sent goes out, then both sides close."""
        cdef Outbound up = self.up
        self.up = None
        if up is not None:
            up.hang_up()
        self.down.refuse_more()
        return self.finish()

    cdef int tunnel_half_closed(self) except -1:
        """An HTTP/2 client has ended its half (RFC 8441 5; browsers do so with a WebSocket's close frame): the backend hears of it behind
        what was sent, and has the last word."""
        return self.up.end_tunnel() if self.up is not None else self.tunnel_closed()

    cdef int on_down_writable(self) except -1:
        """The client takes the response again."""
        self.read_on()
        if self.bandwidth is not None and self.bandwidth.waits():
            return self.bandwidth.release()
        return self.up.resume() if self.up is not None else 0

    # --- its backend (attempts.pyx) ---------------------------------------------------------------------------------

    cdef int on_up_ready(self, Outbound up) except -1:
        return begin_attempt(self, up)

    cdef int on_up_failed(self, UpFailure why) except -1:
        return fail_connect(self, why)

    cdef int on_response_info(self, const uint8_t *base, ef_head *head) except -1:
        if head.response_status != 100:  # the proxy has answered or stripped Expect itself
            self.down.response_info(base, head)
        return 0

    cdef int on_response_head(self, const uint8_t *base, ef_head *head) except -1:
        return relay_head(self, base, head)

    cdef int on_response_body(self, const uint8_t *data, size_t n) except -1:
        if self.override is not None:
            return 0
        return relay_body(self, data, n) if self.bandwidth is None else self.bandwidth.put(data, n)

    cdef int on_response_flush(self) except -1:
        return relay_flush(self)

    cdef int on_response_trailers(self, const uint8_t *lines, size_t n) except -1:
        if self.bandwidth is not None and self.bandwidth.waits():
            return self.bandwidth.put_trailers(lines, n)
        return relay_trailers(self, lines, n)

    cdef int on_response_end(self) except -1:
        return self.bandwidth.end() if self.bandwidth is not None and self.bandwidth.waits() else relay_end(self)

    cdef int on_up_lost(self, int why) except -1:
        return on_backend_closed(self, why)

    cdef int on_up_writable(self, bint writable) except -1:
        return resume_sending(self) if writable else self.down.pause() if self.tunnel or not self.body.done else 0

    cdef bint takes_bulk(self) noexcept:
        return self.bandwidth is None and self.down.has_room() and not may_encode(self)

    cdef bint forwards_bulk(self) noexcept:
        """A large piece of the request can go on at once."""
        return self.up is not None and self.up.has_room()

    cdef int write(self, iovec *iov, int n, size_t total, bint end) except -1:
        cdef Out *head = NULL
        if self.retry.state == TRY_CONNECTED:
            self.retry.enter(TRY_SENT)
            self.retry.sent = self.engine.reactor.now_us()
            head = &self.head
        self.up.write(head, iov, n, total, end, &self.body.trailers)
        if self.up is not None and self.up.write_paused:
            if self.send_timeout:
                self.send_left = self.send_left + total if self.send_deadline else self.up.unsent()
                if self.send_deadline == 0:
                    self.send_deadline = self.engine.wheel.now + self.send_timeout
                    self.rearm()
            if not end:
                self.down.pause()
        return 0

    cdef int drop_upstream(self, Cut why) except -1:
        """Let go of the attempt in progress, whatever its state."""
        cdef Outbound up = self.up
        self.ticket += 1
        self.stop_waiting()
        self.read_on()
        if self.retry.state != TRY_ANSWERED:
            self.retry.enter(TRY_NONE)
        self.send_deadline = 0
        self.up = None
        if up is not None:
            up.drop(why)
        return 0

    # --- deadlines (attempts.pyx) -----------------------------------------------------------------------------------

    cdef int rearm(self) except -1:
        cdef int64_t at = stricter(stricter(self.idle_deadline, self.route_deadline), stricter(self.client_deadline, self.retry.deadline))
        at = stricter(stricter(at, self.long_at), stricter(self.send_deadline, self.ask_at))
        if at and not self.finished:
            self.engine.wheel.arm(self, at)
        return 0

    cdef int on_deadline(self, int64_t now) except -1:
        return process_deadlines(self, now)

    cdef int on_timeout(self, uint32_t flag) except -1:
        return time_out(self, flag)

    cdef int bound_answer(self) except -1:
        """The request is complete, and nobody judges it any more: where no timeout is said, the default bounds the time to the answer's head."""
        if self.request_timeout >= 0 or self.upgrade or self.retry.state == TRY_ANSWERED or self.settings.route_timeout == 0:
            return 0
        self.route_deadline = self.engine.wheel.now + self.settings.route_timeout
        return self.rearm()

    # --- places that others need (eviction.pyx, upstream/bodyshare.pyx) ---------------------------------------------

    cdef bint comes(self) noexcept:
        return (
            self.settings.body_rate == 0 or self.down.paused()
            or self.progress_until > self.engine.wheel.now + BODY_GRACE_MS - BODY_PATIENCE_MS
        )

    cdef bint keeps_waiting(self) noexcept:
        return (
            self.up is not None and self.retry.state != TRY_ANSWERED and not self.up.write_paused and not self.down.paused()
            and self.settings.body_rate != 0
        )

    cdef int share_left(self) except -1:
        return self.body.gather(self) if self.body.state == BODY_GATHERING and not self.finished else 0

    cdef int leave_share(self) except -1:
        cdef BodyShare joined_share = self.joined_share
        self.joined_share = None
        return joined_share.forget(self)

    cdef int evict(self) except -1:
        self.down.refuse_more()
        if self.rule.row != NULL:
            ef_stat_add(&self.rule.row.cells[C_TIMEOUTS], 1)
        return self.fail(408, F_TIMEOUT)

    cdef int read_on(self) except -1:
        """It is not the client that is waited for."""
        cdef AnswerShare slow = self.slow  # which may be nobody else's when it has left
        return slow.leave(self) if slow is not None else 0

    cdef int cut_answer(self) except -1:
        """Others wait for the connection."""
        return self.abort(F_SLOW_READER)

    cdef int64_t inactive_since(self) noexcept:
        return client_inactive_since(self)

    cdef int preempt(self) except -1:
        return preempt_exchange(self)

    cdef int64_t slow_rate(self):
        return slow_rate_of(self)

    cdef int yield_connection(self) except -1:
        return yield_connection_of(self)

    # --- ends ------------------------------------------------------------------------------------------------------

    cdef int answer(self, int status, bytes lines, uint32_t flag) except -1:
        """The proxy's own answer, without a body."""
        self.flags |= flag
        self.status = status
        self.drop_upstream(CUT_CANCEL)
        lines += limit_lines(self)
        return self.respond(status, lines + (self.cors_lines or b""), b"")

    cdef int fail(self, int status, uint32_t flag) except -1:
        """The proxy's own answer to a failure, with a short reason."""
        self.flags |= flag
        self.status = status
        self.drop_upstream(cut_of(flag))
        return self.respond(status, (self.cors_lines or b"") + limit_lines(self), failure_text(status, flag, UP_STARVED if self.retry.starved else self.failure))

    cdef int respond(self, int status, bytes lines, bytes reason) except -1:
        """Every answer of the proxy's own to a request leaves here."""
        cdef Override found = override_of(self, status, OF_NO_ENDPOINTS if self.flags & F_NO_ENDPOINT and status == 503 else OF_GATEWAY)
        if found is not None:
            return respond_override(self, found, status, lines, reason)
        lines = add_own_headers(self, lines)
        if self.auth_result is not None:
            lines += self.auth_result.lines(self, NULL, NULL)
        if self.grpc:
            return respond_grpc(self, status, grpc_lines(self, status, reason), lines)
        self.down.answer(status, lines, reason, self.method == EF_M_HEAD)
        return self.finish()

    cdef int abort(self, uint32_t flag) except -1:
        """The response cannot be completed, and the client is to know."""
        self.flags |= flag
        self.drop_upstream(CUT_CANCEL if flag & F_SLOW_READER else cut_of(flag))  # which is no backend's fault
        if not (self.grpc and end_stream(self, flag)):
            self.down.abort(cut_of(flag))
        return self.finish()

    cdef int finish(self) except -1:
        cdef AuthFlow auth = self.auth
        cdef Mirror mirror
        if self.finished:
            return 0
        self.finished = True
        self.drop_upstream(CUT_CANCEL)
        if self.place is not None:
            self.complete()
        if self.lasts:
            leave_streams(self)
        if self.bandwidth is not None:
            self.bandwidth.stop()
        if auth is not None:
            auth.leave()
        if self.decision is not None and self.decision.held is not None:
            self.engine.limiter.release(self.decision)
        if self.joined_share is not None:
            self.leave_share()
        self.body.forget()  # whoever still knows this exchange (a connection that is being made, a queue) holds no body
        if self.body.borrowed:
            self.engine.body_buffer.give_back(self)
        self.engine.wheel.disarm(self)
        self.engine.active -= 1
        self.engine.count_down(G_REQUESTS_ACTIVE)
        if self.tunnel:
            self.engine.count_down(G_TUNNELS_ACTIVE)
        if self.forwarded:
            self.backend.cluster.active -= 1
        if self.retry.counted:
            self.backend.cluster.own[EF_SHARE_RETRIES] -= 1
        if self.body.mirrors is not None and not self.body.done:
            for mirror in self.body.mirrors:
                mirror.stop()
        record_end(self)
        self.down.done(self)
        return self.engine.freelist.give(self)
