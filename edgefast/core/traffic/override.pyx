# Override: replaces answers by their status (ir.ResponseOverride).
#
# In: an answer of the proxy, or the head of a backend's. Out: the answer of the first override with its status and source: one of its own, or
# that of an error service (policy/error_service.pyx). The backend's body is not forwarded: a body with a small declared length is read to its
# end, which keeps the connection; any other is cut off. gRPC calls keep their answers: their status is elsewhere. Must never replace an
# answer twice, or a part of one.

cdef class Override:
    def __init__(self, Engine engine, spec):
        self.statuses = list(spec.statuses)
        self.sources = <uint32_t>OVERRIDE_SOURCES[spec.source]
        self.status = spec.status
        self.body = spec.body
        self.lines = b"content-type: %b\r\n" % spec.content_type.encode() if spec.content_type and spec.body else b""
        self.ops = compile_ops((spec.header,))
        if spec.location:
            self.lines = b"location: %b\r\n" % spec.location.encode()
        if spec.service is not None:
            self.service = engine.policies.make_error_service(spec.service)

    cdef bint covers(self, int status, uint32_t source) noexcept:
        cdef int first, last
        if not self.sources & source:
            return False
        for first, last in self.statuses:
            if first <= status <= last:
                return True
        return False


cdef dict OVERRIDE_SOURCES = {
    "all": OF_BACKEND | OF_GATEWAY | OF_NO_ENDPOINTS, "backend": OF_BACKEND, "gateway": OF_GATEWAY | OF_NO_ENDPOINTS,
    "no_endpoints": OF_NO_ENDPOINTS,
}


cdef class Overrides:
    def __init__(self, Engine engine, specs):
        """specs: of ir.ResponseOverride."""
        cdef Override one
        self.ones = [Override(engine, spec) for spec in specs]
        for one in self.ones:
            self.asks = self.asks or one.service is not None

    cdef Override find(self, int status, uint32_t source):
        cdef Override one
        for one in self.ones:
            if one.covers(status, source):
                return one
        return None


cdef frozenset _REPLACED = BODY_HEADERS | {b"location"}


cdef Override override_of(Exchange ex, int status, uint32_t source):
    """What is answered in place of an answer of that status; None: that one is."""
    cdef Traffic traffic = ex.rule.traffic if ex.rule is not None else None
    if traffic is None or traffic.overrides is None or ex.grpc or ex.overridden:
        return None
    return traffic.overrides.find(status, source)


cdef int respond_override(Exchange ex, Override found, int status, bytes lines, bytes reason) except -1:
    """`lines`, `reason`: of the answer that it is in place of. Header lines that describe its body are dropped."""
    cdef bytes body = found.body
    cdef int sent_status = found.status or status
    ex.overridden = True
    if found.service is not None:
        ex.status = status
        return 0 if found.service.serve(ex, status, lines, reason) else ex.respond(status, lines, reason)
    if sent_status == 204 or sent_status == 205 or sent_status == 304:
        body = b""
    ex.status = sent_status
    ex.bytes_out = PyBytes_GET_SIZE(body) if ex.method != EF_M_HEAD else 0
    lines = found.lines + lines_but(lines, _REPLACED)
    if found.ops is not None:
        lines = apply_ops(lines, found.ops)
    return ex.respond(sent_status, lines, body)


cdef bint override_backend(Exchange ex, ef_head *head) except -1:
    """Of an answer of a backend whose head is here; True: its client gets another one, now or when its body has been read."""
    cdef Override found = override_of(ex, head.response_status, OF_BACKEND)
    if found is None or ex.up.tunnel or head.response_status < 200:
        return False
    ex.override = found
    ex.status = head.response_status
    return True


cdef int end_override(Exchange ex) except -1:
    """The backend is done with, or let go."""
    cdef Override found = ex.override
    ex.override = None
    ex.drop_upstream(CUT_CANCEL)
    return respond_override(ex, found, ex.status, (ex.cors_lines or b"") + limit_lines(ex), b"")


# --- what an error service is shown ------------------------------------------------------------------------------------

# Headers that the proxy writes, of the connection, and of framing.
cdef uint32_t _NOT_KEPT = (
    <uint32_t>1 << EF_H_HOST | <uint32_t>1 << EF_H_EXPECT | <uint32_t>1 << EF_H_X_EDGE | <uint32_t>1 << EF_H_X_FORWARDED_FOR
    | <uint32_t>1 << EF_H_X_FORWARDED_PROTO | <uint32_t>1 << EF_H_X_REQUEST_ID | <uint32_t>1 << EF_H_CONTENT_LENGTH
   
)


cdef int keep_error_request(Exchange ex, Routed *at) except -1:
    """Note what an error service gets to know of a request: its head is gone when its answer comes. A request of an error service that
    edgefast itself makes gets no page, so that none is asked for another one's error."""
    cdef ef_head *head = at.head
    cdef const ef_span *span
    cdef const ef_span *request_id = NULL
    cdef const uint8_t *query = NULL
    cdef list lines = []
    cdef uint16_t i
    cdef bint internal = ex.down.peer.internal if ex.received is None else <bint>forwarded_lines(ex)[1]
    for i in range(head.n_spans):
        span = &head.spans[i]
        if span.id == EF_H_X_EDGE and span.name_len == 17 and strncasecmp(<const char *>at.base + span.name_off, b"x-edge-error-call", 17) == 0:
            return 0
        if span.id == EF_H_X_REQUEST_ID:
            request_id = span
        if span.flags & ex.settings.drop_flags or _NOT_KEPT >> span.id & 1 or (at.given and span.name_off >= at.given):
            continue
        if ex.settings.forwarded is not None and ex.settings.forwarded.drops.drops(at.base, span):
            continue
        lines.append(at.base[span.name_off:span.line_end])
    take_request_id(ex, at.base, request_id, internal)
    if not ex.secret_query:  # a query with a credential is never copied
        query = at.query
    ex.error_request = (
        b"".join(lines),
        original_target(at.base, head, query, at.query_len),
        at.path[:at.path_len] if at.path[0] == c"/" else b"/",
        None if query == NULL else query[:at.query_len],
        at.base[head.authority_off:head.authority_off + head.authority_len],
    )
    return 0
