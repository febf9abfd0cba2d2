# Header names: names of header lines that a service receives or may set, or that a rule requires.

cdef class HeaderNames:
    cdef:
        tuple names         # lower case
        uint64_t lengths    # a bit for each length that one of them has, modulo 64

    cdef bint has(self, const uint8_t *name, size_t n) noexcept
    cdef bint covers(self, const uint8_t *name, size_t n) noexcept
    cdef int drop_fields(self, Out *lines) except -1


# All but these and the proxy's own.
cdef class OtherNames(HeaderNames):
    pass
