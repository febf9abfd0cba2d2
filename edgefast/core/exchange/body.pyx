# Body: the body of a request on its way to a backend: held back, kept for a retry, forwarded, copied for mirrors.
#
# In: body bytes without framing, valid during the call; the moment when the exchange may open a backend stream.
# Out: bytes for the connection, once one exists. If incomplete bodies hold many of a cluster's connections, the exchange waits for
# `bodyStart` bytes, the whole body, or `bodyStartTimeout`. If they hold all of them, a body of at most `bodyBuffer` bytes is buffered whole
# if possible (docs/reference/http1.md, "Slow bodies"). It must never hold more than REPLAY_LIMIT bytes and a read, except for what it
# borrows of BODY_GATHER_LIMIT.
#
#   from                       event                                                     to
#   BODY_HELD                  `start` with an incomplete body and bodyStart             BODY_GATHERING
#   BODY_HELD                  a policy waits for the body, or delays the request        BODY_GATHERING
#   BODY_HELD, BODY_GATHERING  the policy ends                                           BODY_HELD
#   BODY_HELD, BODY_GATHERING  `go` in a read of HTTP/2                                  BODY_DEFERRED
#   BODY_HELD, BODY_GATHERING  `go`                                                      BODY_FORWARDING
#   BODY_DEFERRED              `go` at the end of the read (Exchange.flush)              BODY_FORWARDING

cdef uint32_t[4] BODY_NEXT  # the table: for each state, the states that may follow
BODY_NEXT[<int>BODY_HELD] = 1 << BODY_HELD | 1 << BODY_GATHERING | 1 << BODY_DEFERRED | 1 << BODY_FORWARDING
BODY_NEXT[<int>BODY_GATHERING] = 1 << BODY_HELD | 1 << BODY_DEFERRED | 1 << BODY_FORWARDING
BODY_NEXT[<int>BODY_DEFERRED] = 1 << BODY_FORWARDING


