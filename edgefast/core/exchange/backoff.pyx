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
