# Retry state: the attempts of one request, and whether another one may follow: its kept body, its attempts, the budget of its cluster.
#
# In: a request that may go to a backend, or with an ended attempt (attempts.pyx).
# Out: a request for a connection, now or after a delay; yes or no for a retry. A retried request counts as one of its cluster's retries until
# it ends.
#
#   from                    event                                         to
#   each but TRY_ANSWERED   `ask`: a connection is asked for              TRY_CONNECTING
#   TRY_CONNECTING          `begin_attempt`                               TRY_CONNECTED
#   TRY_CONNECTED           Exchange.write writes the head                TRY_SENT
#   TRY_SENT                `relay_head` passes the response head on      TRY_ANSWERED
#   each but TRY_ANSWERED   `again` with a delay                          TRY_BACKOFF
#   each but TRY_ANSWERED   Exchange.drop_upstream                        TRY_NONE
#
# TRY_ANSWERED is final: a client has part of a response, so that no other attempt may follow.

cdef uint32_t TRY_OPEN = 1 << TRY_NONE | 1 << TRY_CONNECTING | 1 << TRY_BACKOFF
cdef uint32_t[6] TRY_NEXT  # the table: for each state, the states that may follow
TRY_NEXT[<int>TRY_NONE] = TRY_NEXT[<int>TRY_BACKOFF] = TRY_OPEN
TRY_NEXT[<int>TRY_CONNECTING] = TRY_OPEN | 1 << TRY_CONNECTED
TRY_NEXT[<int>TRY_CONNECTED] = TRY_OPEN | 1 << TRY_SENT
TRY_NEXT[<int>TRY_SENT] = TRY_OPEN | 1 << TRY_ANSWERED


@cython.final
cdef class RetryState:
    cdef void reset(self) noexcept:
        memset(&self.state, 0, <size_t>(<char *>&self.called - <char *>&self.state) + sizeof(self.called))

    cdef void enter(self, TryState state) noexcept:
        ef_check_transition(TRY_NEXT, self.state, state)
        self.state = state

    # --- attempts --------------------------------------------------------------------------------------------------

    cdef int ask(self, Exchange ex) except -1:
        """Begin an attempt: ask for a connection."""
        self.enter(TRY_CONNECTING)
        self.reported = self.called = False
        if ex.retry_timeout and self.began == 0:
            self.began = ex.engine.wheel.now
        if ex.window is not None:
            ex.window.count(ex.backend.cluster)
        if ex.trace is not None and ex.trace.flags & 1:
            ex.engine.observer.begin_try(ex)
        return ex.backend.cluster.acquire(ex)

    cdef int again(self, Exchange ex, int64_t wait, int status, uint32_t why) except -1:
        """The attempt ended with that status or for that reason; the next one begins in `wait` ms."""
        if ex.trace is not None and ex.trace.try_began:
            ex.engine.observer.end_try(ex, status, why, ex.engine.reactor.now_us())
        ex.up_protocol = None
        if self.tries > 1 or wait > 0 or why != F_RESET:
            ex.bound = None  # a connection that had ended says nothing of its endpoint, once
        ex.flags |= F_RETRIED
        ex.engine.count(G_RETRIES)
        if ex.rule.row != NULL:
            ef_stat_add(&ex.rule.row.cells[C_RETRIES], 1)
        self.deadline = ex.send_deadline = 0
        if wait <= 0:
            return self.ask(ex)
        self.enter(TRY_BACKOFF)
        ex.ask_at = ex.engine.wheel.now + wait
        return ex.rearm()

    # --- the budget ------------------------------------------------------------------------------------------------

    cdef bint in_budget(self, Exchange ex) except -1:
        """Repeats are a part of what is asked of this cluster: one whose requests all fail leaves others theirs. Where a policy says how many
        there may be in an interval, each counts; what is on its way is bounded besides where somebody says so."""
        cdef RetryWindow window = ex.window
        cdef Breaker breaker = ex.breaker
        if self.is_late(ex):
            return False
        if window is None:
            return self.in_share(ex)
        if ex.rule.has_retry and ex.rule.attempts == 0:
            return False
        if breaker is not None and (breaker.retries >= 0 or breaker.denominator) and not self.in_share(ex):
            return False
        self.starved = not window.take(ex.backend.cluster)
        if self.starved:
            ex.engine.count(G_RETRIES_OVER_BUDGET)
        return not self.starved

    cdef bint in_share(self, Exchange ex) except -1:
        """What is on its way to be repeated leaves room for this one."""
        cdef Cluster cluster = ex.backend.cluster
        cdef Breaker breaker = ex.breaker
        cdef int64_t limit
        if ex.rule.has_retry and ex.rule.attempts == 0:
            return False  # "an explicit zero value MUST disable retries" (HTTPRouteRetry.attempts)
        if self.counted:
            return True
        if breaker is not None and (breaker.retries >= 0 or breaker.denominator):
            self.counted = breaker.repeat(cluster)
        else:
            limit = max(cluster.active * RETRY_BUDGET_PERCENT // 100, <int64_t>RETRY_BUDGET_MIN)
            self.counted = cluster.own[EF_SHARE_RETRIES] < limit
            cluster.own[EF_SHARE_RETRIES] += self.counted
        if not self.counted:
            ex.engine.count(G_RETRIES_OVER_BUDGET)
        return self.counted

    cdef bint may_retry(self, Exchange ex, uint32_t most) except -1:
        """A request that may have reached a backend may go out again only if its bytes are still here, at most so many times; and either it is
        idempotent and its connection was an old one, or a retry of the configuration asks for it: who asks knows."""
        if not ex.body.replayable or ex.upgrade or self.tries > most:
            return False
        return (ex.body.done or not ex.body.expected) and self.in_budget(ex)

    cdef bint may_go_again(self, Exchange ex, Outbound up) except -1:
        """Nothing was done for it: as good as a failed connect, while all that was sent is still here. What a backend itself sends back
        is no sign that it fails, so it takes nothing of the budget."""
        if not ex.body.replayable or self.tries >= 4 or (ex.rule.has_retry and ex.rule.attempts == 0):
            return False
        return (up.may_refuse and not self.is_late(ex)) or self.in_budget(ex)

    cdef bint is_late(self, Exchange ex) noexcept:
        """The time for another attempt is over (BackendTrafficPolicy timeout.http.retryTimeout)."""
        return ex.retry_timeout != 0 and ex.engine.wheel.now - self.began >= ex.retry_timeout

    cdef int64_t backoff(self, Exchange ex, int64_t base) noexcept:
        """Exponential with jitter above the base, which is a minimum (HTTPRouteRetry.backoff); the cap is ten times the base."""
        cdef int64_t span = base << (self.tries - 1 if self.tries < 5 else 4)
        if span > base * 10:
            span = base * 10
        if span <= 0:
            return 0
        if span == base:
            span += base // 4
        return base + <int64_t>(ef_random(ex.engine.random) % <uint64_t>(span - base + 1))


cdef inline bint idempotent(unsigned method) noexcept:
    """RFC 9110 9.2.2."""
    return (
        method == EF_M_GET or method == EF_M_HEAD or method == EF_M_OPTIONS or method == EF_M_PUT or method == EF_M_DELETE
        or method == EF_M_TRACE
    )


cdef inline uint32_t popcount(uint64_t bits) noexcept:
    cdef uint32_t n = 0
    while bits:
        bits &= bits - 1
        n += 1
    return n
