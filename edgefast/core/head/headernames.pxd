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


cdef inline bint is_named(const uint8_t *base, const ef_span *span, uint32_t hashed, const char *name, size_t n) noexcept:
    """A received header line has this name; hashed: ef_name_hash of `name`, which is in lower case."""
    return span.name_hash == hashed and span.name_len == n and strncasecmp(<const char *>base + span.name_off, name, n) == 0

cdef int drop_trailers(Out *lines, list sets) except -1

cdef bytes lines_but(bytes lines, names)

cdef bint find_line(const uint8_t *data, size_t n, const uint8_t *name, size_t name_len, const uint8_t **value, size_t *value_n) noexcept

cdef frozenset BODY_HEADERS          # names of header lines that describe a body


cdef inline uint8_t fold_name(uint8_t c) noexcept:
    if c"A" <= c <= c"Z":
        return c | 32
    return c if c"a" <= c <= c"z" or c"0" <= c <= c"9" else c"-"
