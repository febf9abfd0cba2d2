# Retry budget: whether a request may be retried: its replay buffer, its attempts, and the budget of its cluster.
#
# In: a request with an ended attempt. Out: yes, then it counts as one of the cluster's retries until it ends; or no.

cdef bint in_budget(Attempts tries) except -1:
    """Repeats are a part of what is asked of this cluster: one whose requests all fail leaves others theirs. Where a policy says how many
    there may be in an interval, each counts; what is on its way is bounded besides where somebody says so."""
    cdef RetryWindow window = tries.window
    cdef Breaker breaker = tries.breaker
    if window is None:
        return in_share(tries)
    if tries.rule.has_retry and tries.rule.attempts == 0:
        return False
    if breaker is not None and (breaker.retries >= 0 or breaker.denominator) and not in_share(tries):
        return False
    tries.starved = not window.take(tries.backend.cluster)
    if tries.starved:
        tries.engine.count(G_RETRIES_OVER_BUDGET)
    return not tries.starved


cdef bint in_share(Attempts tries) except -1:
    """What is on its way to be repeated leaves room for this one."""
    cdef Cluster cluster = tries.backend.cluster
    cdef Breaker breaker = tries.breaker
    cdef int64_t limit
    if tries.rule.has_retry and tries.rule.attempts == 0:
        return False  # "an explicit zero value MUST disable retries" (HTTPRouteRetry.attempts)
    if tries.retrying:
        return True
    if breaker is not None and (breaker.retries >= 0 or breaker.denominator):
        tries.retrying = breaker.repeat(cluster)
    else:
        limit = max(cluster.active * RETRY_BUDGET_PERCENT // 100, <int64_t>RETRY_BUDGET_MIN)
        tries.retrying = cluster.own[EF_SHARE_RETRIES] < limit
        cluster.own[EF_SHARE_RETRIES] += tries.retrying
    if not tries.retrying:
        tries.engine.count(G_RETRIES_OVER_BUDGET)
    return tries.retrying


cdef bint may_retry(Attempts tries, uint32_t most) except -1:
    """A request that may have reached a backend may go out again only if its bytes are still here, at most so many times; and either it is
    idempotent and its connection was an old one, or a retry of the configuration asks for it: who asks knows."""
    if not tries.keeps_body or tries.upgrade or tries.tries > most:
        return False
    return (tries.body_done or not tries.expects_body) and in_budget(tries)


cdef bint may_go_again(Attempts tries, Outbound up) except -1:
    """Nothing was done for it: as good as a failed connect, while all that was sent is still here. What a backend itself sends back
    is no sign that it fails, so it takes nothing of the budget."""
    if not tries.keeps_body or tries.tries >= 4 or (tries.rule.has_retry and tries.rule.attempts == 0):
        return False
    return up.may_refuse or in_budget(tries)


# Whether and when a try may be repeated, as far as its method and number say.
#
# In: a method (RFC 9110 9.2.2), how often it was tried. Out: yes or no, milliseconds.

cdef inline bint idempotent(unsigned method) noexcept:
    return (
        method == EF_M_GET or method == EF_M_HEAD or method == EF_M_OPTIONS or method == EF_M_PUT or method == EF_M_DELETE
        or method == EF_M_TRACE
    )


cdef int64_t backoff(Attempts tries, int64_t base) noexcept:
    """Exponential with jitter above the base, which is a minimum (HTTPRouteRetry.backoff); the cap is ten times the base."""
    cdef int64_t span = base << (tries.tries - 1 if tries.tries < 5 else 4)
    if span > base * 10:
        span = base * 10
    if span <= 0:
        return 0
    if span == base:
        span += base // 4
    return base + <int64_t>(ef_random(tries.engine.random) % <uint64_t>(span - base + 1))


cdef inline uint32_t popcount(uint64_t bits) noexcept:
    cdef uint32_t n = 0
    while bits:
        bits &= bits - 1
        n += 1
    return n
