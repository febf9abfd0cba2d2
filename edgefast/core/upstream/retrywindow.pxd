# Retry window: retries in proportion to the requests of an interval (ir.RetryConstraint; csrc/window.h).

cdef extern from "window.h" nogil:
    ctypedef struct ef_window:
        uint32_t percent
        uint32_t interval_ms
        uint32_t floor
        uint32_t floor_ms

    void ef_window_count(ef_health_record *record, uint32_t seat, const ef_window *how, uint64_t now_ms)
    int ef_window_take(ef_health_record *record, uint32_t seats, uint32_t seat, const ef_window *how, uint64_t now_ms)


cdef class RetryWindow:
    cdef ef_window how

    cdef void count(self, Pool pool) noexcept
    cdef bint take(self, Pool pool) noexcept
