# Breaker: circuit breakers: the limits of a rule's requests at a cluster (BackendTrafficPolicy circuitBreaker).
#
# In: the usage of the cluster by all rules of all workers (health.pyx). Out: whether a request may go on. Too many are refused at once
# (503); for a connection a request waits, as at the cluster's own bound. The usage of other workers is read at the check, so concurrent
# requests exceed nothing. Must cost nothing where no policy has one.

cdef class Breaker:
    def __init__(self, int64_t connections, int64_t each, int64_t pending, int64_t requests, int64_t retries, budget, int64_t reuses):
        """budget: ir.RetryBudget or None."""
        self.connections, self.each, self.pending, self.requests, self.retries = connections, each, pending, requests, retries
        self.reuses = <uint64_t>max(reuses, 0)
        if budget is not None:
            self.numerator, self.denominator, self.least = budget.numerator, budget.denominator, budget.least

    cdef bint bounds(self) noexcept:
        """It says anything."""
        return (
            max(self.connections, self.each, self.pending) >= 0 or max(self.requests, self.retries) >= 0
            or self.denominator != 0 or self.reuses != 0
        )

    cdef bint bounds_connections(self) noexcept:
        """Those of other workers count."""
        return self.connections >= 0 or self.each >= 0

    cdef bint repeat(self, Pool pool) noexcept:
        """One more repeat, if there may be one; it is counted."""
        cdef uint64_t most = <uint64_t>self.retries if self.retries >= 0 else 0xffffffff, part
        if self.denominator:
            part = ef_share_sum(pool.record.at, pool.record.seats, EF_SHARE_REQUESTS)
            part += ef_share_sum(pool.record.at, pool.record.seats, EF_SHARE_PENDING)
            most = min(most, max(part * self.numerator // self.denominator, <uint64_t>self.least))
        return pool.record.take(EF_SHARE_RETRIES, clipped(most))

    cdef int admit(self, Pool pool, UpstreamUser user) noexcept:
        """One more try, if there may be one (0): then it is counted before it has an endpoint. Else why there may not (UpFailure)."""
        if self.connections == 0 or self.each == 0:
            return UP_SHUT  # those that others have made are not for it
        if self.requests < 0 or user.counted:
            return 0
        user.counted = pool.record.take(EF_SHARE_REQUESTS, clipped(self.requests))
        return 0 if user.counted else UP_REQUESTS

    cdef void settle(self, Pool pool, UpstreamUser user) noexcept:
        """It has none yet: it is asked again when it gets one."""
        if user.counted:
            user.counted = False
            pool.own[EF_SHARE_REQUESTS] -= 1

    cdef uint32_t pending_here(self, Pool pool, uint32_t most) noexcept:
        """How many may wait in this worker, beside those who wait in others."""
        cdef uint64_t others
        if self.pending < 0:
            return most
        others = pool.record.others(EF_SHARE_PENDING)
        return min(most, clipped(self.pending - <int64_t>others) if others < <uint64_t>self.pending else 0)

    cdef bint reserve(self, Pool pool) noexcept:
        """A place for one who waits, which whoever joins next has."""
        if self.pending < 0:
            return True
        pool.pending.reserved = pool.record.take(EF_SHARE_PENDING, clipped(self.pending))
        return pool.pending.reserved


cdef inline uint32_t clipped(int64_t number) noexcept:
    return <uint32_t>min(number, <int64_t>0xffffffff)


cdef bint may_connect(Pool pool, UpstreamUser user, Endpoint endpoint) noexcept:
    """The endpoint may have one more connection, which is counted then."""
    cdef Breaker breaker = user.breaker
    if not has_room(pool, user):
        return False
    if breaker is None or breaker.each < 0:
        endpoint.record.own[EF_SHARE_CONNECTIONS] += 1
    elif not endpoint_has_room(pool, endpoint, breaker) or not endpoint.record.take(EF_SHARE_CONNECTIONS, clipped(breaker.each)):
        return False
    if breaker is None or breaker.connections < 0:
        pool.own[EF_SHARE_CONNECTIONS] += 1
        return True
    if pool.record.take(EF_SHARE_CONNECTIONS, clipped(breaker.connections)):
        return True
    endpoint.record.own[EF_SHARE_CONNECTIONS] -= 1
    return False


cdef void connection_gone(Pool pool, Endpoint endpoint) noexcept:
    """One that was counted."""
    pool.own[EF_SHARE_CONNECTIONS] -= 1
    endpoint.record.own[EF_SHARE_CONNECTIONS] -= 1


cdef bint could_connect(Pool pool, UpstreamUser user) noexcept:
    """There may be one more connection for the user, to some endpoint; nothing is counted."""
    return has_room(pool, user) and (user.breaker is None or user.breaker.each < 0 or any_has_room(<Cluster>pool, user))


cdef bint has_room(Pool pool, UpstreamUser user) noexcept:
    """The same of all endpoints together; it is noted what bounds there are. What was lent is left to those who wait for it for a while."""
    cdef uint64_t all_of
    cdef uint32_t bound
    if pool.own[EF_SHARE_CONNECTIONS] >= pool.max_connections:
        return False
    if user.breaker is None or user.breaker.connections < 0:
        return True
    bound = clipped(user.breaker.connections)
    if pool.tightest == 0 or bound < pool.tightest:
        pool.tightest = bound
    all_of = pool.own[EF_SHARE_CONNECTIONS] + pool.record.others(EF_SHARE_CONNECTIONS)
    if pool.lent_until > pool.engine.wheel.now:
        all_of += pool.record.others(EF_SHARE_PENDING)
    if all_of < bound:
        return True
    pool.held_to = max(pool.own[EF_SHARE_CONNECTIONS], <uint32_t>1)
    return False


cdef UpstreamUser first_connectable(Pool pool):
    """Of those who wait, whose turn comes first and whose own bound leaves room; as far as SHARE_TURNS of them tell. None: nobody's does."""
    cdef UpstreamUser user
    cdef Breaker full = None
    if pool.own[EF_SHARE_CONNECTIONS] >= pool.max_connections:
        return None
    for user in pool.pending.clients.members_in_turn(SHARE_TURNS):
        if (full is None or user.breaker is not full) and could_connect(pool, user):
            return user
        full = user.breaker
    return None


cdef uint32_t crowded_at(Pool pool) noexcept:
    """So many connections are all that this worker can have for those who wait."""
    if pool.held_to and pool.pending.waiting():
        return min(pool.held_to, pool.max_connections)
    return pool.max_connections


cdef bint may_replace(Pool pool, Endpoint endpoint) noexcept:
    """The endpoint may have one more connection, whoever is bound by what."""
    if pool.own[EF_SHARE_CONNECTIONS] >= pool.max_connections:
        return False
    if pool.tightest_each and ef_share_sum(endpoint.record.at, endpoint.record.seats, EF_SHARE_CONNECTIONS) >= pool.tightest_each:
        return False
    return pool.tightest == 0 or pool.own[EF_SHARE_CONNECTIONS] + pool.record.others(EF_SHARE_CONNECTIONS) < pool.tightest
