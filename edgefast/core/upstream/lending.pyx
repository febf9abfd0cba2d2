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
    pool.serve_pending()
    if pool.pending.waiting == 0:
        return 0
    if pool.engine.ask_others is not None and pool.record.seats > 1:
        pool.engine.ask_others((<Cluster>pool).name)
    return borrow(pool, BORROW_MS)


cdef int lend(Pool pool) except -1:
    """Others wait: close what nobody has here, as many as they are; if there is none, the next one that is free."""
    cdef Endpoint endpoint
    cdef uint64_t wanted = pool.record.others(EF_SHARE_PENDING)
    cdef uint64_t own = pool.own[EF_SHARE_CONNECTIONS]
    for endpoint in pool.endpoints:
        for up in list(endpoint.idle)[:wanted]:
            (<Outbound>up).stop(True)
            wanted -= 1
        for session in list(endpoint.shared):
            if wanted and (<H2Client>session).is_idle():
                (<H2Client>session).stop(True)
                wanted -= 1
    if wanted and own * pool.record.seats > own + pool.record.others(EF_SHARE_CONNECTIONS):
        pool.lends = True
    return 0


cdef int lend_freed(Pool pool, Outbound up) except -1:
    """This one: its place is another worker's, who looks for it soon."""
    pool.lends = False
    pool.lent_until = pool.engine.wheel.now + 2 * BORROW_MS
    return up.stop(True)
