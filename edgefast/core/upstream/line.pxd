# Users that wait in turn.

cdef class Line:
    cdef object users       # OrderedDict UpstreamUser -> None

    cdef uint32_t size(self) noexcept
    cdef UpstreamUser first(self)
    cdef int join(self, UpstreamUser user) except -1
    cdef int leave(self, UpstreamUser user) except -1
