# Eviction: which exchange ends so that other clients get its place or its connection, and how it ends.
#
# In: an exchange whose client is slow, or a long-lived stream. Out: since when or how slowly it moves; its end: 408, 503, or an aborted
# answer.

cdef int64_t client_inactive_since(Exchange ex) noexcept:
    """Time (ms of the wheel) since which an exchange waits for its client, or its long-lived stream is idle; -1: neither."""
    if ex.finished:
        return -1
    if ex.lasts:
        return max(ex.idle_deadline - ex.idle_timeout, <int64_t>0)
    if ex.slow is not None:
        return ex.slow_at
    if ex.body.expected and not ex.body.done and ex.retry.state != TRY_ANSWERED and ex.idle_deadline and not ex.comes():
        return max(ex.idle_deadline - ex.idle_timeout, <int64_t>0)
    return -1


cdef int preempt_exchange(Exchange ex) except -1:
    """End an exchange for another client."""
    if ex.finished:
        return 0
    if ex.lasts:
        ex.engine.count(G_STREAMS_GAVE_WAY)
        if ex.retry.state == TRY_ANSWERED:
            return ex.abort(F_SLOW_READER)
        ex.failure = UP_STREAMS
        return ex.fail(503, F_OVERFLOW)
    if ex.slow is not None:
        ex.engine.count(G_ANSWERS_GAVE_WAY)
        return ex.cut_answer()
    ex.engine.count(G_BODIES_GAVE_WAY)
    return ex.evict()


cdef int64_t slow_rate_of(Exchange ex) except -2:
    """Bytes a second of an answer that its client reads too slowly, else of its body (UpstreamUser); -1: not slow."""
    cdef int64_t spent = ex.engine.wheel.now - ex.slow_at, rate
    cdef size_t left
    if ex.slow is None:
        return UpstreamUser.slow_rate(ex)
    if spent < EVICTION_GRACE_MS:
        return -1
    left = ex.down.untaken()
    rate = <int64_t>(ex.slow_left - min(left, ex.slow_left)) * 1000 // spent
    return rate if rate < <int64_t>ex.settings.answer_rate * EVICTION_RATE else -1


cdef int yield_connection_of(Exchange ex) except -1:
    """Give the connection of an exchange to others. Returns how many were ended."""
    cdef AnswerShare slow = ex.slow
    if slow is None:
        return UpstreamUser.yield_connection(ex)
    ex.engine.count(G_ANSWERS_GAVE_WAY)
    slow.leaving += 1
    ex.cut_answer()
    return 1
