# Override: response overrides.

# Who gives an answer.
cdef enum:
    OF_BACKEND = 1
    OF_GATEWAY = 2
    OF_NO_ENDPOINTS = 4     # 503 of the proxy, because the backend has none


cdef class Override:
    cdef:
        list statuses           # (from, to)
        uint32_t sources        # OF_*: whose answers
        int status              # 0: as it was
        bytes lines             # its header lines
        bytes body
        HeaderOps ops           # edits of these; None: none
        ErrorService service    # what writes the answer; None: this one

    cdef bint covers(self, int status, uint32_t source) noexcept


cdef class Overrides:
    cdef:
        list ones               # Override, in order
        bint asks               # one of them has a service

    cdef Override find(self, int status, uint32_t source)
