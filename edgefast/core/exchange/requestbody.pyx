# Request body: a body on its way to a backend: held back, kept for a retry, forwarded, copied for mirrors.
#
# In: body bytes without framing, valid during the call; the moment when the exchange may open a backend stream.
# Out: bytes for the connection, once one exists. If incomplete bodies hold many of a cluster's connections, the exchange waits for
# `bodyStart` bytes, the whole body, or `bodyStartTimeout`. If they hold all of them, a body of at most `bodyBuffer` bytes is buffered whole
# if possible (docs/reference/http1.md, "Slow bodies"). It must never hold more than REPLAY_LIMIT bytes and a read, except for what it
# borrows of BODY_GATHER_LIMIT.

cdef class RequestBody(Attempts):
    cdef bytes limit_lines(self):
        raise NotImplementedError

    cdef int set_off(self) except -1:
        """Nothing speaks against the request any more: ask a backend, or see how much of a body comes."""
        if self.rule.traffic is not None:
            self.rule.traffic.let_wait(<Exchange>self)
        if self.decision is not None:
            self.limit_lines()
            if not self.down.handing:  # it was waited for
                self.down.send_continue()
        if self.expects_body and not self.body_done and self.settings.body_start:
            self.gathering = True
            return self.rearm() if self.down.handing else self.gather()  # else the rest of this read decides
        return self.go()

    cdef int gather(self) except -1:
        """This is what has come for now."""
        cdef BodyShare share
        cdef int64_t now = self.engine.wheel.now
        cdef RequestBody held = self  # as in request_body
        cdef AuthFlow auth_flow = self.auth_flow
        cdef bint started = self.body.size >= self.settings.body_start
        if auth_flow is not None:
            return auth_flow.look()
        share = self.backend.cluster.bodies
        if share is None or not share.crowded(self.settings) or (started and not self.gathers_on(0)):
            return held.go()
        if self.late_at == 0:
            self.late_at = now + self.settings.body_start_timeout
        elif self.late_at <= now:
            share.serve()  # who needs a place more goes first
            if not share.waiting() and share.has_room(self):
                return held.go()
        if self.joined_share is None:
            self.joined_share = share
            share.gatherers[self] = None
        if started:
            self.down.resume()  # it was read no further while it waited for its limits
        if self.ask_at == 0:
            self.ask_at = self.late_at if self.late_at > now else now + (SHARE_LOOK_MS if started else SHARE_LATE_MS)
            return self.rearm()
        return 0

    cdef bint gathers_on(self, size_t total) except -1:
        """There is no room in the share, and with these bytes and those to come all of it fits here."""
        cdef BodyShare share = self.backend.cluster.bodies
        cdef size_t here = self.body.size + total
        cdef size_t more = here - self.settings.body_start - self.borrowed
        cdef uint64_t left = <uint64_t>self.left if self.left > 0 else 0
        if share is None or share.has_places(self.settings):
            return False
        if self.backend.mirrors is not None:  # a copy is never as large as that
            return False
        if here > self.settings.body_buffer or left > self.settings.body_buffer - here:
            return False
        return self.engine.body_buffer.reserve(self, more)

    cdef int share_left(self) except -1:
        return self.gather() if self.gathering and not self.finished else 0

    cdef int leave_share(self) except -1:
        cdef BodyShare joined_share = self.joined_share
        self.joined_share = None
        return joined_share.forget(self)

    cdef int go(self) except -1:
        """Start mirrors, ask for a connection."""
        if self.down.handing and self.down.defers:
            self.deferred = True
            return 0
        self.gathering = False
        self.ask_at = 0
        if self.joined_share is not None:
            self.leave_share()
        # on a connection for many a slow body keeps nobody from one
        self.streams = self.expects_body and not self.body_done and self.left != 0 and self.backend.cluster.protocol != SPEAKS_H2
        if self.upgrade:
            if not begin_tunnel(<Exchange>self):
                self.failure = UP_STREAMS
                return self.fail(503, F_OVERFLOW)
        elif self.backend.mirrors is not None:
            self.open_mirrors()
        self.rearm()
        return self.ask()

    cdef int open_mirrors(self) except -1:
        cdef MirrorTarget target
        cdef Mirror mirror
        cdef iovec kept
        for target in self.backend.mirrors:
            if target.due():
                mirror = Mirror.__new__(Mirror)
                if self.mirrors is None:
                    self.mirrors = []
                self.mirrors.append(mirror)
                mirror.open(<Exchange>self, target.cluster)
                if self.body.size:  # came before anybody was asked
                    kept.iov_base = self.body.data
                    kept.iov_len = self.body.size
                    mirror.request_body(&kept, 1, self.body.size)
                if self.trailers.size:
                    mirror.request_trailers(&self.trailers)
                if self.body_done:
                    mirror.request_end()
        return 0

    cdef int request_body(self, iovec *iov, int n, size_t total, int64_t left) except -1:
        """Body bytes from the client, without framing; valid during the call. `left`: how many more there are; -1: nobody knows."""
        if self.web is not None and self.web.text and not self.tunnel:
            return self.web.request_body(self, iov, n, left)
        return self.take_body(iov, n, total, left)

    cdef int malformed(self) except -1:
        """What comes is no body of its kind."""
        self.down.refuse_more()
        return self.abort(F_INVALID) if self.started_response else self.fail(400, F_INVALID)

    cdef int take_body(self, iovec *iov, int n, size_t total, int64_t left) except -1:
        """The same, as a backend gets them."""
        cdef int i
        cdef Mirror mirror
        cdef AuthFlow auth_flow = self.auth_flow  # which may be nobody else's when it has ended
        cdef RequestBody held = self  # the codec lets go of it when it ends in `go`
        self.bytes_in += total
        self.left = left
        if self.tunnel:
            self.idle_deadline = self.engine.wheel.now + self.idle_timeout
            return self.write(iov, n, total, False)
        if self.body_size and self.bytes_in > self.body_size:
            self.engine.count(G_BODY_TOO_LARGE)
            self.down.refuse_more()
            if self.started_response:
                return self.abort(F_TOO_LARGE)
            return (<Exchange>self).answer(413, b"", F_TOO_LARGE)
        self.idle_deadline = self.engine.wheel.now + self.idle_timeout
        self.progress(total)
        if auth_flow is not None:
            return auth_flow.take_body(iov, n, total)
        if self.gathering and (
            left == 0 or (self.body.size + total >= self.settings.body_start and not self.gathers_on(total))
        ):
            self.go()  # before this is copied: it may go on as it lies here
            if held.finished:
                return 0
        if self.mirrors is not None:
            for mirror in self.mirrors:
                mirror.request_body(iov, n, total)
        if self.keeps_body:
            if self.up is None or (
                self.body.size + total <= REPLAY_LIMIT
                and (self.rule.has_retry or self.up.may_refuse or idempotent(self.method) or (self.grpc and self.settings.grpc_codes))
            ):
                out_reserve(&self.body, total)
                for i in range(n):
                    out_raw(&self.body, iov[i].iov_base, iov[i].iov_len)
            else:
                self.forget_body()
        if self.up is None:
            if self.body.size >= REPLAY_LIMIT and not self.gathering:
                self.down.pause()
            return 0
        return self.write(iov, n, total, False)

    cdef int request_trailers(self, const uint8_t *lines, size_t n) except -1:
        """Fields behind the body, "name: value" lines, valid during the call; request_end follows."""
        cdef Mirror mirror
        if self.finished:
            return 0
        keep_trailers(
            &self.trailers, lines, n, self.backend.request_ops if self.backend is not None else None,
            self.settings.request_limits.underscore == EF_UNDERSCORE_ALLOW,
        )
        if self.sets is not None and self.trailers.size:  # of whoever judged it: its rule may name others by now
            drop_trailers(&self.trailers, self.sets)
            if self.auth_result is not None:
                self.auth_result.drop_trailers(&self.trailers)
        if self.rule is not None and self.rule.policy_chain is not None and self.trailers.size:
            self.rule.policy_chain.drop_matched_headers(&self.trailers)
        if self.mirrors is not None and self.trailers.size:
            for mirror in self.mirrors:
                mirror.request_trailers(&self.trailers)
        return 0

    cdef int sift_trailers(self) except -1:
        """They may have come before its rule was known: what that does to heads, and who judged it there, holds for them, too."""
        cdef bytes lines = self.trailers.data[:self.trailers.size]
        return self.request_trailers(<const uint8_t *>PyBytes_AS_STRING(lines), PyBytes_GET_SIZE(lines))

    cdef bint keep_auth_body(self) except -1:
        """A body that services were shown is one of those that have been let in; False: there is no room for it, and that was answered."""
        self.shown = False
        if self.backend.cluster is None:
            self.forget_body()
        elif not self.engine.body_buffer.reserve(self, self.body.size - REPLAY_LIMIT - self.borrowed):
            self.fail(503, F_OVERFLOW)
            return False
        return True

    cdef void forget_body(self) noexcept:
        """It went on, and is too large to go out again."""
        self.keeps_body = False
        out_free(&self.body)

    cdef int request_end(self) except -1:
        """The client's request is complete."""
        cdef Mirror mirror
        cdef AuthFlow auth_flow = self.auth_flow  # as above
        if self.web is not None and not self.web.whole():
            return self.malformed()
        self.body_done = True
        if self.mirrors is not None:
            for mirror in self.mirrors:
                mirror.request_end()
        if auth_flow is None:  # services have times of their own
            self.bound_answer()
        self.down.resume()  # whoever waits for an answer is read on: that is how we see that it left
        if auth_flow is not None:
            return auth_flow.request_end()
        if self.gathering:
            return self.go()
        if self.streams:
            if self.place is None and self.waiting:  # for a place, which it needs no more
                self.streams = False
                self.stop_waiting()
                return self.ask()
            self.complete()
        if self.up is not None:
            return self.write(NULL, 0, 0, True)
        return 0

    cdef int bound_answer(self) except -1:
        """The request is complete, and nobody judges it any more: where no timeout is said, the default bounds the time to the answer's head."""
        if self.request_timeout >= 0 or self.upgrade or self.started_response or self.settings.route_timeout == 0:
            return 0
        self.route_deadline = self.engine.wheel.now + self.settings.route_timeout
        return self.rearm()

    # --- its connection ----------------------------------------------------------------------------------------------

    cdef int on_up_ready(self, Outbound up) except -1:
        Attempts.on_up_ready(self, up)
        if self.borrowed and self.up is not None:  # all of it was written
            if self.body.size > REPLAY_LIMIT:
                self.forget_body()
            if not self.up.write_paused:  # else it waits to be sent
                self.engine.body_buffer.give_back(self)
        return 0

    cdef int on_up_writable(self, bint writable) except -1:
        if writable and self.borrowed:
            self.engine.body_buffer.give_back(self)
        return Attempts.on_up_writable(self, writable)

    cdef bint comes(self) noexcept:
        return (
            self.settings.body_rate == 0 or self.down.paused()
            or self.progress_until > self.engine.wheel.now + BODY_GRACE_MS - BODY_PATIENCE_MS
        )

    cdef bint keeps_waiting(self) noexcept:
        return (
            self.up is not None and not self.started_response and not self.up.write_paused and not self.down.paused()
            and self.settings.body_rate != 0
        )

    cdef int evict(self) except -1:
        self.down.refuse_more()
        if self.rule.row != NULL:
            ef_stat_add(&self.rule.row.cells[C_TIMEOUTS], 1)
        return self.fail(408, F_TIMEOUT)

    # --- places that others need (upstream/bodyshare.pyx) -----------------------------------------------------------

    cdef int64_t inactive_since(self) noexcept:
        """ms of the wheel since which it waits for its client, or a long-lived stream is idle; -1: neither."""
        if self.finished:
            return -1
        if self.lasts:
            return max(self.idle_deadline - self.idle_timeout, <int64_t>0)
        if self.slow is not None:
            return self.slow_at
        if self.expects_body and not self.body_done and not self.started_response and self.idle_deadline and not self.comes():
            return max(self.idle_deadline - self.idle_timeout, <int64_t>0)
        return -1

    cdef int preempt(self) except -1:
        """End it for another client."""
        if self.finished:
            return 0
        if self.lasts:
            self.engine.count(G_STREAMS_GAVE_WAY)
            if self.started_response:
                return self.abort(F_SLOW_READER)
            self.failure = UP_STREAMS
            return self.fail(503, F_OVERFLOW)
        if self.slow is not None:
            self.engine.count(G_ANSWERS_GAVE_WAY)
            return self.cut_answer()
        self.engine.count(G_BODIES_GAVE_WAY)
        return self.evict()

    # --- a crowd of one client (fair_share_eviction.pyx) ------------------------------------------------------------------------

    cdef int64_t slow_rate(self):
        cdef int64_t spent = self.engine.wheel.now - self.slow_at, rate
        cdef size_t left
        if self.slow is None:
            return UpstreamUser.slow_rate(self)
        if spent < EVICTION_GRACE_MS:
            return -1
        left = self.down.untaken()
        rate = <int64_t>(self.slow_left - min(left, self.slow_left)) * 1000 // spent
        return rate if rate < <int64_t>self.settings.answer_rate * EVICTION_RATE else -1

    cdef int yield_connection(self) except -1:
        cdef AnswerShare slow = self.slow
        if slow is None:
            return UpstreamUser.yield_connection(self)
        self.engine.count(G_ANSWERS_GAVE_WAY)
        slow.leaving += 1
        self.cut_answer()
        return 1
