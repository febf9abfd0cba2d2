# gRPC denial: converts the HTTP denial of an authorization service for a gRPC client.
#
# In: the HTTP answer of a service. Out: a head-only answer with a gRPC status for a denied call. Clients would take 404 for a missing
# method, and other statuses for a failing server. A grpc-status of the service itself is used.
# Source: github.com/grpc/grpc doc/PROTOCOL-HTTP2.md (Responses).

cdef int denied_grpc(int status) noexcept:
    """Of a denial in HTTP's words."""
    if status == 401:
        return GRPC_UNAUTHENTICATED
    return GRPC_PERMISSION_DENIED if status < 500 else grpc_status_of(status)


cdef bytes line_value(bytes lines, bytes name):
    """Of the first line of that name, in any case; None: there is none."""
    for line in lines.splitlines():
        found, _, value = line.partition(b":")
        if found.lower() == name:
            return value.strip(b" \t")
    return None


cdef bint is_short_text(bytes lines, bytes body) noexcept:
    """It can stand in one line: a message for people, not a page."""
    return 0 < PyBytes_GET_SIZE(body) <= GRPC_MESSAGE and (line_value(lines, b"content-type") or b"text/plain").lower().startswith(b"text/plain")


cdef int deny_grpc(Exchange ex, AuthDecision decision, bytes lines, bytes body) except -1:
    """`lines` have those of CORS in them."""
    cdef bytes text = line_value(decision.lines, b"grpc-status")
    cdef bytes message = line_value(decision.lines, b"grpc-message"), details = None
    cdef int status = ef_grpc_status(<const uint8_t *>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)) if text is not None else -1
    cdef int http_status = decision.status
    if GRPC_OK < status <= GRPC_UNAUTHENTICATED:
        details = line_value(decision.lines, b"grpc-status-details-bin")
    else:
        status = denied_grpc(decision.status)
        if status == GRPC_PERMISSION_DENIED:
            http_status = 403
    if message is None:
        message = grpc_message(body.rstrip(b"\n") if is_short_text(decision.lines, body) else b"an authorization service denied the call")
    ex.grpc_status = status
    own = b"content-type: application/grpc\r\ngrpc-status: %d\r\ngrpc-message: %b\r\n" % (status, message)
    if details is not None:
        own += b"grpc-status-details-bin: %b\r\n" % details
    lines = add_own_headers(ex, lines_but(lines, GRPC_OWN_LINES))
    if ex.auth_result is not None:
        lines += ex.auth_result.lines(ex, NULL, NULL)
    return respond_grpc(ex, http_status, own, lines)
