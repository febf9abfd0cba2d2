# Response head: writes the client's response head from the spans of the backend's (header rules: docs/reference/http1.md, spec 4).
#
# In: an exchange and its backend's head. Out: HTTP/1.1 text in engine.out, one copy of what stays.

cdef int write_status_rest(Out *out, const uint8_t *base, ef_head *head) except -1:
    """Status code and reason, as received, with CRLF."""
    cdef uint32_t end = head.spans[0].name_off if head.n_spans else head.head_len - 2
    if end - 9 == 5:  # no space and no reason: the space is not optional (RFC 9112 4)
        out_raw(out, base + 9, 3)
        out_raw(out, <const char *>b" \r\n", 3)
    else:
        out_raw(out, base + 9, end - 9)
    return 0


cdef int write_response_head(Exchange ex, const uint8_t *base, ef_head *head, uint32_t drop) except -1:
    """Into engine.out: the backend's head as the client gets it, less the lines of framing and of the connection and the empty line at its
    end: there is room for those of HTTP/1. `drop`: bit set of enum ef_header_id that does not go on."""
    cdef Engine engine = ex.engine
    cdef Out *out = &engine.out
    cdef HeaderOps ops = ex.backend.response_ops
    cdef bytes line, auth_lines = None
    cdef uint16_t i
    if ops is None or not ops.sets_server:
        drop |= <uint32_t>1 << EF_H_SERVER
    if head.response_status == 204:  # it has no length, not even 0 (RFC 9110 8.6)
        drop |= <uint32_t>1 << EF_H_CONTENT_LENGTH
    out.size = 0
    out_reserve(
        out,
        head.head_len + 512 + (PyBytes_GET_SIZE(ops.append) if ops is not None else 0)
        + (PyBytes_GET_SIZE(ex.cors_lines) if ex.cors_lines is not None else 0),
    )
    out_raw(out, <const char *>b"HTTP/1.1 ", 9)
    write_status_rest(out, base, head)
    for i in range(head.n_spans):
        if head.spans[i].name_hash == HASH_SERVICE_TIME and head.spans[i].name_len == 28:
            head.spans[i].flags |= EF_SPAN_HOP
    if ex.auth_result is not None:
        auth_lines = ex.auth_result.lines(ex, base, head)  # before those are written that it is in place of
    write_spans(out, base, head, EF_SPAN_HOP | EF_SPAN_NOMINATED, drop, ops, CORS_OPS if ex.cors_lines is not None else None)
    if drop >> EF_H_SERVER & 1:
        out_raw(out, <const char *>b"server: edgefast\r\n", 18)
    if not head.has_date:
        line = engine.clock.date_line()
        out_bytes(out, without(line, ops))
    if ops is None or not ops.own or b"x-edge-upstream-service-time" not in ops.names:
        out_raw(out, <const char *>b"x-edge-upstream-service-time: ", 30)
        out_number(out, <uint64_t>(ex.upstream_us // 1000 if ex.upstream_us > 0 else 0))
        out_raw(out, <const char *>b"\r\n", 2)
    if ops is not None:
        out_bytes(out, ops.append)
        if ops.success is not None and head.response_status in SUCCESS_STATUSES:
            out_reserve(out, PyBytes_GET_SIZE(ops.success) + 512)
            out_bytes(out, ops.success)
    if auth_lines is not None:
        out_reserve(out, PyBytes_GET_SIZE(auth_lines) + 512)
        out_bytes(out, auth_lines)
    if ex.decision is not None:
        line = ex.decision.lines(ex.settings)
        out_reserve(out, PyBytes_GET_SIZE(line) + 512)
        out_bytes(out, line)
    if ex.web is not None and ex.web.translates:
        out_reserve(out, PyBytes_GET_SIZE(ex.web.answer_line) + 512)
        out_bytes(out, without(ex.web.answer_line, ops))
    if ex.rewritten is not None:
        out_reserve(out, PyBytes_GET_SIZE(ex.rewritten) + 512)
        out_bytes(out, ex.rewritten)
    if ex.new_cookies is not None:
        out_reserve(out, PyBytes_GET_SIZE(ex.new_cookies) + 512)
        out_bytes(out, ex.new_cookies)
    if ex.compressor is not None:
        out_reserve(out, PyBytes_GET_SIZE(ex.compressor.lines) + 512)
        out_bytes(out, ex.compressor.lines)
    if ex.cors_lines is not None:
        out_reserve(out, PyBytes_GET_SIZE(ex.cors_lines) + 512)
        out_bytes(out, ex.cors_lines)
    out_reserve(out, 64)
    return 0
