# Retry window: the allowed retries in an interval, by the recent requests of a cluster (XBackendTrafficPolicy retryConstraint).
#
# In: attempts, and requests to retry. Out: whether they may, by the counts of all workers. Must cost nothing where no policy has one.

cdef class RetryWindow:
    def __init__(self, spec):
        """spec: ir.RetryConstraint."""
        self.how.percent = spec.percent
        self.how.interval_ms = spec.interval
        self.how.floor = spec.count
        self.how.floor_ms = spec.count_interval

    cdef void count(self, Pool pool) noexcept:
        """One more try."""
        ef_window_count(pool.record.at, pool.record.seat, &self.how, <uint64_t>pool.engine.wheel.now)

    cdef bint take(self, Pool pool) noexcept:
        """One more repeat, if there may be one; it is counted."""
        return ef_window_take(pool.record.at, pool.record.seats, pool.record.seat, &self.how, <uint64_t>pool.engine.wheel.now) != 0
