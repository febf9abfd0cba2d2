# Connections that one worker gives up because users wait in another one: a bound of connections holds for all workers together
# (breaker.pyx), and whoever has none of them would wait for ever.
#
# In: users that wait because there may be no more connections, here and in other workers. Out: other workers are asked, again and again
# while anybody waits; who is asked closes what it has idle, or else the next one that is free, where it has more than its part. Must never
# end a request, and costs nothing where nobody has such a bound.

cdef int borrow(Pool pool, int64_t wait) except -1:
    """Somebody waits: look in so many ms whether others have left anything, and ask them for it."""
    if pool.borrow_at == 0:
        pool.borrow_at = pool.engine.wheel.now + wait
        return pool.rearm()
    return 0


cdef int borrow_again(Pool pool) except -1:
    """It is time to look; this goes on for as long as anybody waits."""
    pool.borrow_at = 0
    pool.held_to = 0
    pool.serve_pending()
    if pool.pending.waiting == 0:
        return 0
    if pool.engine.ask_others is not None and pool.record.seats > 1:
        pool.engine.ask_others((<Cluster>pool).name)
    return borrow(pool, BORROW_MS)


cdef int lend(Pool pool, uint32_t to) except -1:
    """Others wait, first of all worker `to`: close what nobody has here, as many as they are; if there is none, what is free next, where that
    one has none or this one is ahead of it by two."""
    cdef Endpoint endpoint
    cdef uint64_t wanted = pool.record.others(EF_SHARE_PENDING)
    cdef bint closed = False
    for endpoint in pool.endpoints:
        for up in list(endpoint.idle)[:wanted]:
            (<Outbound>up).stop(True)
            wanted -= 1
            closed = True
        for session in list(endpoint.shared):
            if wanted and (<H2Client>session).is_idle():
                (<H2Client>session).stop(True)
                wanted -= 1
                closed = True
    if closed:
        pool.lent_until = pool.engine.wheel.now + 2 * BORROW_MS
    elif wanted and to < pool.record.seats and is_ahead(pool, to):
        pool.lends_to = to
        return lend_shared(pool)
    return 0


cdef bint is_ahead(Pool pool, uint32_t of) noexcept:
    """This worker has to give what is free next."""
    cdef uint32_t theirs = pool.record.at.shares[of].count[EF_SHARE_CONNECTIONS]
    return pool.own[EF_SHARE_CONNECTIONS] > (theirs + 1 if theirs else 0)


cdef int lend_shared(Pool pool) except -1:
    """Of HTTP/2 connections, which are hardly ever free: the one with the fewest requests takes no more."""
    cdef Endpoint endpoint
    cdef H2Client session, least = None
    for endpoint in pool.endpoints:
        for session in endpoint.shared:
            if session.draining:
                return 0  # one is on its way
            if least is None or session.load() < least.load():
                least = session
    if least is None:
        return 0
    pool.lends_to = -1
    pool.lent_until = pool.engine.wheel.now + 2 * BORROW_MS
    return least.drain()


cdef int lend_freed(Pool pool, Outbound up) except -1:
    """This one, if it is still to be given: its place is another worker's, who looks for it soon. 1: it was."""
    cdef int32_t to = pool.lends_to
    pool.lends_to = -1
    if not is_ahead(pool, <uint32_t>to) or pool.record.at.shares[to].count[EF_SHARE_PENDING] == 0:
        return 0
    pool.lent_until = pool.engine.wheel.now + 2 * BORROW_MS
    up.stop(True)
    return 1
