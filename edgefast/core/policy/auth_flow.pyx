# Auth flow: a request between its match and its limits, during authentication and calls of authorization services, one after the other.
#
# In: a routed request, the authentication and services of its rule, their decisions; its body as it comes.
# Out: the request goes on (Exchange.admit), with the lines of services instead of its client's; or an answer. The answer is a service's
# denial, or an error because a service failed. It copies the head once, when it has to wait. Of the body it holds what a request that waits
# for its limits may hold, or all that services receive.
# Must never let a request pass before all services have answered.
#
# Callers post an event (`advance`); only the driver decides what follows. `state_after` has the rows with an event, `AUTH_STEPS` the others.
#
#   state            event                      next state
#   AUTH_NEW         AUTH_BEGIN                 AUTH_PROOFS
#   AUTH_PROOFS      step `authenticate`        AUTH_BODY, AUTH_PROOF_WAIT, AUTH_READ_WAIT, AUTH_ENDED
#   AUTH_BODY        step `gather`              AUTH_SERVICES, AUTH_BODY_WAIT, AUTH_BODY (its end came in the step), AUTH_ENDED
#   AUTH_BODY_RATE   step `check_rate`          AUTH_BODY_WAIT, AUTH_ENDED
#   AUTH_SERVICES    step `ask`                 AUTH_SERVICES, AUTH_CALL_WAIT, AUTH_READ_WAIT, AUTH_ADMISSION, AUTH_ENDED
#   AUTH_DELAY       step `check_delay`         AUTH_DELAY_WAIT, AUTH_ADMISSION, AUTH_ENDED
#   AUTH_ADMISSION   step `admit`               AUTH_ENDED
#   AUTH_READ_WAIT   AUTH_READ_END              AUTH_PROOFS (steps that are complete do nothing)
#   AUTH_PROOF_WAIT  AUTH_PROOF                 AUTH_PROOFS
#   AUTH_BODY_WAIT   AUTH_BODY_END              AUTH_BODY
#   AUTH_BODY_WAIT   AUTH_TIMER                 AUTH_BODY_RATE
#   AUTH_CALL_WAIT   AUTH_DECISION, AUTH_ALONE  AUTH_SERVICES
#   AUTH_DELAY_WAIT  AUTH_TIMER                 AUTH_DELAY
#   each             `leave`                    AUTH_ENDED
#
# An event that a state does not await changes nothing. An injected delay (fault.pyx) begins in AUTH_DELAY_WAIT.

cdef frozenset _CORS_OWN = frozenset((
    b"access-control-allow-origin", b"access-control-allow-credentials", b"access-control-expose-headers",
))


cdef frozenset _SIGN_IN_OWN = BODY_HEADERS | {b"location"}


cdef int give_up(Exchange ex) except -1:
    """It cannot go on, and that is nobody's fault but ours."""
    if not ex.finished:
        ex.down.abort(CUT_INTERNAL)
        ex.finish()
    return 0


# For each state, the states that its step may leave.
cdef uint32_t[13] AUTH_STEPS
AUTH_STEPS[<int>AUTH_PROOFS] = 1 << AUTH_BODY | 1 << AUTH_PROOF_WAIT | 1 << AUTH_READ_WAIT | 1 << AUTH_ENDED
AUTH_STEPS[<int>AUTH_BODY] = 1 << AUTH_SERVICES | 1 << AUTH_BODY_WAIT | 1 << AUTH_BODY | 1 << AUTH_ENDED
AUTH_STEPS[<int>AUTH_BODY_RATE] = 1 << AUTH_BODY_WAIT | 1 << AUTH_ENDED
AUTH_STEPS[<int>AUTH_SERVICES] = (
    1 << AUTH_SERVICES | 1 << AUTH_CALL_WAIT | 1 << AUTH_READ_WAIT | 1 << AUTH_ADMISSION | 1 << AUTH_ENDED
)
AUTH_STEPS[<int>AUTH_DELAY] = 1 << AUTH_DELAY_WAIT | 1 << AUTH_ADMISSION | 1 << AUTH_ENDED
AUTH_STEPS[<int>AUTH_ADMISSION] = 1 << AUTH_ENDED


