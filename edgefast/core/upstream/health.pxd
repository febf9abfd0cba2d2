# Health: the health and usage of clusters and endpoints, for all workers of the proxy.

cdef class Health:
    cdef:
        object view             # keeps the mapping; None: there is none, what is counted is this worker's alone
        ef_health *segment
        uint32_t seat, seats    # its own, and how many there are
        int64_t pause_until     # ms; the lock was not to be had: it is not asked for before
        bint reported               # that there was no room
        object records          # key -> HealthRecord, of those that anybody here has

    cdef ef_health_record *find(self, uint64_t key) noexcept
    cdef bint claim(self) noexcept
    cdef int resign(self) noexcept
    cdef HealthRecord hold(self, bytes name)


cdef class HealthRecord:
    cdef:
        ef_health *segment      # where it is; NULL: it is this worker's own
        ef_health_record *at
        uint32_t seat, seats
        uint32_t *own           # what this worker counts, EF_SHARE_*
        object __weakref__

    cdef uint64_t others(self, uint32_t what) noexcept
    cdef bint take(self, uint32_t what, uint32_t most) noexcept
