# Checkout: an available connection for a user: of an endpoint, or of any.
#
# In: a user, connections that are idle or have a free stream. Out: one of them, alive. A connection at
# circuitBreaker.maxRequestsPerConnection of the user's policies is not used, and is retired: it ends with its requests.
# Must never give one out that its backend has ended.

cdef Outbound checkout(Pool pool, UpstreamUser user, Endpoint endpoint):
    """A living connection of the endpoint that is free, or has room; None when it has none."""
    cdef MultiplexedSession session, late = None
    cdef bint wants_tunnel = pool.protocol == SPEAKS_ALPN and user.wants_tunnel  # where there may be another connection that can
    if pool.protocol != SPEAKS_H1:
        for session in endpoint.shared:
            if not session.takes(wants_tunnel) or is_used_up(session, user):
                continue
            if session.load() * 100 < session.room * H2_FULL_PERCENT and not session.paced:
                return open_call(session, user)
            if late is None or len(session.paced) < len(late.paced):
                late = session
        if late is not None:
            if endpoint.coming is None and may_connect(pool, user, endpoint):
                pool.dial_more(user, endpoint)  # the next one is there when this one is full
            return open_call(late, user)
    return checkout_idle(pool, user, endpoint) if PyList_GET_SIZE(endpoint.idle) else None


cdef Outbound checkout_idle(Pool pool, UpstreamUser user, Endpoint endpoint):
    """The one that nobody has and that was used last."""
    cdef Outbound up
    while PyList_GET_SIZE(endpoint.idle):
        up = endpoint.idle.pop()
        if not up.is_open():
            continue
        if pool.engine.wheel.now - up.idle_since > PEEK_AFTER_MS and not up.is_quiet():
            up.stop(True)
            continue
        if has_carried(user, up.served):
            up.stop(True)
            continue
        return up
    return None


cdef Outbound any_free(Pool pool, UpstreamUser user):
    cdef uint8_t health_mask = effective_mask(<Cluster>pool, user.check, user.panic)
    cdef Endpoint endpoint
    cdef Outbound up
    if user.bound is not None and pool.protocol == SPEAKS_H1:
        return None  # one of its own will come
    for endpoint in pool.endpoints:
        if (PyList_GET_SIZE(endpoint.idle) or PyList_GET_SIZE(endpoint.shared)) and not pool.load[endpoint.index].out & health_mask:
            up = checkout(pool, user, endpoint)
            if up is not None:
                return up
    return None


cdef inline bint has_carried(UpstreamUser user, uint32_t many) noexcept:
    """So many requests are all that a connection carries for the user's rule."""
    return user.breaker is not None and user.breaker.reuses != 0 and many >= user.breaker.reuses


cdef bint is_used_up(MultiplexedSession session, UpstreamUser user) except -1:
    """It takes none of the user's rule any more, and so none at all."""
    if not has_carried(user, session.begun):
        return False
    session.use_up()
    return True


cdef Outbound open_call(MultiplexedSession session, UpstreamUser user):
    """Room for one request of the user's on it, which may be the last one that it has."""
    cdef Outbound call = session.open_call()
    if has_carried(user, session.begun):
        session.used_up = True
    return call
