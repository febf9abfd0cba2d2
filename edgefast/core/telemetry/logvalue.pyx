# Log value: the values of operators and fields of an access log line (docs/guides/access-log.md lists them).
#
# In: an operator, a finished exchange (None: a message that never became a request).
# Out: a LogValue; its bytes are in the exchange, in the program's scratch or in what it holds, until the next value is read. A missing
# value is absent, never an empty text.

cdef inline void put_number(LogValue *v, int64_t number) noexcept:
    v.shape = S_NUMBER
    v.number = <uint64_t>number if number > 0 else 0


cdef inline void put_raw(LogValue *v, const uint8_t *data, size_t n) noexcept:
    v.shape = S_BYTES
    v.data = data
    v.n = n


cdef int keep_request(Exchange ex, ef_head *head) except -1:
    """What programs of the port need of a request that has just come, besides its head."""
    cdef PortTable port = ex.down.peer.port
    cdef Out *spans
    if port.log_wants_request:
        ex.kept = LogCapture.__new__(LogCapture)
        spans = &ex.kept.spans
        out_reserve(spans, head.n_spans * sizeof(ef_span) + 1)
        out_raw(spans, head.spans, head.n_spans * sizeof(ef_span))
    if port.log_wants_address and ex.down.peer.local is None:
        ex.down.learn_ends()
    return 0


cdef int keep_answer(Exchange ex, const void *data, size_t n) except -1:
    """The head that goes to the client."""
    if ex.kept is None:
        ex.kept = LogCapture.__new__(LogCapture)
    ex.kept.answer.size = 0
    out_reserve(&ex.kept.answer, n + 1)
    out_raw(&ex.kept.answer, data, n)
    return 0


cdef int keep_upstream(Exchange ex, Outbound up) except -1:
    if ex.kept is None:
        ex.kept = LogCapture.__new__(LogCapture)
    ex.kept.upstream_local = up.local_address()
    return 0


cdef bytes trace_id_of(Exchange ex):
    """The trace that the request is recorded in, as its 32 digits; None: in none."""
    if ex is None or ex.trace is None or not ex.trace.flags & 1:
        return None
    return (<bytes>ex.trace.trace_id[:16]).hex().encode()


cdef int hide_value(LogProgram program, bint hides, LogValue *v) except -1:
    """A credential (edgefast/diagnostics/redact.py): that it was there, and how long it was."""
    if hides and v.shape == S_BYTES:
        return program.put(v, b"<%d bytes, not shown>" % v.n)
    return 0


cdef int put_header(LogProgram program, const LogOp *op, Exchange ex, LogValue *v) except -1:
    """A request header: as the client sent it, but for those that the proxy itself decides about."""
    cdef const uint8_t *name = op.name
    cdef uint32_t n = op.name_len, hashed = op.name_hash
    while n and v.shape == S_ABSENT:
        if hashed == HASH_FORWARDED_FOR and n == 15 and ex.listener is not None:
            program.put(v, ex.received + b"," + ex.down.peer.address if ex.received else ex.down.peer.address)
        elif hashed == HASH_FORWARDED_PROTO and n == 17:
            program.put(v, b"https" if ex.https else b"http")
        else:
            put_request(name, n, hashed, ex, v)
        hide_value(program, op.other_hides if name == op.other else op.hides, v)
        if name == op.other:
            break
        name, n, hashed = op.other, op.other_len, op.other_hash
    return 0