@cython.final
cdef class Body:
    def __dealloc__(self):
        out_free(&self.kept)
        out_free(&self.trailers)

    cdef void reset(self) noexcept:
        self.mirrors = None
        out_free(&self.kept)
        out_free(&self.trailers)
        memset(&self.state, 0, <size_t>(<char *>&self.borrowed - <char *>&self.state) + sizeof(self.borrowed))

    cdef void enter(self, BodyState state) noexcept:
        ef_check_transition(BODY_NEXT, self.state, state)
        self.state = state

    # --- before a backend is asked ---------------------------------------------------------------------------------

    cdef int start(self, Exchange ex) except -1:
        """Nothing speaks against the request any more: ask a backend, or see how much of a body comes."""
        if ex.rule.traffic is not None:
            ex.rule.traffic.let_wait(ex)
        if ex.decision is not None:
            limit_lines(ex)
            if not ex.down.handing:  # it was waited for
                ex.down.send_continue()
        if self.expected and not self.done and ex.settings.body_start:
            self.enter(BODY_GATHERING)
            return ex.rearm() if ex.down.handing else self.gather(ex)  # else the rest of this read decides
        return self.go(ex)

    cdef int gather(self, Exchange ex) except -1:
        """This is what has come for now."""
        cdef BodyShare share
        cdef int64_t now = ex.engine.wheel.now
        cdef Exchange held = ex  # as in `take`
        cdef bint started = self.kept.size >= ex.settings.body_start
        share = ex.backend.cluster.bodies
        if share is None or not share.crowded(ex.settings) or (started and not self.gathers_on(ex, 0)):
            return self.go(held)
        if self.late_at == 0:
            self.late_at = now + ex.settings.body_start_timeout
        elif self.late_at <= now:
            share.serve()  # who needs a place more goes first
            if not share.waiting() and share.has_room(ex):
                return self.go(held)
        if ex.joined_share is None:
            ex.joined_share = share
            share.gatherers[ex] = None
        if started:
            ex.down.resume()  # it was read no further while it waited for its limits
        if ex.ask_at == 0:
            ex.ask_at = self.late_at if self.late_at > now else now + (SHARE_LOOK_MS if started else SHARE_LATE_MS)
            return ex.rearm()
        return 0

    cdef bint gathers_on(self, Exchange ex, size_t total) except -1:
        """There is no room in the share, and with these bytes and those to come all of it fits here."""
        cdef BodyShare share = ex.backend.cluster.bodies
        cdef size_t here = self.kept.size + total
        cdef size_t more = here - ex.settings.body_start - self.borrowed
        cdef uint64_t left = <uint64_t>self.left if self.left > 0 else 0
        if share is None or share.has_places(ex.settings):
            return False
        if ex.backend.mirrors is not None:  # a copy is never as large as that
            return False
        if here > ex.settings.body_buffer or left > ex.settings.body_buffer - here:
            return False
        return ex.engine.body_buffer.reserve(ex, more)

    cdef int go(self, Exchange ex) except -1:
        """Start mirrors, ask for a connection."""
        if ex.down.handing and ex.down.defers:
            self.enter(BODY_DEFERRED)
            return 0
        self.enter(BODY_FORWARDING)
        ex.ask_at = 0
        if ex.joined_share is not None:
            ex.leave_share()
        # on a connection for many a slow body keeps nobody from one
        ex.streams = self.expected and not self.done and self.left != 0 and ex.backend.cluster.protocol != SPEAKS_H2
        if ex.upgrade:
            if not begin_tunnel(ex):
                ex.failure = UP_STREAMS
                return ex.fail(503, F_OVERFLOW)
        elif ex.backend.mirrors is not None:
            self.open_mirrors(ex)
        ex.rearm()
        return ex.retry.ask(ex)

    cdef int open_mirrors(self, Exchange ex) except -1:
        cdef MirrorTarget target
        cdef Mirror mirror
        cdef iovec kept
        for target in ex.backend.mirrors:
            if target.due():
                mirror = Mirror.__new__(Mirror)
                if self.mirrors is None:
                    self.mirrors = []
                self.mirrors.append(mirror)
                mirror.open(ex, target.cluster)
                if self.kept.size:  # came before anybody was asked
                    kept.iov_base = self.kept.data
                    kept.iov_len = self.kept.size
                    mirror.request_body(&kept, 1, self.kept.size)
                if self.trailers.size:
                    mirror.request_trailers(&self.trailers)
                if self.done:
                    mirror.request_end()
        return 0

    # --- what comes of it ------------------------------------------------------------------------------------------

    cdef int take(self, Exchange ex, iovec *iov, int n, size_t total, int64_t left) except -1:
        """Body bytes as a backend gets them, valid during the call. `left`: how many more there are; -1: not known."""
        cdef int i
        cdef Mirror mirror
        cdef AuthFlow auth = ex.auth  # which may be nobody else's when it has ended
        cdef Exchange held = ex  # the codec lets go of it when it ends in `go`
        self.received += total
        self.left = left
        if ex.tunnel:
            ex.idle_deadline = ex.engine.wheel.now + ex.idle_timeout
            return ex.write(iov, n, total, False)
        if self.limit and self.received > self.limit and not ex.overridden:
            ex.engine.count(G_BODY_TOO_LARGE)
            ex.down.refuse_more()
            if ex.retry.state == TRY_ANSWERED:
                return ex.abort(F_TOO_LARGE)
            return ex.answer(413, b"", F_TOO_LARGE)
        ex.idle_deadline = ex.engine.wheel.now + ex.idle_timeout
        ex.progress(total)
        if auth is not None:
            return auth.take_body(iov, n, total)
        if self.state == BODY_GATHERING and (
            left == 0 or (self.kept.size + total >= ex.settings.body_start and not self.gathers_on(ex, total))
        ):
            self.go(ex)  # before this is copied: it may go on as it lies here
            if held.finished or held.overridden:
                return 0
        if self.mirrors is not None:
            for mirror in self.mirrors:
                mirror.request_body(iov, n, total)
        if self.replayable:
            if ex.up is None or (
                self.kept.size + total <= REPLAY_LIMIT
                and (ex.rule.has_retry or ex.up.may_refuse or idempotent(ex.method) or (ex.grpc and ex.settings.grpc_codes))
            ):
                out_reserve(&self.kept, total)
                for i in range(n):
                    out_raw(&self.kept, iov[i].iov_base, iov[i].iov_len)
            else:
                self.forget()
        if ex.up is None:
            if self.kept.size >= REPLAY_LIMIT and self.state != BODY_GATHERING:
                ex.down.pause()
            return 0
        return ex.write(iov, n, total, False)

    cdef int take_trailers(self, Exchange ex, const uint8_t *lines, size_t n) except -1:
        """Fields behind the body, "name: value" lines, valid during the call; `end` follows."""
        cdef Mirror mirror
        if ex.finished:
            return 0
        keep_trailers(
            &self.trailers, lines, n, ex.backend.request_ops if ex.backend is not None else None,
            ex.settings.request_limits.underscore == EF_UNDERSCORE_ALLOW,
        )
        if ex.settings.forwarded is not None and self.trailers.size:
            drop_trailers(&self.trailers, ex.settings.forwarded.of_proxy)
        if ex.sets is not None and self.trailers.size:  # of whoever judged it: its rule may name others by now
            drop_trailers(&self.trailers, ex.sets)
            if ex.auth_result is not None:
                ex.auth_result.drop_trailers(&self.trailers)
        if ex.rule is not None and ex.rule.policy_chain is not None and self.trailers.size:
            ex.rule.policy_chain.drop_matched_headers(&self.trailers)
        if self.mirrors is not None and self.trailers.size:
            for mirror in self.mirrors:
                mirror.request_trailers(&self.trailers)
        return 0

    cdef int sift_trailers(self, Exchange ex) except -1:
        """They may have come before its rule was known: what that does to heads, and who judged it there, holds for them, too."""
        cdef bytes lines = self.trailers.data[:self.trailers.size]
        return self.take_trailers(ex, <const uint8_t *>PyBytes_AS_STRING(lines), PyBytes_GET_SIZE(lines))

    cdef int end(self, Exchange ex) except -1:
        """The client's request is complete."""
        cdef Mirror mirror
        cdef AuthFlow auth = ex.auth  # as above
        if ex.web is not None and not ex.web.whole():
            return ex.malformed()
        self.done = True
        if self.mirrors is not None:
            for mirror in self.mirrors:
                mirror.request_end()
        if auth is None:  # services have times of their own
            ex.bound_answer()
        ex.down.resume()  # whoever waits for an answer is read on: that is how we see that it left
        if auth is not None:
            return auth.advance(AUTH_BODY_END)
        if self.state == BODY_GATHERING:
            return self.go(ex)
        if ex.streams:
            if ex.place is None and ex.waiting:  # for a place, which it needs no more
                ex.streams = False
                ex.stop_waiting()
                return ex.retry.ask(ex)
            ex.complete()
        if ex.up is not None:
            return ex.write(NULL, 0, 0, True)
        return 0

    # --- memory ----------------------------------------------------------------------------------------------------

    cdef bint keep_auth_body(self, Exchange ex) except -1:
        """A body that services were shown is one of those that have been let in; False: there is no room for it, and that was answered."""
        self.shown = False
        if ex.backend.cluster is None:
            self.forget()
        elif not ex.engine.body_buffer.reserve(ex, self.kept.size - REPLAY_LIMIT - self.borrowed):
            ex.fail(503, F_OVERFLOW)
            return False
        return True

    cdef void forget(self) noexcept:
        """It went on, and is too large to go out again."""
        self.replayable = False
        out_free(&self.kept)
