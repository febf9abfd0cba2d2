# Header names: sets of header names, and what a backend may read as one of them.
#
# In: names of the configuration, received names. Out: whether they are the same, as written or as servers read them. CGI and its successors
# take "_" for "-", and some take every other sign for it.
# Must never take a name for another one that a backend could not.

BODY_HEADERS = frozenset((  # names of lines that describe a body
    b"content-type", b"content-encoding", b"content-language", b"content-location", b"content-range", b"content-disposition", b"etag",
    b"last-modified", b"accept-ranges", b"digest", b"content-digest", b"repr-digest",
))


cdef class HeaderNames:
    def __init__(self, names):
        cdef bytes name
        self.names = tuple([one.lower().encode() for one in names])
        for name in self.names:
            self.lengths |= <uint64_t>1 << (PyBytes_GET_SIZE(name) & 63)

    cdef bint has(self, const uint8_t *name, size_t n) noexcept:
        """It is one of them, in any case."""
        cdef object one
        if not self.lengths >> (n & 63) & 1:
            return False
        for one in self.names:
            if PyBytes_GET_SIZE(one) == <Py_ssize_t>n and strncasecmp(PyBytes_AS_STRING(one), <const char *>name, n) == 0:
                return True
        return False

    cdef bint covers(self, const uint8_t *name, size_t n) noexcept:
        """A backend may take it for one of them."""
        cdef object one
        cdef const uint8_t *text
        cdef size_t i
        if not self.lengths >> (n & 63) & 1:
            return False
        for one in self.names:
            if PyBytes_GET_SIZE(one) != <Py_ssize_t>n:
                continue
            text = <const uint8_t *>PyBytes_AS_STRING(one)
            i = 0
            while i < n and fold_name(text[i]) == fold_name(name[i]):
                i += 1
            if i == n:
                return True
        return False

    cdef int drop_fields(self, Out *lines) except -1:
        """Leave those fields behind a body out that a backend may put among these."""
        cdef size_t at = 0, after, kept = 0
        cdef ef_span span
        while at < lines.size:
            after = ef_trailer_next(lines.data, lines.size, at, &span)
            if after == 0:
                break
            if not self.covers(lines.data + span.name_off, span.name_len):
                memmove(lines.data + kept, lines.data + at, after - at)
                kept += after - at
            at = after
        lines.size = kept
        return 0


cdef class OtherNames(HeaderNames):
    cdef bint has(self, const uint8_t *name, size_t n) noexcept:
        """It is none of them, in any spelling, and none of x-edge-*."""
        if n >= 7 and strncasecmp(<const char *>name, b"x-edge-", 7) == 0:
            return False
        return not HeaderNames.covers(self, name, n)


cdef int drop_trailers(Out *lines, list sets) except -1:
    """Remove fields behind the body that a backend may take for one of these names; sets: list of HeaderNames."""
    cdef size_t at = 0, after, kept = 0
    cdef HeaderNames names
    cdef ef_span span
    while at < lines.size:
        after = ef_trailer_next(lines.data, lines.size, at, &span)
        if after == 0:
            break
        for names in sets:
            if names.covers(lines.data + span.name_off, span.name_len):
                break
        else:
            memmove(lines.data + kept, lines.data + at, after - at)
            kept += after - at
        at = after
    lines.size = kept
    return 0


cdef bytes lines_but(bytes lines, names):
    """Those of other names; `names` in lower case."""
    return b"".join([line for line in lines.splitlines(True) if line.partition(b":")[0].lower() not in names])


cdef bint find_line(const uint8_t *data, size_t n, const uint8_t *name, size_t name_len, const uint8_t **value, size_t *value_n) noexcept:
    """The first header line of that name in a head as it was sent."""
    cdef size_t at = 0, end, first
    while at < n:
        end = at
        while end < n and data[end] != c"\n":
            end += 1
        if end - at > name_len and data[at + name_len] == c":" and strncasecmp(<const char *>data + at, <const char *>name, name_len) == 0:
            first = at + name_len + 1
            while first < end and (data[first] == c" " or data[first] == c"\t"):
                first += 1
            while end > first and (data[end - 1] == c"\r" or data[end - 1] == c" " or data[end - 1] == c"\t"):
                end -= 1
            value[0], value_n[0] = data + first, end - first
            return True
        if end - at <= 1:  # the empty line: what follows is a body
            return False
        at = end + 1
    return False
