# Span: traces (docs/guides/tracing.md): W3C trace context, kept or started, and the records of a sampled request.
#
# In: the request head on a listener that traces, then the finished exchange.
# Out: a traceparent line for the backend, MessagePack records in batches (edgefast/proxy/traces/span_record.py reads them).
# Source: W3C Trace Context. A listener without tracing costs a pointer test, and forwards trace headers as any other. A request that is not
# sampled keeps no spans. Records are bounded: client values are cut; of many attempts the first ones and the last are kept.

# What a record of a batch is: its first number.
cdef enum:
    RECORD_REQUEST = 0
    RECORD_CONNECTION = 1

cdef uint32_t HASH_TRACEPARENT = ef_name_hash(<const uint8_t *>b"traceparent", 11)
cdef uint32_t HASH_TRACESTATE = ef_name_hash(<const uint8_t *>b"tracestate", 10)


cdef bint read_hex(const uint8_t *text, uint8_t *to, int n) noexcept:
    """2 n lower-case digits as n bytes; False when there is another character."""
    cdef int i, digit
    cdef uint8_t c
    for i in range(2 * n):
        c = text[i]
        if c"0" <= c <= c"9":
            digit = c - 48
        elif c"a" <= c <= c"f":
            digit = c - 87
        else:
            return False
        to[i // 2] = <uint8_t>((to[i // 2] << 4 if i & 1 else 0) | digit)
    return True


cdef bint is_zero(const uint8_t *data, int n) noexcept:
    cdef int i
    for i in range(n):
        if data[i]:
            return False
    return True


cdef bint read_parent(Trace trace, const uint8_t *text, size_t n) noexcept:
    """traceparent: `00-<32 digits>-<16 digits>-<2 digits>`; of later versions that much, with or without more after a dash."""
    cdef uint8_t version[1]
    if n < 55 or not read_hex(text, version, 1) or version[0] == 255 or text[2] != c"-" or text[35] != c"-" or text[52] != c"-":
        return False
    if n > 55 and (version[0] == 0 or text[55] != c"-"):
        return False
    return (
        read_hex(text + 3, trace.trace_id, 16) and read_hex(text + 36, trace.parent_id, 8) and read_hex(text + 53, &trace.flags, 1)
        and not is_zero(trace.trace_id, 16) and not is_zero(trace.parent_id, 8)
    )


cdef int start_trace(Exchange ex, double share, const uint8_t *base, ef_head *head) except -1:
    """Decide whether the request is traced. Afterwards ex.trace is what the backend is told, or None: as the client said."""
    cdef Trace trace = Trace.__new__(Trace)
    cdef Engine engine = ex.engine
    cdef ef_span *parent = NULL
    cdef ef_span *span
    cdef uint64_t word
    cdef int parents = 0, i
    for i in range(head.n_spans):
        if is_named(base, &head.spans[i], HASH_TRACEPARENT, "traceparent", 11):
            parent = &head.spans[i]
            parents += 1
    trace.has_parent = parents == 1 and read_parent(trace, base + parent.val_off, parent.val_len)
    if trace.has_parent:
        if not trace.flags & 1:
            return 0
        trace.flags &= 3
    else:
        trace.flags = (ef_random(engine.random) >> 11) * (1.0 / 9007199254740992.0) < share
        for i in range(2):
            word = ef_random(engine.random) | 1
            memcpy(trace.trace_id + 8 * i, &word, 8)
    for i in range(head.n_spans):
        span = &head.spans[i]
        if is_named(base, span, HASH_TRACEPARENT, "traceparent", 11):
            span.flags |= EF_SPAN_HOP  # ours goes on
        elif is_named(base, span, HASH_TRACESTATE, "tracestate", 10):
            if not trace.has_parent:
                span.flags |= EF_SPAN_HOP
            elif trace.state is None:
                trace.state = base[span.val_off:span.val_off + span.val_len]
            else:
                trace.state += b"," + base[span.val_off:span.val_off + span.val_len]
    word = ef_random(engine.random) | 1
    memcpy(trace.span_id, &word, 8)
    word = ef_random(engine.random) | 1
    memcpy(trace.client_id, &word, 8)
    ex.trace = trace
    return 0


cdef int write_trace(Trace trace, Out *out, HeaderOps ops) except -1:
    """The traceparent line for the backend, unless a filter has its own."""
    if ops is not None and ops.own_trace:
        return 0
    out_reserve(out, 512)
    out_raw(out, <const char *>b"traceparent: 00-", 16)
    put_hex(out, trace.trace_id, 16)
    out_raw(out, <const char *>b"-", 1)
    trace.reported_at = out.size
    put_hex(out, trace.client_id, 8)
    out_raw(out, <const char *>b"-", 1)
    put_hex(out, &trace.flags, 1)
    out_raw(out, <const char *>b"\r\n", 2)
    return 0


cdef int begin_try(Exchange ex) except -1:
    """A recorded request asks for a connection. Each try is a span of its own, and its backend is told which."""
    cdef Trace trace = ex.trace
    cdef uint64_t word
    trace.try_began = ex.engine.reactor.now_us()
    trace.tries += 1
    if trace.tries > 1:
        word = ef_random(ex.engine.random) | 1
        memcpy(trace.client_id, &word, 8)
        if trace.reported_at:
            write_hex(<uint8_t *>ex.head.data + trace.reported_at, trace.client_id, 8)
    return 0


cdef int end_try(Exchange ex, int status, uint32_t why, int64_t now) except -1:
    """Keep what is told of a try, in the order of span_record.TryRecord: `status` as it came from the backend, 0 without one."""
    cdef Trace trace = ex.trace
    cdef Out *out = &trace.ended
    if trace.kept < SPAN_TRIES:
        trace.kept += 1
        trace.last_at = out.size
    else:  # the last one so far makes room
        out.size = trace.last_at
    out_reserve(out, 128 + 2 * LOG_FIELD)
    pack_list(out, 8)
    pack_bytes(out, trace.client_id, 8, 8)
    pack_number(out, trace.tries)
    pack_number(out, trace.try_began - ex.started)
    pack_number(out, now - trace.try_began)
    pack_number(out, status)
    pack_text(out, failure_of(why, ex.failure, http_status_of(ex, ex.status)))
    pack_text(out, ex.endpoint.text if ex.chosen else None)
    pack_text(out, ex.up_protocol)
    trace.try_began = 0
    return 0


cdef void pack_list(Out *out, uint32_t n) noexcept:
    """The head of a MessagePack array 16."""
    out.data[out.size] = 0xDC
    out.data[out.size + 1] = <uint8_t>(n >> 8)
    out.data[out.size + 2] = <uint8_t>(n & 255)
    out.size += 3


cdef void pack_bytes(Out *out, const uint8_t *data, size_t n, size_t most) noexcept:
    """MessagePack bin 16; the caller has reserved."""
    if n > most:
        n = most
    out.data[out.size] = 0xC5
    out.data[out.size + 1] = <uint8_t>(n >> 8)
    out.data[out.size + 2] = <uint8_t>(n & 255)
    out.size += 3
    if n:
        out_raw(out, data, n)


cdef void pack_text(Out *out, bytes text) noexcept:
    if text is None:
        pack_bytes(out, NULL, 0, 0)
    else:
        pack_bytes(out, <const uint8_t *>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), LOG_FIELD)