cdef AuthState state_after(AuthState state, AuthEvent event) noexcept:
    """The state in which an event is processed; `state` itself: the event is not awaited."""
    if state == AUTH_NEW and event == AUTH_BEGIN:
        return AUTH_PROOFS
    if (state == AUTH_READ_WAIT and event == AUTH_READ_END) or (state == AUTH_PROOF_WAIT and event == AUTH_PROOF):
        return AUTH_PROOFS
    if state == AUTH_BODY_WAIT and event == AUTH_BODY_END:
        return AUTH_BODY
    if state == AUTH_BODY_WAIT and event == AUTH_TIMER:
        return AUTH_BODY_RATE
    if state == AUTH_CALL_WAIT and (event == AUTH_DECISION or event == AUTH_ALONE):
        return AUTH_SERVICES
    if state == AUTH_DELAY_WAIT and event == AUTH_TIMER:
        return AUTH_DELAY
    return state


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

    # --- the driver ------------------------------------------------------------------------------------------------

    cdef PolicyResult begin(self) except *:
        cdef Exchange ex = self.ex
        ex.auth = self
        ex.body.replayable = True
        if ex.body.shown and not units_of(ex.engine).auth_bodies.reserve(self, ex.body.kept.size - REPLAY_LIMIT - ex.body.borrowed):  # by filters of its listener
            ex.fail(503, F_OVERFLOW)
            return WAITING
        ex.body.shown = False
        self.advance(AUTH_BEGIN)
        return WAITING

    cdef int advance(self, AuthEvent event) except -1:
        """Take an event, and all steps up to the next wait."""
        cdef RuleAuthFlow held = self  # its exchange may have been all that held it
        cdef AuthState state = state_after(self.state, event)
        if state == self.state:
            return 0
        self.state = state
        if self.running:
            return 0
        self.running = True
        try:
            while held.state < AUTH_READ_WAIT:
                state = held.state
                held.step()
                if not AUTH_STEPS[<int>state] >> <int>held.state & 1:
                    raise AssertionError(f"authentication: state {<int>state} may not become {<int>held.state}")
        finally:
            held.running = False
        return 0

    cdef int step(self) except -1:
        """Each step leaves the state that follows."""
        if self.state == AUTH_PROOFS:
            return self.authenticate()
        if self.state == AUTH_BODY:
            return self.gather()
        if self.state == AUTH_BODY_RATE:
            return self.check_rate()
        if self.state == AUTH_SERVICES:
            return self.ask()
        if self.state == AUTH_DELAY:
            return self.check_delay()
        self.state = AUTH_ENDED
        return self.admit()

    cdef int resume(self) except -1:
        """Post a result of a password or token, called by the loop."""
        cdef Exchange ex = self.ex
        ex.engine.wheel.refresh()
        try:
            return self.advance(AUTH_PROOF)
        except Exception:
            _log.exception("authentication: request failed after the result of its credential")
            return give_up(ex)

    # --- steps -----------------------------------------------------------------------------------------------------

    cdef int authenticate(self) except -1:
        """Run the authenticators that have not accepted the request yet."""
        cdef LivePolicy policy
        cdef AnyGroup group
        cdef ProofResult result
        if self.proofs is not None:
            while self.proved < PyList_GET_SIZE(self.proofs):
                policy = self.proof_policies[self.proved]
                group = group_of(self, policy)
                if (group is not None and group.met) or (self.passed_unit is not None and policy.name == self.passed_unit):
                    self.proved += 1
                    continue
                result = (<Authenticator>self.proofs[self.proved]).authenticate(self, policy)
                if result == PASSED_OVER:
                    self.proved += 1
                    continue
                if result == UNDECIDED:
                    return self.wait(AUTH_PROOF_WAIT)
                if result == DEFERRED:
                    return self.wait(AUTH_READ_WAIT)
                if result == REFUSED:
                    self.state = AUTH_ENDED
                    return 0
                ef_stat_add(&policy.row.cells[P_ALLOWED], 1)
                if group is not None:
                    group.met = True
                self.proved += 1
        self.state = AUTH_BODY
        return 0

    cdef int gather(self) except -1:
        """Wait for its body, all of which services receive."""
        cdef Exchange ex = self.ex
        if self.most == 0:
            self.state = AUTH_SERVICES
            return 0
        if self.gathered:
            ex.body.enter(BODY_HELD)
            ex.ask_at = 0
            self.state = AUTH_SERVICES
            return 0
        self.gathered = True
        if ex.body.announced > self.most or ex.body.kept.size > self.most:
            return self.too_large()
        if ex.body.done:
            self.state = AUTH_SERVICES
            return 0
        self.wait(AUTH_BODY_WAIT)
        ex.body.enter(BODY_GATHERING)
        if ex.settings.body_rate:
            ex.ask_at = ex.progress_until = ex.engine.wheel.now + BODY_GRACE_MS
        if ex.body.kept.size > REPLAY_LIMIT + ex.body.borrowed and not units_of(ex.engine).auth_bodies.reserve(self, ex.body.kept.size - REPLAY_LIMIT - ex.body.borrowed):
            ex.down.refuse_more()
            return ex.fail(503, F_OVERFLOW)
        if not ex.down.handing:  # it has waited for a proof
            ex.down.resume()
            ex.allow_body()
        return ex.rearm() if not ex.finished else 0

    cdef int check_rate(self) except -1:
        """An awaited body keeps to `bodyRate`, whether or not others wait: its client is not authenticated."""
        cdef Exchange ex = self.ex
        cdef int64_t now = ex.engine.wheel.now, until = ex.progress_until
        self.state = AUTH_BODY_WAIT
        if until <= now:
            if not ex.down.paused():
                return ex.on_timeout(F_TIMEOUT)
            until = now + BODY_GRACE_MS
        ex.ask_at = until
        return ex.rearm()

    cdef int ask(self) except -1:
        """Ask the next service, or apply what it has answered."""
        cdef Exchange ex = self.ex
        cdef AuthService service
        cdef AuthDecision decision
        cdef AnyGroup group
        cdef bint cached = False
        if self.n == PyList_GET_SIZE(self.services):
            self.state = AUTH_ADMISSION
            return 0
        service = self.services[self.n]
        group = group_of(self, self.policies[self.n])
        if group is not None and group.met:
            self.n += 1
            return 0
        decision, self.outcome = self.outcome, None
        if decision is None and not self.alone:
            decision = service.known(self)
            cached = decision is not None
        if decision is None:
            if ex.down.handing and ex.down.defers:  # a request that is taken back in the same read is shown to no service
                return self.wait(AUTH_READ_WAIT)
            self.wait(AUTH_CALL_WAIT)
            return service.ask(self)  # AUTH_DECISION may come before it returns
        if not self.takes(decision, cached):
            self.state = AUTH_ENDED
            return 0
        if group is not None:
            group.met = True
        self.n += 1
        self.alone = False
        return 0

    cdef int check_delay(self) except -1:
        """End an injected delay that is over."""
        cdef Exchange ex = self.ex
        cdef InjectedFault fault = self.fault
        if self.until > ex.engine.wheel.now:
            self.state = AUTH_DELAY_WAIT
            ex.ask_at = self.until
            return ex.rearm()
        self.fault = None
        ex.engine.delayed -= 1
        self.state = AUTH_ADMISSION
        if not self.aborts:
            return 0
        self.state = AUTH_ENDED
        return fault.refuse(ex)

    # --- results ---------------------------------------------------------------------------------------------------

    def complete_auth(self, job, bytes user):
        """Take the result of the awaited password; b"": it is wrong."""
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
        """Take the result of the awaited token."""
        if self.ex is None:
            return
        self.question = None
        self.outcome_of_token = outcome
        self.resume()

    def settle_login(self, decision):
        """Take the result of the awaited login."""
        if self.ex is None:
            return
        self.login = None
        self.login_decision = decision
        self.resume()

    cdef int on_decision(self, AuthDecision decision) except -1:
        """Take the answer of the awaited call."""
        self.call = None
        self.outcome = decision
        return self.advance(AUTH_DECISION)

    cdef int ask_alone(self) except -1:
        """The answer to an equal request is for that request's client only."""
        self.call = self.key = None
        self.alone = True
        return self.advance(AUTH_ALONE)

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
            lines = lines_but(lines, _SIGN_IN_OWN if ex.cors_lines is None else _SIGN_IN_OWN | _CORS_OWN)
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

    cdef int wait(self, AuthState state) except -1:
        """Wait in this state. The time counts as the request's."""
        cdef Exchange ex = self.ex
        cdef int64_t now = ex.engine.wheel.now
        self.state = state
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
        cdef void *made = NULL
        self.held = copy_head(&self.at, &self.request, None, b"", more, spans_of(more) if more else b"", &made)
        free(self.memory)
        self.memory = made
        return 0

    cdef int admit(self) except -1:
        """Nobody speaks against it, but rules that ask for a token."""
        cdef Exchange ex = self.ex
        if self.token_policies is not None and not evaluate_token_policies(self):
            return 0
        if self.lines:
            self.keep(service_lines(self))
        if ex.auth_result is not None and ex.body.trailers.size:
            ex.auth_result.drop_trailers(&ex.body.trailers)
        if self.lent:  # from here on its body is one of those that were admitted
            units_of(ex.engine).auth_bodies.give_back(self)
            ex.body.shown = True
        ex.auth = self.ex = None
        ex.body.enter(BODY_HELD)
        if ex.body.done:
            ex.bound_answer()
        ex.admit(&self.at, &self.request)
        if ex.finished or ex.down.handing:
            return 0
        return ex.allow_body()  # it was waited for

    cdef int leave(self) except -1:
        """The exchange is over."""
        cdef AuthCall call = self.call
        self.state = AUTH_ENDED
        if self.lent:
            units_of(self.ex.engine).auth_bodies.give_back(self)
        if call is not None:
            call.record(self, AUTH_FAILS, b"cancelled")
        if self.job is not None:
            units_of(self.ex.engine).passwords.forget(self.job)
            self.job = None
        if self.question is not None:
            self.question.cancel()
            self.question = None
        if self.login is not None:
            self.login.cancel()
            self.login = None
        if self.fault is not None:
            self.fault = None
            self.ex.engine.delayed -= 1
        self.ex.auth = None
        self.ex.body.enter(BODY_HELD)
        self.ex = None
        return call.leave(self) if call is not None else 0

    # --- its client ------------------------------------------------------------------------------------------------

    cdef int take_body(self, iovec *iov, int n, size_t total) except -1:
        cdef Exchange ex = self.ex
        cdef size_t here = ex.body.kept.size + total
        cdef int i
        if self.state == AUTH_BODY_WAIT:
            if here > self.most:
                return self.too_large()
            if here > REPLAY_LIMIT + ex.body.borrowed and not units_of(ex.engine).auth_bodies.reserve(self, here - REPLAY_LIMIT - ex.body.borrowed):
                ex.down.refuse_more()
                return ex.fail(503, F_OVERFLOW)
        out_reserve(&ex.body.kept, total)
        for i in range(n):
            out_raw(&ex.body.kept, iov[i].iov_base, iov[i].iov_len)
        return ex.down.pause() if here >= REPLAY_LIMIT and self.state != AUTH_BODY_WAIT else 0

    cdef int too_large(self) except -1:
        """No service receives a part of a body."""
        cdef Exchange ex = self.ex
        self.state = AUTH_ENDED
        ex.engine.count(G_BODY_TOO_LARGE)
        ex.down.refuse_more()
        return ex.answer(413, b"", F_TOO_LARGE)
