# gRPC: the proxy's own answers to gRPC requests, their deadline, and their final status.
#
# In: an exchange with a gRPC head (csrc/grpc.h), the heads and trailers of its backend.
# Out: gRPC answers: HTTP status 200 with the gRPC status in the head ("Trailers-Only"), or in trailers after data that is already sent.
# Also `grpc-timeout` for the backend, and the cell of the status. Sources: github.com/grpc/grpc doc/PROTOCOL-HTTP2.md,
# doc/http-grpc-status-mapping.md, doc/statuscodes.md. Other requests cost a test of one bit.

cdef tuple GRPC_NAMES = tuple(name.encode() for name in GRPC_STATUSES)

GRPC_OWN_LINES = frozenset((b"content-type", b"content-encoding", b"grpc-status", b"grpc-message", b"grpc-status-details-bin"))
cdef dict GRPC_LINES = {}  # (status of HTTP, reason) -> lines; both are constants of ours


cdef int begin_grpc(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    """Its content type says that it is gRPC, or gRPC-Web: which is translated where the port's settings say so, and else like any other."""
    if head.grpc == EF_GRPC:
        ex.grpc = True
    elif ex.settings.grpc_web:
        ex.grpc = ex.takes_trailers = True
        ex.web = GrpcWeb.__new__(GrpcWeb)
        ex.web.learn(base, head)
        ex.engine.count(G_GRPC_WEB)
        if ex.web.text and ex.body.expected:
            ex.body.unsized = True
            ex.body.announced = 0
            ex.body.left = -1
    return 0


cdef int grpc_status_of(int status) noexcept:
    """Of a status of HTTP. Ours say more than those of others (doc/http-grpc-status-mapping.md): a timeout is no UNAVAILABLE, which clients
    ask again for, nor is a limit."""
    if status == 504 or status == 408:
        return GRPC_DEADLINE_EXCEEDED
    if status == 429 or status == 413:
        return GRPC_RESOURCE_EXHAUSTED
    return mapped_status(status)


cdef int mapped_status(int status) noexcept:
    """Of an answer that is no gRPC: what its client will take it for."""
    if status == 400:
        return GRPC_INTERNAL
    if status == 401:
        return GRPC_UNAUTHENTICATED
    if status == 403:
        return GRPC_PERMISSION_DENIED
    if status == 404:
        return GRPC_UNIMPLEMENTED
    return GRPC_UNAVAILABLE if status == 429 or 502 <= status <= 504 else GRPC_UNKNOWN


cdef bytes grpc_reason(int status):
    """What is said of an answer that has no words of its own."""
    if status == 404:
        return b"no route takes this call"
    if status == 429:
        return b"a rate limit is reached"
    if status == 413:
        return b"the request is larger than is allowed here"
    if status == 421:
        return b"the name of the connection and the authority of the call belong to different listeners"
    if status >= 500:
        return b"the route or its backend is refused by its configuration"
    return b"answered with HTTP status %d" % status


cdef bytes grpc_message(bytes text):
    """Percent-encoded: all but printable ASCII without "%" (doc/PROTOCOL-HTTP2.md, Status-Message)."""
    return b"".join([b"%c" % byte if 32 <= byte < 127 and byte != 37 else b"%%%02X" % byte for byte in text])


cdef bytes grpc_lines(Exchange ex, int status, bytes reason):
    """The lines of an answer of our own in place of that status; its client learns it from them."""
    ex.grpc_status = grpc_status_of(status)
    lines = GRPC_LINES.get((status, reason))
    if lines is None:
        lines = GRPC_LINES[status, reason] = b"content-type: application/grpc\r\ngrpc-status: %d\r\ngrpc-message: %b\r\n" % (
            ex.grpc_status, grpc_message(reason.rstrip(b"\n") or grpc_reason(status))
        )
    return lines


cdef int respond_grpc(Exchange ex, int status, bytes own, bytes lines) except -1:
    """An answer of our own that HTTP would have had that status for: the lines of gRPC that say so, and more."""
    cdef bytes body = b""
    if ex.web is None:
        lines = own + lines
    else:
        lines, body = ex.web.own_answer(own, lines)
    ex.http_status, ex.status = status, 200
    ex.down.answer(200, lines, body, ex.method == EF_M_HEAD)
    return ex.finish()


cdef bint end_stream(Exchange ex, uint32_t flag) except -1:
    """A part of the answer is out: end it with a status, where its client would take a reset for something else. False: it cannot be."""
    if not flag & (F_TIMEOUT | F_IDLE) or not ex.grpc_answer or not ex.down.takes_end(ex.web is None):
        return False
    if ex.web is not None and not ex.web.translates:  # a frame of gRPC-Web has no place behind it
        return False
    ex.grpc_status = GRPC_DEADLINE_EXCEEDED
    lines = b"grpc-status: 4\r\ngrpc-message: %b\r\n" % grpc_message(failure_text(504, flag, 0).rstrip(b"\n"))
    if ex.web is not None:
        ex.web.answer_trailers(<const uint8_t *>PyBytes_AS_STRING(lines), PyBytes_GET_SIZE(lines))
        ex.web.hand_over(ex.down)
    else:
        ex.down.response_trailers(<const uint8_t *>PyBytes_AS_STRING(lines), PyBytes_GET_SIZE(lines))
    ex.down.response_end()
    return True


# --- how long its client waits ------------------------------------------------------------------------------------------

cdef int bound_by_client(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    """grpc-timeout, if it is one: our own goes on in its place (place_timeout). What is none is the backend's to judge."""
    cdef ef_span *span
    cdef int64_t wait
    cdef uint16_t i
    for i in range(head.n_spans):
        span = &head.spans[i]
        if is_named(base, span, HASH_GRPC_TIMEOUT, "grpc-timeout", 12):
            wait = ef_grpc_timeout(base + span.val_off, span.val_len)
            if wait >= 0 and ex.client_deadline == 0:
                ex.client_deadline = ex.engine.wheel.now + (wait if wait < NEVER_MS else NEVER_MS)
            if ex.client_deadline:
                span.flags |= EF_SPAN_HOP
    return 0


cdef int place_timeout(Exchange ex, Out *out, HeaderOps ops) except -1:
    """Into the backend's head: a line whose digits each try writes anew, unless a filter has its own."""
    cdef bytes line = without(b"grpc-timeout: 00000001m\r\n", ops)
    if not line:
        return 0
    out_reserve(out, 64)
    ex.timeout_at = out.size + 14
    out_bytes(out, line)
    return 0


cdef void write_timeout(Exchange ex) noexcept:
    """What is left of it now, of the route's if that is shorter; in milliseconds, 1 to 99,999,999 (27 hours)."""
    cdef int64_t left = ex.client_deadline
    cdef int i
    if ex.route_deadline and ex.route_deadline < left:
        left = ex.route_deadline
    left -= ex.engine.wheel.now
    left = 1 if left < 1 else 99999999 if left > 99999999 else left
    for i in range(7, -1, -1):
        ex.head.data[ex.timeout_at + i] = <uint8_t>(48 + left % 10)
        left //= 10


# --- how it ended -------------------------------------------------------------------------------------------------------

cdef int note_grpc_head(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    """The backend's head: it may be all there is of its answer."""
    cdef uint16_t i
    ex.grpc_answer = head.grpc == EF_GRPC and head.body != EF_BODY_LENGTH and head.body != EF_BODY_NONE
    for i in range(head.n_spans):
        if is_named(base, &head.spans[i], HASH_GRPC_STATUS, "grpc-status", 11):
            ex.grpc_status = ef_grpc_status(base + head.spans[i].val_off, head.spans[i].val_len)
    return 0


cdef int note_grpc_trailers(Exchange ex, const uint8_t *lines, size_t n) except -1:
    cdef size_t at = 0
    cdef ef_span span
    while at < n:
        at = ef_trailer_next(lines, n, at, &span)
        if at == 0:
            break
        if is_named(lines, &span, HASH_GRPC_STATUS, "grpc-status", 11):
            ex.grpc_status = ef_grpc_status(lines + span.val_off, span.val_len)
    return 0


cdef int end_grpc(Exchange ex, ef_stat_row *row) except -1:
    """It is over: with which status its client takes it to have ended, and what HTTP would have called that."""
    cdef int status = ex.grpc_status
    if status < 0:
        if ex.flags & F_CLIENT_GONE or ex.flags & F_TOO_LARGE:
            status = GRPC_CANCELLED
        elif ex.flags & (F_TIMEOUT | F_IDLE):
            status = GRPC_DEADLINE_EXCEEDED
        elif ex.flags & (F_RESET | F_PROTOCOL | F_SLOW_READER):
            status = GRPC_INTERNAL  # as clients read INTERNAL_ERROR of HTTP/2
        else:
            status = GRPC_UNKNOWN if ex.status == 200 else mapped_status(ex.status)
        ex.grpc_status = status
    ef_stat_add(&row.cells[C_GRPC + (status if status <= GRPC_UNAUTHENTICATED else GRPC_UNKNOWN)], 1)
    if ex.http_status == 0:
        if status == GRPC_OK:
            ex.http_status = ex.status
        elif (
            status == GRPC_UNKNOWN or status == GRPC_DEADLINE_EXCEEDED or GRPC_UNIMPLEMENTED <= status <= GRPC_DATA_LOSS
            or status > GRPC_UNAUTHENTICATED
        ):
            ex.http_status = 500  # the server's fault, by OpenTelemetry's semantic conventions for RPC
        else:
            ex.http_status = 400
    return 0


cdef int http_status_of(Exchange ex, int status) noexcept:
    """The status as HTTP would have had it."""
    return ex.http_status if ex is not None and ex.http_status else status


cdef bytes grpc_name(int status):
    """"DEADLINE_EXCEEDED"; of a status that gRPC does not have its number."""
    return <bytes>GRPC_NAMES[status] if 0 <= status <= GRPC_UNAUTHENTICATED else b"%d" % status