cdef void pack_number(Out *out, int64_t number) noexcept:
    """MessagePack int 64."""
    cdef int i
    out.data[out.size] = 0xD3
    for i in range(8):
        out.data[out.size + 1 + i] = <uint8_t>(<uint64_t>number >> (56 - 8 * i) & 255)
    out.size += 9


cdef class SpanBatch:
    def __cinit__(self, Engine engine, sink):
        self.engine = engine
        self.sink = sink

    def __dealloc__(self):
        free(self.out.data)

    cdef void open(self) noexcept:
        """A span is about to be appended."""
        if self.count == 0:
            self.out.size = 3  # the array's head

    cdef int written(self) except -1:
        """A span was appended: hand over when there is enough, or soon."""
        self.count += 1
        self.engine.count(G_SPANS_RECORDED)
        if self.out.size >= SPAN_BATCH:
            self.flush()
        elif not self.scheduled:
            self.scheduled = True
            self.engine.loop.call_later(SPAN_FLUSH_MS / 1000.0, self._on_timer)
        return 0

    def _on_timer(self):
        self.scheduled = False
        self.flush()

    def flush(self):
        if self.count == 0:
            return
        size, self.out.size = self.out.size, 0
        pack_list(&self.out, self.count)
        batch = PyBytes_FromStringAndSize(<char *>self.out.data, size)
        count, self.count, self.out.size = self.count, 0, 0
        if self.sink is None or not self.sink(batch):
            self.engine.count_n(G_SPANS_DROPPED, count)


cdef void pack_label(Out *out, ef_stat_row *row) noexcept:
    """The label of a row that is held, as it stands there; empty: the overflow row."""
    cdef const uint8_t *end = <const uint8_t *>memchr(row.label, 0, sizeof(row.label))
    pack_bytes(out, row.label, end - row.label if end != NULL else sizeof(row.label), sizeof(row.label))


