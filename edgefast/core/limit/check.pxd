# Check: one batch of checks for the store of counters.

# Checks that went out together.
cdef class Batch:
    cdef:
        int left                # checks without an answer
        int64_t sent            # us
        int64_t sent_ms         # Wheel.now


# One counter in one batch.
cdef class Check:
    cdef:
        readonly bytes key
        readonly uint32_t n, limit, unit
        readonly bint sliding
        Batch batch
        int64_t due             # ms; the first of its requests has waited long enough
        bint done, graced
        uint32_t admitted, remaining
        int64_t reset_ms
        uint64_t window
        Exchange ex             # the first request; None: counted only
        Limit of                # its limit
        list more               # Exchange or None, Limit, Exchange or None, ... of those that came later; mostly None
