# Path pattern: a regular expression that rewrites paths.

cdef class PathPattern:
    cdef:
        Engine engine
        object regex            # None: it cannot be used
        list pieces             # bytes, or the number of a group

    cdef bytes replace(self, const uint8_t *path, size_t size)
    cdef bint is_plain(self, bytes path, bytes before) except -1
