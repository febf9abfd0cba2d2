# Override: response overrides.

cdef class Override:
    cdef:
        list statuses           # (from, to)
        int status              # 0: as it was
        bytes lines             # its header lines
        bytes body

    cdef bint covers(self, int status) noexcept


cdef class Overrides:
    cdef list ones              # Override, in order

    cdef Override find(self, int status)
