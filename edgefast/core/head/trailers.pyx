# The fields behind a body: which of them go on (RFC 9110 6.5.1, docs/reference/http1.md "Trailers").
#
# In: checked lines of a codec, what the rule does to heads. Out: the lines that stay, as they came. Rules neither set nor add trailers; a
# name that they set or remove in the head is not brought in behind it.

cdef int keep_trailers(Out *out, const uint8_t *lines, size_t n, HeaderOps ops, bint underscores) except -1:
    """Into `out`, which is emptied first."""
    cdef size_t at = 0, after
    cdef ef_span span
    out.size = 0
    out_reserve(out, n)
    while at < n:
        after = ef_trailer_next(lines, n, at, &span)
        if after == 0:
            break
        if not span.flags & EF_SPAN_HOP and (underscores or not span.flags & EF_SPAN_UNDERSCORE) and (
            ops is None or not ops.drops(lines, &span)
        ):
            out_raw(out, lines + at, after - at)
        at = after
    return 0
