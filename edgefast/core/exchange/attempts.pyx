# Attempts: the attempts of one request at a backend: connections, response events, retries, deadlines.
#
# In: a connection or why it failed, response events from an upstream codec, deadlines.
# Out: calls on the client's stream (inbound.pyx), or one of the three ends of Exchange (answer, fail, abort). Retry rules: RFC 9110 9.2.2
# and docs/reference/http1.md. Timeouts: HTTPRouteTimeouts. Without one, the default bounds the time from the complete request to the
# response head.

cdef class Attempts(UpstreamUser):
    # --- the ends, which Exchange knows -----------------------------------------------------------------------------

    cdef int fail(self, int status, uint32_t flag) except -1:
        raise NotImplementedError

    cdef int abort(self, uint32_t flag) except -1:
        raise NotImplementedError

    cdef int finish(self) except -1:
        raise NotImplementedError

    cdef int gather(self) except -1:
        raise NotImplementedError

    cdef int go(self) except -1:
        raise NotImplementedError

    # --- what is sent -----------------------------------------------------------------------------------------------

    cdef int flush(self) except -1:
        """End of what the client sent for now: a head that waited for body bytes goes out alone."""
        cdef AuthFlow auth_flow = (<RequestBody>self).auth_flow
        if auth_flow is not None:
            return auth_flow.advance(AUTH_READ_END)
        if self.deferred:
            self.deferred = False
            return self.go()
        if self.gathering:
            return self.gather()
        if self.head_pending and self.up is not None:
            return self.write(NULL, 0, 0, self.body_done)
        return 0

    cdef int write(self, iovec *iov, int n, size_t total, bint end) except -1:
        cdef Out *head = NULL
        if self.head_pending:
            self.head_pending = False
            head = &self.head
            self.sent = self.engine.reactor.now_us()
        self.up.write(head, iov, n, total, end, &self.trailers)
        if self.up is not None and self.up.write_paused:
            if self.send_timeout:
                self.send_left = self.send_left + total if self.send_deadline else self.up.unsent()
                if self.send_deadline == 0:
                    self.send_deadline = self.engine.wheel.now + self.send_timeout
                    self.rearm()
            if not end:
                self.down.pause()
        return 0

    cdef bint still_takes(self, int64_t now) except -1:
        """A backend that has something to take has taken a part of it since it was looked at last."""
        cdef size_t left = self.up.unsent() if self.up is not None else 0
        if left >= self.send_left and self.up is not None:
            return False
        self.send_left = left
        self.send_deadline = now + self.send_timeout if left else 0
        return True

    # --- the backend -----------------------------------------------------------------------------------------------

    cdef int on_up_ready(self, Outbound up) except -1:
        cdef iovec kept
        self.up = up
        self.tries += 1
        self.note_tried()
        up.begin(self, self.method, self.unsized, self.announced, (<Exchange>self).asked, self.takes_trailers)
        self.up_protocol = up.protocol
        if self.down.peer.port.log_wants_upstream:
            self.engine.observer.keep_upstream(<Exchange>self, up)
        self.head_pending = True
        if self.rule.backend_timeout:
            self.try_deadline = self.engine.wheel.now + self.rule.backend_timeout
            self.rearm()
        if self.timeout_at:
            write_timeout(self)
        if self.body.size:
            kept.iov_base = self.body.data
            kept.iov_len = self.body.size
            self.write(&kept, 1, self.body.size, self.body_done)
        elif self.body_done or self.tries > 1:
            self.write(NULL, 0, 0, self.body_done)
        elif not self.down.handing:
            self.flush()
        self.set_out()
        if self.up is not None and not self.up.write_paused:
            self.down.resume()
        return 0

    cdef int on_up_failed(self, UpFailure why) except -1:
        self.failure = why
        if why == UP_NO_ENDPOINT:
            return self.fail(503, F_NO_ENDPOINT)
        if why == UP_OVERFLOW or why == UP_REQUESTS or why == UP_SHUT:
            return self.fail(503, F_OVERFLOW)
        self.tries += 1
        self.note_tried()
        # nothing was sent: any method may go to another endpoint, each at most once
        if self.tries < 4 and self.has_untried(self.backend.cluster) and in_budget(self):
            return self.retry(0, 0, F_CONNECT)
        if not self.starved and self.rule.has_retry and self.tries <= <uint32_t>self.rule.attempts and in_budget(self):
            return self.retry(backoff(self, self.rule.backoff), 0, F_CONNECT)
        if self.grpc and grpc_repeats(self, GRPC_UNAVAILABLE):
            return self.retry(backoff(self, self.settings.grpc_backoff), 0, F_CONNECT)
        return self.fail(503, F_CONNECT)

    cdef int on_response_info(self, const uint8_t *base, ef_head *head) except -1:
        if head.response_status != 100:  # the proxy has answered or stripped Expect itself
            self.down.response_info(base, head)
        return 0

    cdef int on_response_head(self, const uint8_t *base, ef_head *head) except -1:
        cdef int64_t now = self.engine.reactor.now_us(), wait
        if self.head_pending:  # an answer to nothing
            self.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
            self.fail(502, F_PROTOCOL)
            return 1
        self.upstream_us = now - self.sent
        report_head(self, base, head)
        if self.rule.has_retry and head.response_status in self.rule.retry_codes and may_retry(self, self.rule.attempts):
            return self.repeat(backoff(self, self.rule.backoff), head.response_status)
        if self.grpc and self.settings.grpc_codes:
            wait = grpc_repeats_after(self, base, head)
            if wait >= 0:
                return self.repeat(wait, head.response_status)
        if self.starved:  # "additional retries MUST return a 503 response" (XBackendTrafficPolicy retryConstraint)
            self.fail(503, F_OVERFLOW)
            return 1
        if self.rule.traffic is not None and override_backend(<Exchange>self, head):
            if head.body == EF_BODY_NONE or (head.body == EF_BODY_LENGTH and head.content_length <= REPLAY_LIMIT):
                return 0  # its connection is worth so many bytes
            end_override(<Exchange>self)
            return 1
        self.status = head.response_status
        self.started_response = True
        if self.grpc:
            note_grpc_head(self, base, head)
        if self.request_timeout <= 0 and self.route_deadline:
            self.route_deadline = 0
        self.idle_deadline = self.engine.wheel.now + self.idle_timeout
        if self.up.tunnel:
            self.tunnel = True
            self.route_deadline = self.try_deadline = 0
            self.engine.count(G_TUNNELS_ACTIVE)
        else:
            if self.lasts:
                leave_streams(self)
            if may_last(head):
                self.long_at = self.engine.wheel.now + STREAM_AFTER_MS
        self.rearm()
        if self.web is not None:
            self.web.begin_answer(base, head)
        elif self.rule.traffic is not None and self.rule.traffic.compression is not None:
            self.compressor = self.rule.traffic.compression.begin(<Exchange>self, base, head)
        if self.session is not None:
            self.session.policy.write_session(<Exchange>self)
        self.down.response_head(base, head)
        return 0

    cdef int repeat(self, int64_t wait, int status) except -1:
        """Not this answer: 1, as on_response_head has it."""
        self.up.drop(CUT_CANCEL)
        self.up = None
        self.retry(wait, status, 0)
        return 1

    cdef int on_response_body(self, const uint8_t *data, size_t n) except -1:
        if self.override is not None:
            return 0
        self.idle_deadline = self.engine.wheel.now + self.idle_timeout
        if self.compressor is not None and self.compressor.encoder is not None:
            return self.compressor.put(<Exchange>self, data, n)
        self.bytes_out += n
        return self.down.response_body(data, n) if self.web is None else self.web.answer_body(self.down, data, n)

    cdef int on_response_flush(self) except -1:
        if self.override is not None:
            return 0
        hand_over(<Exchange>self, False)
        self.down.response_flush()
        handed_over(<Exchange>self)
        if self.down.write_paused and self.up is not None:
            self.up.pause()
            if self.slow is None and not self.tunnel and not self.up.shares and self.settings.answer_rate:
                return self.backend.cluster.slow_answers().hold(self)
        return 0

    cdef bint takes_bulk(self) noexcept:
        return self.down.has_room() and not may_encode(<Exchange>self)

    cdef bint forwards_bulk(self) noexcept:
        """A large piece of the request can go on at once."""
        return self.up is not None and self.up.has_room()

    cdef int on_down_writable(self) except -1:
        """The client takes the response again."""
        self.read_on()
        return self.up.resume() if self.up is not None else 0

    cdef int on_response_trailers(self, const uint8_t *lines, size_t n) except -1:
        cdef Out *kept = &self.engine.trailers
        if self.override is not None:
            return 0
        if self.grpc:
            note_grpc_trailers(self, lines, n)
        keep_trailers(kept, lines, n, self.backend.response_ops, True)
        if self.web is not None and self.web.translates:
            return self.web.answer_trailers(kept.data, kept.size)
        if self.compressor is not None:  # they come behind the last of it
            hand_over(<Exchange>self, True)
            self.compressor.end(<Exchange>self)
        return self.down.response_trailers(kept.data, kept.size) if kept.size else 0

    cdef int on_response_end(self) except -1:
        self.up = None
        report_end(self)
        if self.override is not None:
            return end_override(<Exchange>self)
        try:
            hand_over(<Exchange>self, True)
            self.down.response_end()
            return self.finish()
        except BaseException:
            self.down.abort(CUT_INTERNAL)  # nobody else has this exchange in hand: its client would wait for ever
            raise

    cdef int on_up_lost(self, int why) except -1:
        cdef Outbound up = self.up
        self.up = None
        if self.override is not None:
            return end_override(<Exchange>self)
        if self.started_response:
            if self.tunnel:
                self.down.refuse_more()
                return self.finish()
            report_loss(self)
            return self.abort(F_PROTOCOL if why == LOST_PROTOCOL else F_RESET)
        if why == LOST_SWITCHED:
            self.upstream_us = self.engine.reactor.now_us() - self.sent
            return self.fail(502, F_PROTOCOL)
        if why == LOST_PROTOCOL:
            report_loss(self)
            return self.fail(502, F_PROTOCOL)
        if not up.got_bytes:
            if up.unprocessed:
                if may_go_again(self, up):
                    return self.retry(0, 0, F_RESET)
            elif up.served and idempotent(self.method) and may_retry(self, 3):
                return self.retry(0, 0, F_RESET)
            elif self.rule.has_retry and idempotent(self.method) and may_retry(self, self.rule.attempts):
                report_loss(self)
                return self.retry(backoff(self, self.rule.backoff), 0, F_RESET)
            if self.grpc and grpc_repeats(self, GRPC_UNAVAILABLE):
                report_loss(self)
                return self.retry(backoff(self, self.settings.grpc_backoff), 0, F_RESET)
        report_loss(self)
        # A route that retries knows that its backends may be away: 503, as without a connection (conformance HTTPRouteRetryConnectionError).
        return self.fail(503 if self.starved or (self.rule.has_retry and not up.got_bytes) else 502, F_RESET)

    cdef int on_up_writable(self, bint writable) except -1:
        if writable:
            self.send_deadline = 0
            # until now it was the backend that kept us waiting
            self.progress_until = self.trusted_until = self.engine.wheel.now + BODY_GRACE_MS
            self.held_at = self.engine.wheel.now
            self.brought = 0
            self.down.resume()
        elif self.tunnel or not self.body_done:
            self.down.pause()
        return 0

    cdef int read_on(self) except -1:
        """It is not the client that is waited for."""
        cdef AnswerShare slow = self.slow  # which may be nobody else's when it has left
        return slow.leave(self) if slow is not None else 0

    cdef int cut_answer(self) except -1:
        """Others wait for the connection."""
        return self.abort(F_SLOW_READER)

    # --- tries -----------------------------------------------------------------------------------------------------

    cdef int ask(self) except -1:
        """Begin a try: ask for a connection."""
        cdef Exchange ex = <Exchange>self
        self.reported_outlier = self.called = False
        if self.window is not None:
            self.window.count(self.backend.cluster)
        if ex.trace is not None and ex.trace.flags & 1:
            self.engine.observer.begin_try(ex)
        return self.backend.cluster.acquire(self)

    cdef int retry(self, int64_t wait, int status, uint32_t why) except -1:
        """The try is over, with that status or for that reason; another one comes in `wait` ms."""
        cdef Exchange ex = <Exchange>self
        if ex.trace is not None and ex.trace.try_began:
            self.engine.observer.end_try(ex, status, why, self.engine.reactor.now_us())
        self.up_protocol = None
        if self.tries > 1 or wait > 0 or why != F_RESET:
            self.bound = None  # a connection that had ended says nothing of its endpoint, once
        self.flags |= F_RETRIED
        self.engine.count(G_RETRIES)
        if self.rule.row != NULL:
            ef_stat_add(&self.rule.row.cells[C_RETRIES], 1)
        self.try_deadline = self.send_deadline = 0
        self.head_pending = False
        if wait <= 0:
            return self.ask()
        self.ask_at = self.engine.wheel.now + wait
        return self.rearm()

    cdef int rearm(self) except -1:
        cdef int64_t at = stricter(stricter(self.idle_deadline, self.route_deadline), stricter(self.client_deadline, self.try_deadline))
        at = stricter(stricter(at, self.long_at), stricter(self.send_deadline, self.ask_at))
        if at and not self.finished:
            self.engine.wheel.arm(self, at)
        return 0

    cdef int on_deadline(self, int64_t now) except -1:
        if self.finished:
            return 0
        if self.ask_at and self.ask_at <= now:
            self.ask_at = 0
            self.rearm()
            return self.gather() if self.gathering else self.ask()
        if self.long_at and self.long_at <= now:
            self.long_at = 0
            begin_lasting(self)
            if self.finished:
                return 0
        if self.client_deadline and self.client_deadline <= now:
            return self.on_client_timeout()
        if self.route_deadline and self.route_deadline <= now:
            return self.on_timeout(F_TIMEOUT)
        if self.try_deadline and self.try_deadline <= now:
            self.try_deadline = 0
            if (
                not self.started_response and self.rule.has_retry and idempotent(self.method)
                and (504 in self.rule.retry_codes or not self.rule.retry_codes) and may_retry(self, self.rule.attempts)
            ):
                report_loss(self)
                self.drop_upstream(CUT_TIMEOUT)
                self.rearm()
                return self.retry(backoff(self, self.rule.backoff), 0, F_TIMEOUT)
            return self.on_timeout(F_TIMEOUT)
        if self.send_deadline and self.send_deadline <= now and not self.still_takes(now):
            return self.on_timeout(F_TIMEOUT)
        if self.idle_deadline and self.idle_deadline <= now:
            return self.on_timeout(F_IDLE)
        return self.rearm()

    cdef int on_client_timeout(self) except -1:
        """As long as its client would wait. No fault of the backend's: whoever asks for a moment only would have it ejected."""
        if self.rule is not None and self.rule.row != NULL:
            ef_stat_add(&self.rule.row.cells[C_TIMEOUTS], 1)
        return self.abort(F_TIMEOUT) if self.started_response else self.fail(504, F_TIMEOUT)

    cdef int on_timeout(self, uint32_t flag) except -1:
        if self.rule is not None and self.rule.row != NULL:
            ef_stat_add(&self.rule.row.cells[C_TIMEOUTS], 1)
        if self.started_response:
            return self.abort(flag)
        # the client is late, not the backend
        if not self.body_done and (self.up is not None or self.gathering) and not self.down.paused():
            self.down.refuse_more()
            return self.fail(408, flag)
        if self.endpoint is not None and self.up is not None:
            report_loss(self)
        return self.fail(503 if self.starved else 504, flag)

    cdef int drop_upstream(self, Cut why) except -1:
        """Let go of the try in progress, whatever its state."""
        cdef Outbound up = self.up
        self.ticket += 1
        self.stop_waiting()
        self.read_on()
        self.head_pending = False
        self.send_deadline = 0
        self.up = None
        if up is not None:
            up.drop(why)
        return 0