cdef int put_request(const uint8_t *name, uint32_t n, uint32_t hashed, Exchange ex, LogValue *v) except -1:
    cdef const ef_span *span
    cdef size_t i
    cdef bytes scheme
    if name[0] == c":":
        if n == 7 and name[1] == c"m":
            put_raw(v, ex.raw.data, ex.method_len)
        elif n == 7:
            scheme = b"https" if ex.https else b"http"
            put_raw(v, <const uint8_t *>PyBytes_AS_STRING(scheme), PyBytes_GET_SIZE(scheme))  # both are constants
        elif n == 5:
            put_raw(v, ex.raw.data + ex.target_off, ex.target_len)
        else:
            put_raw(v, ex.raw.data + ex.authority_off, ex.authority_len)
        return 0
    if hashed == HASH_REQUEST_ID and n == 12 and ex.request_id_len:
        put_raw(v, ex.request_id, ex.request_id_len)
        return 0
    if ex.kept is None:
        return 0
    for i in range(ex.kept.spans.size // sizeof(ef_span)):
        span = <const ef_span *>ex.kept.spans.data + i
        if (
            span.name_hash == hashed and span.name_len == n
            and strncasecmp(<const char *>ex.raw.data + span.name_off, <const char *>name, n) == 0
        ):
            put_raw(v, ex.raw.data + span.val_off, span.val_len)
            return 0
    return 0


cdef void cut_query(LogValue *v) noexcept:
    """Remove the query of a URL."""
    cdef const uint8_t *mark = <const uint8_t *>memchr(v.data, c"?", v.n)
    if mark != NULL:
        v.n = mark - v.data


cdef int put_answer(LogProgram program, const LogOp *op, Exchange ex, LogMoment *moment, LogValue *v) except -1:
    """A header of the answer, as the client got it."""
    cdef const uint8_t *name = op.name
    cdef const uint8_t *value
    cdef size_t size
    cdef uint32_t n = op.name_len
    while n and v.shape == S_ABSENT:
        if name[0] == c":":
            put_number(v, moment.status)
        elif ex.kept is not None:
            if find_line(ex.kept.answer.data, ex.kept.answer.size, name, n, &value, &size):
                put_raw(v, value, size)
            if ex.secret_query and v.shape == S_BYTES and n == 8 and strncasecmp(<const char *>name, b"location", 8) == 0:
                cut_query(v)  # a redirect repeats the query
        hide_value(program, op.other_hides if name == op.other else op.hides, v)
        if name == op.other:
            break
        name, n = op.other, op.other_len
    return 0


cdef int put_address(LogProgram program, bytes whole, int part, LogValue *v) except -1:
    """"10.0.0.1:80" whole (0), without its port (1), or the port alone (2)."""
    if not whole:
        return 0
    if part == 0:
        return program.put(v, whole)
    if whole.startswith(b"unix:"):
        return program.put(v, whole[5:]) if part == 1 else 0
    host, _, port = whole.rpartition(b":")
    if part == 1:
        return program.put(v, host.strip(b"[]"))
    put_number(v, int(port))
    return 0


cdef bytes client_of(Peer peer, Exchange ex):
    """Who is believed to be the client, with the port where it is known, else 0."""
    cdef bytes client = ex.client if ex is not None else peer.address
    port = b"0"
    if client is peer.address:
        port = b"%d" % peer.address_port if peer.address_port >= 0 else (peer.remote or b"").rpartition(b":")[2] or b"0"
    return b"[%b]:%b" % (client, port) if b":" in client else b"%b:%b" % (client, port)


cdef void put_tls_fact(int kind, const WireFacts *facts, LogValue *v) noexcept:
    """Of the client's TLS; of a plain connection there is none."""
    cdef const char *text
    if facts.version == NULL:
        return
    if kind == K_TLS_RESUMED:
        text = b"true" if facts.resumed else b"false"
    else:
        text = facts.version if kind == K_TLS_VERSION else facts.cipher if kind == K_TLS_CIPHER else facts.group
    if text[0]:
        put_raw(v, <const uint8_t *>text, strlen(text))
        if kind == K_TLS_RESUMED:
            v.shape = S_JSON


cdef int put_grpc(LogProgram program, int kind, Exchange ex, LogValue *v) except -1:
    """The status of a gRPC request; of others there is none."""
    if ex is None or not ex.grpc:
        return 0
    if kind == K_GRPC_NUMBER:
        put_number(v, ex.grpc_status)
        return 0
    name = grpc_name(ex.grpc_status)
    if kind == K_GRPC_CAMEL:  # as Envoy spells them
        name = b"OK" if name == b"OK" else b"Canceled" if name == b"CANCELLED" else name.title().replace(b"_", b"")
    return program.put(v, name)


cdef int log_value(
    LogProgram program, const LogOp *op, Peer peer, Exchange ex, LogMoment *moment, bytes reason, LogValue *v
) except -1:
    cdef int kind = op.kind
    if kind >= K_FIELDS:
        return log_field(program, kind - K_FIELDS, peer, ex, moment, reason, v)
    if kind == K_START_TIME or kind == K_EMIT_TIME:
        program.scratch.size = 0
        (<TimeForm>program.things[op.at]).write(
            &program.scratch, moment.now - (moment.took if kind == K_START_TIME and moment.took > 0 else 0)
        )
        put_raw(v, program.scratch.data, program.scratch.size)
    elif kind == K_CODE:
        put_number(v, moment.status)
    elif kind == K_DETAILS:
        program.put(v, details_of(ex, moment.status, reason))
    elif kind == K_FLAGS:
        program.put(v, flags_of(ex, 0, moment.status))
    elif kind == K_FLAGS_LONG:
        program.put(v, flags_of(ex, 1, moment.status))
    elif kind == K_TRACE_ID:
        program.put(v, trace_id_of(ex))
    elif kind == K_HOSTNAME:
        program.put(v, program.hostname)
    elif kind == K_SERVER_NAME:
        program.put(v, peer.sni)
    elif kind >= K_GRPC_NUMBER:
        put_grpc(program, kind, ex, v)
    elif kind >= K_TLS_VERSION:
        put_tls_fact(kind, &peer.tls_facts, v)
    elif kind >= K_LOCAL:
        put_address(program, peer.local, kind - K_LOCAL, v)
    elif kind >= K_DIRECT:
        put_address(program, peer.remote, kind - K_DIRECT, v)
    elif kind >= K_REMOTE:
        put_address(program, client_of(peer, ex), kind - K_REMOTE, v)
    elif ex is not None:
        log_exchange_value(program, op, ex, moment, v)
    return 0


cdef int log_exchange_value(LogProgram program, const LogOp *op, Exchange ex, LogMoment *moment, LogValue *v) except -1:
    """What only a request has."""
    cdef int kind = op.kind
    cdef int64_t head = ex.retry.sent + ex.upstream_us - ex.started  # us to the head of the backend's answer
    if kind == K_REQ:
        put_header(program, op, ex, v)
    elif kind == K_RESP:
        put_answer(program, op, ex, moment, v)
    elif kind == K_DURATION:
        put_number(v, moment.took // 1000)
    elif kind == K_RESPONSE_DURATION:
        if ex.retry.state == TRY_ANSWERED:
            put_number(v, head // 1000)
    elif kind == K_RESPONSE_TX_DURATION:
        if ex.retry.state == TRY_ANSWERED:
            put_number(v, (moment.took - head) // 1000)
    elif kind == K_BYTES_RECEIVED:
        put_number(v, ex.body.received)
    elif kind == K_BYTES_SENT:
        put_number(v, ex.bytes_out)
    elif kind == K_PROTOCOL:
        program.put(v, ex.down.protocol)
    elif kind == K_UPSTREAM_PROTOCOL:
        program.put(v, ex.up_protocol if ex.retry.sent else None)
    elif kind == K_ROUTE_NAME:
        if ex.rule is not None:
            route = ex.rule.route if ex.rule.route.startswith("grpcroute/") else "httproute/" + ex.rule.route
            program.put(v, b"%b/rule/%d" % (route.encode(), ex.rule.index))
    elif kind == K_STREAM_ID:
        if ex.request_id_len:
            put_raw(v, ex.request_id, ex.request_id_len)
    elif kind == K_UPSTREAM_CLUSTER:
        if ex.backend is not None and ex.backend.cluster is not None:
            program.put(v, ex.backend.cluster.name.encode())
    elif kind == K_TRIES:
        put_number(v, ex.retry.tries)
    elif kind == K_TRANSPORT_FAILURE:
        if ex.flags & F_CONNECT:
            program.put(v, TRANSPORT_FAILURES[ex.failure])
    elif kind >= K_UPSTREAM_LOCAL:
        put_address(program, ex.kept.upstream_local if ex.kept is not None else None, kind - K_UPSTREAM_LOCAL, v)
    elif kind >= K_UPSTREAM_REMOTE:
        put_address(program, ex.endpoint.text if ex.endpoint is not None else None, kind - K_UPSTREAM_REMOTE, v)
    return 0


cdef int log_field(
    LogProgram program, int field, Peer peer, Exchange ex, LogMoment *moment, bytes reason, LogValue *v
) except -1:
    """A field of the default line; the same as log_exchange and log_refused write there."""
    cdef Out *out = &program.scratch
    cdef bytes text = None
    name = LOG_FIELDS[field]
    out.size = 0
    out_reserve(out, 64)
    if name == "time":
        program.engine.clock.log_time(out)
        put_raw(v, out.data, out.size)
    elif name == "client":
        program.put(v, ex.client if ex is not None else peer.address)
    elif name == "status":
        put_number(v, moment.status)
    elif ex is None:
        program.put(v, b"PE" if name == "flags" else reason if name == "reason" else None)
    elif name == "peer":
        program.put(v, None if ex.client is peer.address else peer.address)
    elif name == "method":
        put_raw(v, ex.raw.data, ex.method_len)
    elif name == "host":
        put_raw(v, ex.raw.data + ex.authority_off, ex.authority_len)
    elif name == "path":
        put_raw(v, ex.raw.data + ex.target_off, ex.target_len)
    elif name == "flags":
        program.put(v, b",".join([FLAG_NAMES[i] for i in range(F_COUNT) if ex.flags >> i & 1]))
    elif name == "route" or name == "rule":
        if ex.rule is not None:  # no text in JSON holds this separator
            route, _, rule = ex.rule.in_log().partition(b',"rule":')
            text = route[8:] if name == "route" else rule
    elif name == "limit" or name == "limit_window" or name == "limit_remaining":
        if ex.decision is not None and ex.decision.limit is not None:
            if name == "limit":
                text = ex.decision.limit.log
            else:
                put_number(v, ex.decision.window if name == "limit_window" else ex.decision.remaining)
    elif name == "policy":
        text = ex.refuser.log if ex.refuser is not None else None
    elif name == "policy_rule":
        text = ex.refuser_rule
    elif name == "user":
        text = ex.user
    elif name == "backend":
        text = ex.backend.cluster.log if ex.forwarded else None
    elif name == "endpoint":
        text = ex.endpoint.log if ex.endpoint is not None else None
    elif name == "upstream_tls_failure":
        program.put(v, tls_failure_of(ex))
    elif name == "request_id":
        put_raw(v, ex.request_id, ex.request_id_len)
    elif name == "bytes_received":
        put_number(v, ex.body.received)
    elif name == "bytes_sent":
        put_number(v, ex.bytes_out)
    elif name == "duration_ms" or name == "upstream_ms":
        log_ms(out, moment.took if name == "duration_ms" else ex.upstream_us)
        put_raw(v, out.data, out.size)
        v.shape = S_JSON
    elif name == "tries":
        put_number(v, ex.retry.tries)
    elif name == "trace_id":
        program.put(v, trace_id_of(ex))
    elif name == "grpc_status":
        put_grpc(program, K_GRPC_SNAKE, ex, v)
    elif name == "user_agent":
        put_raw(v, ex.raw.data + ex.agent_off, ex.agent_len)
    if text is not None:
        program.put(v, text)
        v.shape = S_JSON
    return 0
