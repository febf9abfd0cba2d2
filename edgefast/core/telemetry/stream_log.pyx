# Stream log: the line of an ended layer 4 connection or session (docs/guides/access-log.md).
#
# In: an ended TCP proxy. Out: bytes appended to Engine.log. A listener's filter by status passes those without a backend.

cdef bint stream_line_wanted(Engine engine, StreamListener listener, bint served, int64_t took) noexcept:
    if listener.log_off:
        return False
    if (listener.log_min_status or listener.log_min_ms) and not (
        (listener.log_min_status and not served) or (listener.log_min_ms and took >= listener.log_min_ms * 1000)
    ):
        return False
    return listener.log_sampling >= 1.0 or (ef_random(engine.random) >> 11) * (1.0 / 9007199254740992.0) < listener.log_sampling


cdef int log_tcp_proxy(Engine engine, TcpProxy tcp_proxy) except -1:
    cdef LogBatch log = log_of(engine)
    cdef Out *out = &log.out
    cdef StreamListener listener = tcp_proxy.listener
    cdef int64_t took = now_us() - tcp_proxy.began
    if not stream_line_wanted(engine, listener, tcp_proxy.connected != 0, took):
        return 0
    begin_stream_line(engine, b"TLS" if listener.has_tls else b"TCP", listener, &tcp_proxy.client)
    if tcp_proxy.sni is not None:
        out_raw(out, <const char *>b',"sni":"', 8)
        log_text(out, <const uint8_t *>PyBytes_AS_STRING(tcp_proxy.sni), PyBytes_GET_SIZE(tcp_proxy.sni))
        out_raw(out, <const char *>b'"', 1)
    put_stream_way(out, tcp_proxy.rule, tcp_proxy.cluster, tcp_proxy.endpoint)
    put_refusal(out, tcp_proxy.refusal)
    out_raw(out, <const char *>b',"bytes_received":', 18)
    out_number(out, tcp_proxy.received)
    out_raw(out, <const char *>b',"bytes_sent":', 14)
    out_number(out, tcp_proxy.sent)
    out_raw(out, <const char *>b',"duration_ms":', 15)
    log_ms(out, took)
    out_raw(out, <const char *>b',"connect_ms":', 14)
    log_ms(out, tcp_proxy.connected - tcp_proxy.began if tcp_proxy.connected else 0)
    out_raw(out, <const char *>b',"tries":', 9)
    out_number(out, tcp_proxy.tries)
    return end_stream_line(engine, tcp_proxy.why)


cdef int log_datagrams(Engine engine, DatagramSession session) except -1:
    cdef LogBatch log = log_of(engine)
    cdef Out *out = &log.out
    cdef StreamListener listener = session.listener
    cdef int64_t took = now_us() - session.began
    if not stream_line_wanted(engine, listener, session.answered, took):
        return 0
    begin_stream_line(engine, b"UDP", listener, &session.client)
    put_stream_way(out, session.rule, session.cluster, session.endpoint)
    put_refusal(out, session.refusal)
    out_raw(out, <const char *>b',"bytes_received":', 18)
    out_number(out, session.received)
    out_raw(out, <const char *>b',"bytes_sent":', 14)
    out_number(out, session.sent)
    out_raw(out, <const char *>b',"datagrams_received":', 22)
    out_number(out, session.datagrams_in)
    out_raw(out, <const char *>b',"datagrams_sent":', 18)
    out_number(out, session.datagrams_out)
    out_raw(out, <const char *>b',"duration_ms":', 15)
    log_ms(out, took)
    return end_stream_line(engine, session.why)


cdef int begin_stream_line(Engine engine, bytes protocol, StreamListener listener, const NetAddress *client) except -1:
    cdef LogBatch log = log_of(engine)
    cdef Out *out = &log.out
    out_reserve(out, 4096 + 6 * LOG_FIELD + PyBytes_GET_SIZE(listener.log))
    out_raw(out, <const char *>b'{"time":"', 9)
    engine.clock.log_time(out)
    out_raw(out, <const char *>b'","protocol":"', 14)
    out_bytes(out, protocol)
    out_raw(out, <const char *>b'","client":"', 12)
    if client.kind == ADDRESS_INET:
        out_bytes(out, inet_text(client.host))
    out_raw(out, <const char *>b'","client_port":', 16)
    out_number(out, client.port)
    out_raw(out, <const char *>b',"listener":', 12)
    out_bytes(out, listener.log)
    return 0


cdef int put_stream_way(Out *out, StreamRule rule, Cluster cluster, Endpoint endpoint) except -1:
    """Where it went, as far as that is known."""
    if rule is not None:
        out_reserve(out, 2048 + PyBytes_GET_SIZE(rule.log))
        out_raw(out, <const char *>b",", 1)
        out_bytes(out, rule.log)
    if cluster is not None:
        out_reserve(out, 2048 + PyBytes_GET_SIZE(cluster.log))
        out_raw(out, <const char *>b',"backend":', 11)
        out_bytes(out, cluster.log)
    if endpoint is not None:
        out_reserve(out, 2048 + PyBytes_GET_SIZE(endpoint.log))
        out_raw(out, <const char *>b',"endpoint":', 12)
        out_bytes(out, endpoint.log)
    return 0


cdef int put_refusal(Out *out, bytes refusal) except -1:
    """The policy that refuses, with its rule."""
    if refusal is not None:
        out_reserve(out, 2048 + PyBytes_GET_SIZE(refusal))
        out_raw(out, <const char *>b",", 1)
        out_bytes(out, refusal)
    return 0


cdef int end_stream_line(Engine engine, int why) except -1:
    cdef LogBatch log = log_of(engine)
    cdef Out *out = &log.out
    out_raw(out, <const char *>b',"end":"', 8)
    out_bytes(out, <bytes>TCP_PROXY_ENDS[why])
    out_raw(out, <const char *>b'"}\n', 3)
    return log.written()
