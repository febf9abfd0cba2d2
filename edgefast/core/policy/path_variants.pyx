# Path variants: other paths that servers may read a path as, for Deny rules.
#
# In: a path in normal form (csrc/path.h). Out: the same with all of its escapes decoded, and that without what comes after ";" in its
# segments. Some servers cut that off ("/admin;a/x" is "/admin/x" to them). Must never be used for an Allow rule.

cdef list read_path(Engine engine, const uint8_t *path, size_t size):
    """None where it can be read as it is written only. A reading that is None is of a path of which it cannot be told."""
    cdef list readings = None
    cdef bytes written, read
    cdef bint cut
    cdef size_t length = 0
    if memchr(path, c"%", size) == NULL and memchr(path, c";", size) == NULL:
        return None
    written = path[:size]
    for cut in range(2):
        if ef_path_unescape_slashes(
            <const uint8_t *>PyBytes_AS_STRING(written), size, engine.scratch, engine.scratch_size, &length
        ) < 0:
            return [None]
        read = engine.scratch[:read_segments(engine.scratch, length, cut)]
        if readings is None:
            readings = []
        if read != written and read not in readings:
            readings.append(read)
    return readings


cdef inline uint8_t read_digit(uint8_t c) noexcept:
    return c - c"0" if c <= c"9" else (c | 32) - c"a" + 10


cdef size_t read_segments(uint8_t *path, size_t size, bint cut) noexcept:
    """Read escapes in place, cut parameters off, merge slashes; the length of what is left."""
    cdef size_t at = 0, kept = 0
    cdef uint8_t byte
    while at < size:
        byte = path[at]
        if byte == c"%" and size - at > 2:
            byte = read_digit(path[at + 1]) << 4 | read_digit(path[at + 2])
            at += 2
        at += 1
        if cut and byte == c";":
            while at < size and path[at] != c"/":
                at += 1
        elif byte != c"/" or kept == 0 or path[kept - 1] != c"/":
            path[kept] = byte
            kept += 1
    return kept
