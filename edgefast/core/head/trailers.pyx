# Trailers: which fields behind a body are forwarded (RFC 9110 6.5.1, docs/reference/http1.md "Trailers").
#
# In: checked lines of a codec, the header operations of the rule. Out: the lines that stay, as received. Rules never set or add trailers. A
# trailer is dropped if the rule sets or removes its name in the head.

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
