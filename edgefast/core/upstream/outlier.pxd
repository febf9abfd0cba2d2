# Outlier: when an endpoint is ejected for a while.

cdef class Outlier:
    cdef:
        uint32_t after[EF_HEALTH_FAILURES]  # failures in a row, EF_FAILURE_*; 0: never
        uint64_t base_ms, max_ms, sweep_ms
        uint32_t percent        # of a cluster's endpoints, that may be out
        bint always_one         # one may, whatever `percent` says
        uint32_t threshold      # percent of an interval's answers that fail, and it is out (sweep.pyx); 0: none are too many
        int64_t interval        # ms of it
        bint apart              # connects and connections that fail are none of these
        object __weakref__

    cdef int failed(self, Endpoint endpoint, bint reported_outlier) except -1
    cdef int answered(self, Endpoint endpoint, int status) except -1
    cdef int evaluate(self, Endpoint endpoint, uint32_t kind) except -1
    cdef int eject(self, Endpoint endpoint) except -1
    cdef uint32_t most(self, uint32_t size) noexcept

cdef Outlier outlier_of(Engine engine, object spec)
