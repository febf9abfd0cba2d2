# Choice: which endpoint a user gets, except those it has tried and those at their limit (circuitBreaker.perEndpoint).
#
# In: a user and its policies; connections of an endpoint as all workers count them.
# Out: an endpoint by the balancing of its policies, among the rest. A bit of their own excludes endpoints for one choice alone, and does
# not affect other users. A user with few tried endpoints and no limit pays nothing.
# Must never prefer an unhealthy endpoint to one that is only at its limit.

cdef Endpoint draw(Cluster cluster, UpstreamUser user, uint8_t health_mask):
    """By the balance that its policies say, of the zones that come first."""
    if cluster.runs is not None:
        return choose_in_zones(cluster, user.zones, user.tried_of(cluster), health_mask, user.balance, user.hash_key)
    return cluster.pick(user.tried_of(cluster), health_mask, user.balance, user.hash_key)


cdef Endpoint choose(Cluster cluster, UpstreamUser user, uint8_t health_mask):
    """One that it has not tried, if there is another; None: there is none at all."""
    cdef Endpoint endpoint
    if user.tried_past is None:
        return draw(cluster, user, health_mask)
    look_if_changed(cluster)
    for endpoint in user.tried_past:
        if endpoint.cluster is cluster and endpoint.index >= 0:
            cluster.load[endpoint.index].out |= MASK_PASSED
    try:
        return draw(cluster, user, health_mask | MASK_PASSED)
    finally:
        for endpoint in user.tried_past:
            if endpoint.cluster is cluster and endpoint.index >= 0:
                cluster.load[endpoint.index].out &= ~MASK_PASSED


cdef Endpoint choose_with_room(Cluster cluster, UpstreamUser user, uint8_t health_mask):
    """The same of those that can have one more connection, or have one that is free; None: there is none, and waiting is better than one that
    is out while others are not."""
    cdef Endpoint found
    cdef uint32_t i
    look_if_changed(cluster)
    health_mask = all_if_none(cluster, health_mask)
    try:
        pass_over_full(cluster, user)
        found = choose(cluster, user, health_mask | MASK_PASSED)
        if user.tried_past is not None and not is_fit(cluster, user, found, health_mask):
            pass_over_full(cluster, user)  # one that was tried is better than none
            found = draw(cluster, user, health_mask | MASK_PASSED)
    finally:
        for i in range(cluster.size):
            cluster.load[i].out &= ~MASK_PASSED
    return found if is_fit(cluster, user, found, health_mask) else None


cdef int pass_over_full(Cluster cluster, UpstreamUser user) except -1:
    cdef Endpoint endpoint
    for endpoint in cluster.endpoints:
        if not serves_one_more(cluster, endpoint, user):
            cluster.load[endpoint.index].out |= MASK_PASSED
    return 0


cdef bint is_fit(Cluster cluster, UpstreamUser user, Endpoint found, uint8_t health_mask) noexcept:
    return (
        found is not None and not cluster.load[found.index].out & health_mask & ~MASK_PASSED and serves_one_more(cluster, found, user)
    )


cdef int look_if_changed(Cluster cluster) except -1:
    """So that a choice does not do it, and forget who is passed over."""
    return cluster.look() if cluster.seen != ef_health_version(cluster.record.at) else 0


cdef uint8_t all_if_none(Cluster cluster, uint8_t health_mask) noexcept:
    """Whose `health_mask` leaves nobody heeds nothing."""
    cdef uint32_t i
    for i in range(cluster.size):
        if not cluster.load[i].out & health_mask:
            return health_mask
    return MASK_PASSED


cdef bint serves_one_more(Cluster cluster, Endpoint endpoint, UpstreamUser user) noexcept:
    """On a connection that it has, is about to have, or may have."""
    cdef MultiplexedSession session
    if PyList_GET_SIZE(endpoint.idle) or (endpoint.coming is not None and may_join(cluster, endpoint, user)):
        return True
    for session in endpoint.shared:
        if session.takes(cluster.protocol == SPEAKS_ALPN and user.wants_tunnel):
            return True
    return endpoint_has_room(cluster, endpoint, user.breaker)


cdef inline bint may_join(Pool pool, Endpoint endpoint, UpstreamUser user) noexcept:
    """Wait for the connection that is being made: there is one."""
    return (pool.protocol == SPEAKS_H2 or not user.wants_tunnel) and endpoint.coming.queue.waiting() < H2_SOON


cdef bint endpoint_has_room(Pool pool, Endpoint endpoint, Breaker breaker) noexcept:
    """For one more connection of all workers'. What was lent is left to those who wait for it for a while."""
    cdef uint32_t bound = clipped(breaker.each)
    cdef uint64_t all_of
    if pool.tightest_each == 0 or bound < pool.tightest_each:
        pool.tightest_each = bound
    all_of = endpoint.record.own[EF_SHARE_CONNECTIONS] + endpoint.record.others(EF_SHARE_CONNECTIONS)
    if pool.lent_until > pool.engine.wheel.now:
        all_of += pool.record.others(EF_SHARE_PENDING)
    return all_of < bound


cdef bint any_has_room(Cluster cluster, UpstreamUser user) noexcept:
    """Of those that the user may have."""
    cdef Endpoint endpoint
    cdef uint8_t health_mask = all_if_none(cluster, effective_mask(cluster, user.check, user.panic))
    for endpoint in cluster.endpoints:
        if not cluster.load[endpoint.index].out & health_mask and endpoint_has_room(cluster, endpoint, user.breaker):
            return True
    cluster.held_to = max(cluster.own[EF_SHARE_CONNECTIONS], <uint32_t>1)
    return False
