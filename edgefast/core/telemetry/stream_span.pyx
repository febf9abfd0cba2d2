# Stream span: the span of a layer 4 connection (docs/guides/tracing.md), where its listener enables it: off by default.
#
# In: an ended TCP proxy. Out: a record in the batch of spans. Layer 4 carries no trace context, so each begins its own trace, and its end
# decides the sampling. Datagrams have no spans.

cdef int record_tcp_proxy(Engine engine, TcpProxy tcp_proxy) except -1:
    """In the order of span_record.ConnectionRecord."""
    cdef StreamListener listener = tcp_proxy.listener
    cdef SpanBatch batch = (<Telemetry>engine.observer).spans
    cdef Out *out = &batch.out
    cdef int64_t took
    if listener.traced == 0.0 or (ef_random(engine.random) >> 11) * (1.0 / 9007199254740992.0) >= listener.traced:
        return 0
    took = now_us() - tcp_proxy.began
    out_reserve(out, 1024 + 9 * LOG_FIELD)
    batch.open()
    pack_list(out, 20)
    pack_number(out, RECORD_CONNECTION)
    pack_random(out, engine, 2)
    pack_random(out, engine, 1)
    pack_text(out, listener.name.encode())
    pack_text(out, b"TLS" if listener.has_tls else b"TCP")
    pack_number(out, unix_us() - took)
    pack_number(out, took)
    pack_number(out, tcp_proxy.connected - tcp_proxy.began if tcp_proxy.connected else -1)
    pack_number(out, listener.spec.port)
    pack_text(out, inet_text(tcp_proxy.client.host) if tcp_proxy.client.kind == ADDRESS_INET else None)
    pack_number(out, tcp_proxy.client.port)
    pack_text(out, tcp_proxy.sni)
    pack_text(out, tcp_proxy.rule.route if tcp_proxy.rule is not None else None)
    pack_number(out, tcp_proxy.rule.index if tcp_proxy.rule is not None else -1)
    pack_text(out, tcp_proxy.cluster.name.encode() if tcp_proxy.cluster is not None else None)
    pack_text(out, tcp_proxy.endpoint.text if tcp_proxy.endpoint is not None else None)
    pack_number(out, tcp_proxy.tries)
    pack_number(out, tcp_proxy.received)
    pack_number(out, tcp_proxy.sent)
    pack_text(out, <bytes>TCP_PROXY_ENDS[tcp_proxy.why])
    return batch.written()


cdef void pack_random(Out *out, Engine engine, int words) noexcept:
    """An id of so many 8 bytes."""
    cdef uint64_t word[2]
    cdef int i
    for i in range(words):
        word[i] = ef_random(engine.random) | 1  # none of it is zero
    pack_bytes(out, <const uint8_t *>word, 8 * words, 16)
