# Header operations: write upstream and client heads from the spans of the received one, with one copy.
#
# In: the raw head, its spans, compiled operations of the rule. Out: bytes in an Out buffer. Unchanged lines are copied in runs, as received
# (RFC 9110 5.3: order and spelling are the sender's). Hop-by-hop lines (RFC 9110 7.6.1) and lines that the operations drop are left out. It
# never compares a header's name twice: the scan has classified it.

# Lines that the proxy writes; a filter that sets or removes one of them wins.
_OWN = frozenset((
    b"x-forwarded-for", b"x-forwarded-proto", b"x-edge-internal", b"x-edge-external-address", b"x-edge-expected-rq-timeout-ms",
    b"x-edge-upstream-service-time", b"date", b"via", b"x-real-ip", b"x-forwarded-host", b"x-forwarded-port", b"x-forwarded-scheme",
    b"x-scheme", b"x-original-forwarded-for", b"x-original-forwarded-host", b"x-original-uri",
    b"x-forwarded-client-cert", b"ssl-client-verify", b"ssl-client-subject-dn", b"ssl-client-issuer-dn", b"ssl-client-cert",
))


cdef bytes without(bytes lines, HeaderOps ops):
    """Header lines less those that the operations drop."""
    if ops is None or not ops.own:
        return lines
    return b"".join([line for line in lines.splitlines(True) if line.partition(b":")[0] not in ops.names])


cdef class HeaderOps:
    def __cinit__(self, names, bytes append, host):
        cdef int i
        self.names = tuple(names)
        self.n = <int>len(self.names)
        self.append = append
        self.host = host
        self.hashes = <uint32_t *>calloc(self.n + 1, sizeof(uint32_t))
        if self.hashes == NULL:
            raise MemoryError
        for i in range(self.n):
            name = self.names[i]
            self.hashes[i] = ef_name_hash(<const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
            if name == b"server":
                self.sets_server = True
            if name == b"x-request-id":
                self.own_id = True
            if name == b"traceparent":
                self.own_trace = True
            if name in _OWN:
                self.own = True
        if b"\ntraceparent:" in b"\n" + append.lower():
            self.own_trace = True

    def __dealloc__(self):
        free(self.hashes)

    cdef bint drops(self, const uint8_t *base, const ef_span *span) noexcept:
        cdef int i
        cdef const char *name
        for i in range(self.n):
            if self.hashes[i] == span.name_hash:
                name = PyBytes_AS_STRING(<object>PyTuple_GET_ITEM(self.names, i))
                if (
                    PyBytes_GET_SIZE(<object>PyTuple_GET_ITEM(self.names, i)) == span.name_len
                    and strncasecmp(name, <const char *>base + span.name_off, span.name_len) == 0
                ):
                    return True
        return False


# Framing and connection headers belong to the proxy, whatever a filter asks for.
_FRAMING = frozenset(
    (b"connection", b"content-length", b"transfer-encoding", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade")
)


cdef HeaderOps compile_ops(filters):
    """One HeaderOps from ir.HeaderOps in the order they apply (rule, then backendRef); None when there is nothing to do."""
    drop = []
    lines = []
    host = None
    for ops in filters:
        if ops is None:
            continue
        removed = [name.lower().encode() for name in ops.remove]
        replaced = [(name.lower().encode(), name.encode(), value.encode()) for name, value in ops.set]
        gone = set(removed) | {key for key, _, _ in replaced}
        lines = [line for line in lines if line[0] not in gone]
        drop += sorted(gone)
        lines += replaced
        lines += [(name.lower().encode(), name.encode(), value.encode()) for name, value in ops.add]
    for key, _, value in lines:
        if key == b"host":
            host = value
    lines = [line for line in lines if line[0] not in _FRAMING and line[0] != b"host"]
    drop = [name for name in dict.fromkeys(drop) if name not in _FRAMING and name != b"host"]
    success = [pair for ops in filters if ops is not None for pair in ops.on_success]
    if not lines and not drop and not success and host is None:
        return None
    made = HeaderOps(drop, b"".join(b"%b: %b\r\n" % (name, value) for _, name, value in lines), host)
    if success:
        (<HeaderOps>made).success = b"".join([b"%b: %b\r\n" % (name.encode(), value.encode()) for name, value in success])
    return made


# Statuses of answers that get headers of HTTPRouteFilter addOnSuccess (add_header of nginx).
cdef frozenset SUCCESS_STATUSES = frozenset((200, 201, 204, 206, 301, 302, 303, 304, 307, 308))


cdef HeaderOps CORS_OPS = HeaderOps(
    (b"access-control-allow-origin", b"access-control-allow-credentials", b"access-control-expose-headers"), b"", None
)

cdef uint32_t HASH_SERVICE_TIME = ef_name_hash(<const uint8_t *>b"x-edge-upstream-service-time", 28)


cdef int write_spans(
    Out *out, const uint8_t *base, const ef_head *head, uint8_t drop_flags, uint32_t drop_ids, HeaderOps ops, HeaderOps more
) except -1:
    """Copy the header lines that stay, in runs of neighbours. `drop_flags` is of EF_SPAN_*, `drop_ids` a bit set of
    enum ef_header_id."""
    cdef uint32_t run = 0, end = 0
    cdef uint16_t i
    cdef const ef_span *span
    for i in range(head.n_spans):
        span = &head.spans[i]
        if (
            (span.flags & drop_flags)
            or (drop_ids >> span.id) & 1
            or (ops is not None and ops.n and ops.drops(base, span))
            or (more is not None and more.drops(base, span))
        ):
            if end > run:
                out_raw(out, base + run, end - run)
            run = end = 0
            continue
        if span.name_off != end:
            if end > run:
                out_raw(out, base + run, end - run)
            run = span.name_off
        end = span.line_end
    if end > run:
        out_raw(out, base + run, end - run)
    return 0


cdef bytes add_own_headers(Exchange ex, bytes lines):
    """Apply the ResponseHeaderModifier filters of the rule to the headers of an own answer (a redirect, a 429, a 503). CORS headers
    stay, as on answers of backends. The content type comes first (Inbound.answer); gRPC answers keep the content type of gRPC."""
    cdef HeaderOps ops = ex.backend.response_ops if ex.backend is not None else ex.rule.response_ops if ex.rule is not None else None
    cdef bytes cors = b"", behind = b"", added
    ex.own_ops = ops
    if ops is None:
        return lines
    if ex.cors_lines is not None and ex.cors_lines in lines:
        cors = ex.cors_lines
        lines, _, behind = lines.partition(cors)
    added = lines_but(ops.append, GRPC_OWN_LINES) if ex.grpc else ops.append
    if ops.success is not None and ex.status in SUCCESS_STATUSES:
        added += lines_but(ops.success, GRPC_OWN_LINES)
    return type_first(lines_but(lines + behind, ops.names) + added) + cors


cdef bytes apply_ops(bytes lines, HeaderOps ops):
    """Lines of an own answer as these operations leave them."""
    return type_first(lines_but(lines, ops.names) + ops.append)


cdef bytes type_first(bytes lines):
    """The content type, the last of several, and the other lines (Inbound.answer)."""
    cdef list rest = lines.splitlines(True)
    cdef list first = [line for line in rest if line[:13].lower() == b"content-type:"]
    rest = [line for line in rest if line[:13].lower() != b"content-type:"]
    return b"".join([b"content-type:" + line[13:] for line in first[max(len(first) - 1, 0):]] + rest)
