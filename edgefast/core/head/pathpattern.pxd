# Path pattern: a regular expression that rewrites paths.

cdef class PathPattern:
    cdef:
        Engine engine
        Substitution substitution

    cdef bytes replace(self, const uint8_t *path, size_t size)
    cdef bint is_plain(self, bytes path, bytes before) except -1
