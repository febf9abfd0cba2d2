# Worker rebalance: connections that one worker closes because users wait in another one. A bound of connections applies to all workers
# together (breaker.pyx); a worker with none of them would wait for ever.
#
# In: users that wait at the bound, here and in other workers.
# Out: requests to other workers, repeated while a user waits. A worker with more than its part closes its idle ones, or else the next free
# one.
# Must never end a request, and costs nothing without such a bound.

cdef int request_connections(Pool pool, int64_t wait) except -1:
    """Somebody waits: look in so many ms whether others have left anything, and ask them for it."""
    if pool.request_at == 0:
        pool.request_at = pool.engine.wheel.now + wait
        return pool.rearm()
    return 0


cdef int request_connections_again(Pool pool) except -1:
    """It is time to look; this goes on for as long as anybody waits."""
    pool.request_at = 0
    pool.held_to = 0
    pool.serve_pending()
    if pool.pending.waiting() == 0:
        return 0
    if pool.engine.ask_others is not None and pool.record.seats > 1:
        ef_health_want(pool.record.at, clipped(<int64_t>ef_share_sum(pool.record.at, pool.record.seats, EF_SHARE_PENDING)))
        pool.engine.ask_others((<Cluster>pool).name)
    return request_connections(pool, BORROW_MS)


cdef int release_connections(Pool pool, uint32_t to) except -1:
    """Others wait, first of all worker `to`: close what nobody has here, as many as all workers together are to; if there is none, what is free
    next, where that one has none or this one is ahead of it by two."""
    cdef Endpoint endpoint
    cdef bint closed = False
    if pool.record.others(EF_SHARE_PENDING) == 0:
        return 0  # they have found some meanwhile
    for endpoint in pool.endpoints:
        for up in list(endpoint.idle):
            closed = release_one(pool, <Outbound>up) or closed
        for session in list(endpoint.shared):
            if (<MultiplexedSession>session).is_idle():
                closed = release_one(pool, <MultiplexedSession>session) or closed
    if not closed and pool.record.at.wanted and to < pool.record.seats and is_ahead(pool, to):
        pool.release_to = to
        return release_shared(pool)
    return 0


cdef bint release_one(Pool pool, Session up) except -1:
    """End it, if one is wanted still."""
    if not ef_health_leave(pool.record.at):
        return False
    pool.lent_until = pool.engine.wheel.now + 2 * BORROW_MS
    if isinstance(up, MultiplexedSession):
        (<MultiplexedSession>up).stop(True)
    else:
        (<Outbound>up).stop(True)
    return True


cdef bint is_ahead(Pool pool, uint32_t of) noexcept:
    """This worker has to give what is free next."""
    cdef uint32_t theirs = pool.record.at.shares[of].count[EF_SHARE_CONNECTIONS]
    return pool.own[EF_SHARE_CONNECTIONS] > (theirs + 1 if theirs else 0)


cdef int release_shared(Pool pool) except -1:
    """Of HTTP/2 connections, which are hardly ever free: the one with the fewest requests takes no more; where not as many as wait are on
    their way already, of whichever worker."""
    cdef Endpoint endpoint
    cdef MultiplexedSession session, least = None
    cdef uint64_t waiting = ef_share_sum(pool.record.at, pool.record.seats, EF_SHARE_PENDING)
    if ef_share_sum(pool.record.at, pool.record.seats, EF_SHARE_LEAVING) >= waiting:
        return 0
    for endpoint in pool.endpoints:
        for session in endpoint.shared:
            if session.draining or session.used_up:
                return 0  # one is on its way
            if least is None or session.load() < least.load():
                least = session
    if least is None or not ef_health_leave(pool.record.at):
        return 0
    pool.release_to = -1
    pool.lent_until = pool.engine.wheel.now + 2 * BORROW_MS
    least.lent = True
    pool.own[EF_SHARE_LEAVING] += 1
    return least.use_up()


cdef int release_freed(Pool pool, Outbound up) except -1:
    """This one, if it is still to be given: its place is another worker's, who looks for it soon. 1: it was."""
    cdef int32_t to = pool.release_to
    pool.release_to = -1
    if not is_ahead(pool, <uint32_t>to) or pool.record.at.shares[to].count[EF_SHARE_PENDING] == 0:
        return 0
    return release_one(pool, up)