cdef void pack_sent(Out *out, Exchange ex) noexcept:
    """Target and Host as the backend got them, from the head that write_request_head made; empty where none was made."""
    cdef const uint8_t *target
    cdef const uint8_t *end
    cdef const uint8_t *host
    cdef const uint8_t *space = NULL
    if ex.trace.tries:
        target = <const uint8_t *>ex.head.data + ex.method_len + 1
        end = <const uint8_t *>ex.head.data + ex.head.size
        space = <const uint8_t *>memchr(target, c" ", end - target)
    if space == NULL:
        pack_bytes(out, NULL, 0, 0)
        pack_bytes(out, NULL, 0, 0)
        return
    host = space + 17  # " HTTP/1.1", CR, LF, "host: "
    if ex.secret_query and memchr(target, c"?", space - target) != NULL:
        space = <const uint8_t *>memchr(target, c"?", space - target)
    pack_bytes(out, target, space - target, SPAN_TARGET)
    pack_bytes(out, host, <const uint8_t *>memchr(host, c"\r", end - host) - host, LOG_FIELD)


cdef void pack_name(Out *out, const char *name) noexcept:
    pack_bytes(out, <const uint8_t *>name, strlen(name) if name != NULL else 0, LOG_FIELD)


cdef void pack_tls(Out *out, const WireFacts *facts) noexcept:
    """Facts of the client's TLS, in the order of span_record.SpanRecord; empty: it speaks none, or the library does not tell."""
    pack_name(out, facts.version)
    pack_name(out, facts.cipher)
    pack_name(out, facts.group)
    pack_number(out, facts.resumed)


cdef int record_span(Exchange ex, int64_t took) except -1:
    """A finished exchange, in the order of span_record.SpanRecord."""
    cdef SpanBatch batch = (<Telemetry>ex.engine.observer).spans
    cdef Out *out = &batch.out
    cdef Trace trace = ex.trace
    cdef Cluster cluster = ex.backend.cluster if ex.backend is not None else None
    cdef uint32_t why = ex.flags
    if trace.try_began:
        if ex.tunnel:  # may end at any time: it has no whole answer that its client could miss
            why &= ~<uint32_t>F_CLIENT_GONE
        end_try(ex, ex.status if ex.retry.state == TRY_ANSWERED else 0, why, ex.started + took)
    out_reserve(out, 2048 + 2 * SPAN_TARGET + 14 * LOG_FIELD + trace.ended.size + trace.asked.size)
    batch.open()
    pack_list(out, 36)
    pack_number(out, RECORD_REQUEST)
    pack_bytes(out, trace.trace_id, 16, 16)
    pack_bytes(out, trace.parent_id, 8 if trace.has_parent else 0, 8)
    pack_bytes(out, trace.span_id, 8, 8)
    pack_text(out, trace.state)
    pack_text(out, ex.listener.name.encode())
    pack_number(out, unix_us() - took)
    pack_number(out, took)
    pack_bytes(out, ex.raw.data, ex.method_len, LOG_FIELD)
    pack_bytes(out, ex.raw.data + ex.target_off, ex.target_len, SPAN_TARGET)
    pack_bytes(out, ex.raw.data + ex.authority_off, ex.authority_len, LOG_FIELD)
    pack_bytes(out, ex.raw.data + ex.agent_off, ex.agent_len, LOG_FIELD)
    pack_bytes(out, ex.request_id, ex.request_id_len, LOG_FIELD)
    pack_number(out, ex.https)
    pack_tls(out, &ex.down.peer.tls_facts)
    pack_number(out, ex.down.peer.port.number)
    pack_text(out, ex.client)
    pack_text(out, ex.down.peer.address)
    pack_number(out, ex.status)
    pack_text(out, details_of(ex, ex.status, None))
    pack_text(out, ex.rule.route.encode() if ex.rule is not None else None)
    pack_number(out, ex.rule.index if ex.rule is not None else -1)
    pack_label(out, ex.rule.row if ex.rule is not None else ex.engine.unmatched)
    pack_text(out, cluster.name.encode() if cluster is not None else None)
    pack_number(out, cluster is not None and cluster.tls is not None)
    pack_sent(out, ex)
    pack_number(out, ex.body.received)
    pack_number(out, ex.bytes_out)
    pack_text(out, ex.down.protocol)
    pack_number(out, ex.grpc_status if ex.grpc else -1)
    pack_list(out, trace.kept)
    if trace.kept:
        out_raw(out, trace.ended.data, trace.ended.size)
    pack_list(out, trace.n_asked)
    if trace.n_asked:
        out_raw(out, trace.asked.data, trace.asked.size)
    return batch.written()
