# Auth flow: a request between its match and its limits, during authentication and calls of authorization services, one after the other.
#
# In: a routed request, the authentication and services of its rule, their decisions; its body as it comes.
# Out: the request goes on (Exchange.enter), with the lines of services instead of its client's; or an answer. The answer is a service's
# denial, or an error because a service failed. It copies the head once, when it has to wait. Of the body it holds what a request that waits
# for its limits may hold, or all that services receive.
# Must never let a request pass before all services have answered.

cdef frozenset _CORS_OWN = frozenset((
    b"access-control-allow-origin", b"access-control-allow-credentials", b"access-control-expose-headers",
))


cdef int give_up(Exchange ex) except -1:
    """It cannot go on, and that is nobody's fault but ours."""
    if not ex.finished:
        ex.down.abort(CUT_INTERNAL)
        ex.finish()
    return 0


cdef class RuleAuthFlow:
    def __dealloc__(self):
        free(self.memory)

    cdef int bound_body(self) except -1:
        """All services are shown no more of its body than the one that takes least."""
        cdef AuthService service
        for service in self.services:
            if service.body and (self.most == 0 or service.body < self.most):
                self.most = service.body
        return 0

    # --- proofs ----------------------------------------------------------------------------------------------------

    cdef PolicyResult begin(self) except *:
        cdef Exchange ex = self.ex
        ex.auth_flow = self
        ex.keeps_body = True
        if ex.shown and not units_of(ex.engine).auth_bodies.reserve(self, ex.body.size - REPLAY_LIMIT - ex.borrowed):  # by filters of its listener
            ex.fail(503, F_OVERFLOW)
            return WAITING
        ex.shown = False
        self.go_on()
        return WAITING

    cdef bint authenticate_next(self) except -1:
        """All proofs are there; False: the request is answered, or waits for what one of them takes."""
        cdef LivePolicy policy
        cdef AuthState proven
        cdef AnyGroup group
        while self.proved < PyList_GET_SIZE(self.proofs):
            policy = self.proof_policies[self.proved]
            group = group_of(self, policy)
            if group is not None and group.met:
                self.proved += 1
                continue
            proven = (<Authenticator>self.proofs[self.proved]).authenticate(self, policy)
            if proven == PASSED_OVER:
                self.proved += 1
                continue
            if proven == UNDECIDED:
                self.wait()
            if proven != PROVEN:
                return False
            ef_stat_add(&policy.row.cells[P_ALLOWED], 1)
            if group is not None:
                group.met = True
            self.proved += 1
        return True

    def complete_auth(self, job, bytes user):
        """Of the password that it waits for; b"": it is wrong."""
        if self.ex is None or self.job is not job:
            return
        self.job = None
        self.proven = user
        self.resume()

    def refuse_auth(self, job):
        """The password is not verified: other clients need the threads."""
        if self.ex is None or self.job is not job:
            return
        self.job = None
        self.unproven = True
        self.resume()

    def settle_token(self, outcome):
        """The same of the token that it waits for."""
        if self.ex is None:
            return
        self.question = None
        self.outcome_of_token = outcome
        self.resume()

    cdef int resume(self) except -1:
        """Go on, called by the loop."""
        cdef Exchange ex = self.ex
        ex.engine.wheel.refresh()
        try:
            return self.go_on()
        except Exception:
            _log.exception("a proof")
            return give_up(ex)

    cdef int gather(self) except -1:
        """Wait for its body, all of which services are shown."""
        cdef Exchange ex = self.ex
        self.gathered = True
        if ex.announced > self.most or ex.body.size > self.most:
            return self.too_large()
        if ex.body_done:
            return self.go_on()
        self.gathers = True
        self.wait()
        ex.gathering = True
        if ex.settings.body_rate:
            ex.ask_at = ex.progress_until = ex.engine.wheel.now + BODY_GRACE_MS
        if ex.body.size > REPLAY_LIMIT + ex.borrowed and not units_of(ex.engine).auth_bodies.reserve(self, ex.body.size - REPLAY_LIMIT - ex.borrowed):
            ex.down.refuse_more()
            return ex.fail(503, F_OVERFLOW)
        if not ex.down.handing:  # it has waited for a proof
            ex.down.resume()
            ex.allow_body()
        return ex.rearm() if not ex.finished else 0

    # --- services --------------------------------------------------------------------------------------------------

    cdef int go_on(self) except -1:
        """Ask whoever has not spoken; after the last one it may enter."""
        cdef Exchange ex = self.ex
        cdef AuthService service
        cdef AuthDecision decision
        cdef AnyGroup group
        cdef bint cached
        if self.gathers:
            return self.wait()
        if self.proofs is not None and not self.authenticate_next():
            return 0
        if self.most and not self.gathered:
            return self.gather()
        while self.n < PyList_GET_SIZE(self.services):
            service = self.services[self.n]
            group = group_of(self, self.policies[self.n])
            if group is not None and group.met:
                self.n += 1
                continue
            decision, self.outcome = self.outcome, None
            cached = False
            if decision is None and not self.alone:
                decision = service.known(self)
                cached = decision is not None
            if decision is None:
                self.wait()
                if ex.down.handing and ex.down.defers:  # a request that is taken back in the same read is shown to nobody
                    self.deferred = True
                    return 0
                self.asking = True
                try:
                    service.ask(self)
                finally:
                    self.asking = False
                decision, self.outcome = self.outcome, None
                if decision is None or self.ex is None:
                    return 0
            if not self.takes(decision, cached):
                return 0
            if group is not None:
                group.met = True
            self.n += 1
            self.alone = False
        return self.admit()

    cdef int on_decision(self, AuthDecision decision) except -1:
        """Of the call that it waits for."""
        self.call = None
        self.outcome = decision
        return 0 if self.asking or self.ex is None else self.go_on()

    cdef int ask_alone(self) except -1:
        """What was said of an equal request is for that one's client only."""
        self.call = self.key = None
        self.alone = True
        return self.go_on()

    cdef bint takes(self, AuthDecision decision, bint cached) except -1:
        """False: the request is answered with it."""
        cdef Exchange ex = self.ex
        cdef AuthService service = self.services[self.n]
        count_decision(ex.engine, self.policies[self.n], decision, cached)
        if decision.outcome == AUTH_PASSES:
            if decision.edits is not None:
                decision.edits.apply(self)
            if decision.lines:
                self.lines += lines_beside(decision.lines, self.lines) if self.lines else decision.lines
            return True
        if decision.outcome == AUTH_DENIES:
            self.deny(decision)
            return False
        ex.flags |= F_AUTH_ERROR
        ex.refuser = self.policies[self.n]
        if service.fail_open:
            return True
        ex.answer(service.status_on_error, b"", F_AUTH_ERROR)
        return False

    cdef int deny(self, AuthDecision decision) except -1:
        """The service's answer is the client's, but for what is the proxy's to say."""
        cdef Exchange ex = self.ex
        cdef AnyGroup group = group_of(self, self.policies[self.n])
        cdef bytes lines = decision.lines, body = decision.body
        if group is not None and group.refuser is not None:  # 401 of another unit of the policy
            if decision.status != 401:
                refuse_client(self, group.refuser, group.word, group.challenge)
                return 0
            lines += group.challenge
        if decision.status == 401 and sign_in_of(self) is not None:
            ex.refuser = self.policies[self.n]
            lines = lines_but(lines, BODY_HEADERS if ex.cors_lines is None else BODY_HEADERS | _CORS_OWN)
            return ex.answer(302, sign_in_of(self).line(ex, &self.at) + lines, F_DENIED)
        if decision.status == 204 or decision.status == 205 or decision.status == 304:
            body = b""
        if ex.cors_lines is not None:
            lines = lines_but(lines, _CORS_OWN) + ex.cors_lines
        ex.flags |= F_DENIED
        ex.refuser = self.policies[self.n]
        ex.status = decision.status
        ex.drop_upstream(CUT_CANCEL)
        if ex.grpc:
            return deny_grpc(ex, decision, lines, body)
        ex.bytes_out = PyBytes_GET_SIZE(body) if ex.method != EF_M_HEAD else 0
        return ex.respond(decision.status, lines, body)

    cdef bint was_set(self, const uint8_t *name, size_t n) noexcept:
        """A service that has spoken may have set it: the client's word does not count any more."""
        cdef Py_ssize_t i
        cdef HeaderNames names
        if self.proofs is not None:
            for i in range(PyList_GET_SIZE(self.proofs)):
                names = (<Authenticator>PyList_GET_ITEM(self.proofs, i)).sets
                if names is not None and names.covers(name, n):
                    return True
        for i in range(self.n):
            if (<AuthService>PyList_GET_ITEM(self.services, i)).sets.covers(name, n):
                return True
        return False

    # --- the request that waits ------------------------------------------------------------------------------------

    cdef int wait(self) except -1:
        """From now on it may take time, which counts as the request's."""
        cdef Exchange ex = self.ex
        cdef int64_t now = ex.engine.wheel.now
        if self.memory != NULL:
            return 0
        self.keep(b"")
        if ex.grpc:
            bound_by_client(ex, self.at.base, self.at.head)
        if ex.request_timeout > 0 and ex.route_deadline == 0:
            ex.route_deadline = (ex.since or now) + ex.request_timeout
        ex.idle_deadline = now + ex.idle_timeout
        return ex.rearm()

    cdef int keep(self, bytes more) except -1:
        """Copy its head, with these lines behind its own."""
        cdef ef_head *head = self.at.head
        cdef ef_head *copy
        cdef const uint8_t *old = self.at.base
        cdef uint8_t *text
        cdef size_t before = <size_t>(<char *>&head.spans[0] - <char *>head)
        cdef size_t n = head.n_spans, extra = PyBytes_GET_SIZE(more), after = 0, at
        cdef size_t added = more.count(b"\n")
        cdef size_t room = before + (n + self.at.hidden + added) * sizeof(ef_span)
        cdef size_t size = room + head.head_len + extra + self.at.path_len
        cdef void *memory = malloc(size)
        cdef ef_span *span
        if memory == NULL:
            raise MemoryError
        copy = <ef_head *>memory
        text = <uint8_t *>memory + room
        memcpy(copy, head, before)
        memcpy(&copy.spans[0], &head.spans[0], n * sizeof(ef_span))
        memcpy(text, old, head.head_len)
        if extra:
            memcpy(text + head.head_len, PyBytes_AS_STRING(more), extra)
        memcpy(text + head.head_len + extra, self.at.path, self.at.path_len)
        while after < extra:
            at = after
            span = &copy.spans[n]
            after = ef_trailer_next(<const uint8_t *>PyBytes_AS_STRING(more), extra, at, span)
            if after == 0:
                break
            span.name_off += head.head_len
            span.val_off += head.head_len
            span.line_end += head.head_len
            span.flags = 0  # a service may say it, whatever a field behind a body may
            n += 1
        memcpy(&copy.spans[n], &head.spans[head.n_spans], self.at.hidden * sizeof(ef_span))
        copy.n_spans = <uint16_t>n
        if self.request.path == self.at.path:
            self.request.path = text + head.head_len + extra
        self.at.path = text + head.head_len + extra
        copy.head_len = <uint32_t>(head.head_len + extra)
        if self.at.query != NULL and self.query is None:
            self.at.query = text + (self.at.query - old)
        self.at.base = text
        self.at.head = copy
        self.request.query = self.at.query
        self.request.base = text
        self.request.spans = copy.spans
        self.request.n_spans = <uint32_t>n
        free(self.memory)
        self.memory = memory
        self.held = size
        return 0

    cdef int admit(self) except -1:
        """Nobody speaks against it, but rules that ask for a token."""
        cdef Exchange ex = self.ex
        if self.token_policies is not None and not evaluate_token_policies(self):
            return 0
        if self.lines:
            self.keep(service_lines(self))
        if ex.auth_result is not None and ex.trailers.size:
            ex.auth_result.drop_trailers(&ex.trailers)
        if self.owner is not None:  # from here on its body is one of those that were admitted
            units_of(ex.engine).auth_bodies.give_back(self)
            ex.shown = True
        ex.auth_flow = self.ex = None
        ex.gathering = False
        if ex.body_done:
            ex.bound_answer()
        ex.admit(&self.at, &self.request)
        if ex.finished or ex.down.handing:
            return 0
        return ex.allow_body()  # it was waited for

    cdef int leave(self) except -1:
        """The exchange is over."""
        cdef AuthCall call = self.call
        if self.owner is not None:
            units_of(self.ex.engine).auth_bodies.give_back(self)
        if call is not None:
            call.record(self, AUTH_FAILS, b"cancelled")
        if self.job is not None:
            units_of(self.ex.engine).passwords.forget(self.job)
            self.job = None
        if self.question is not None:
            self.question.cancel()
            self.question = None
        if self.fault is not None:
            self.fault = None
            self.ex.engine.delayed -= 1
        self.ex.auth_flow = None
        self.ex.gathering = False
        self.ex = None
        return call.leave(self) if call is not None else 0

    # --- its client ------------------------------------------------------------------------------------------------

    cdef int flush(self) except -1:
        """All of a read is here."""
        if not self.deferred:
            return 0
        self.deferred = False
        return self.go_on()

    cdef int take_body(self, iovec *iov, int n, size_t total) except -1:
        cdef Exchange ex = self.ex
        cdef size_t here = ex.body.size + total
        cdef int i
        if self.gathers:
            if here > self.most:
                return self.too_large()
            if here > REPLAY_LIMIT + ex.borrowed and not units_of(ex.engine).auth_bodies.reserve(self, here - REPLAY_LIMIT - ex.borrowed):
                ex.down.refuse_more()
                return ex.fail(503, F_OVERFLOW)
        out_reserve(&ex.body, total)
        for i in range(n):
            out_raw(&ex.body, iov[i].iov_base, iov[i].iov_len)
        return ex.down.pause() if here >= REPLAY_LIMIT and not self.gathers else 0

    cdef int request_end(self) except -1:
        if not self.gathers:
            return 0
        self.gathers = self.ex.gathering = False
        self.ex.ask_at = 0
        return self.go_on()

    cdef int look(self) except -1:
        """A body that is waited for keeps to `bodyRate`, whether anybody else waits or not: nobody has judged whose it is."""
        cdef Exchange ex = self.ex
        cdef int64_t now = ex.engine.wheel.now, until = ex.progress_until
        if self.fault is not None:
            return end_delay(self)
        if until <= now:
            if not ex.down.paused():
                return ex.on_timeout(F_TIMEOUT)
            until = now + BODY_GRACE_MS
        ex.ask_at = until
        return ex.rearm()

    cdef int too_large(self) except -1:
        """Nobody is shown a part of it."""
        cdef Exchange ex = self.ex
        ex.engine.count(G_BODY_TOO_LARGE)
        ex.down.refuse_more()
        return ex.answer(413, b"", F_TOO_LARGE)
