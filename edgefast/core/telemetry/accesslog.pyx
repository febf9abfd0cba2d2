# Access log: one line per request, written into the worker's batch, and sent off the request path.
#
# In: a finished exchange. Out: bytes appended to Engine.log: the default JSON object here, any other line by logprogram.pyx. Every client
# byte is escaped; values are cut at LOG_FIELD bytes. A message that reached no listener is logged for the first listener of the port with a
# log. Fields: docs/guides/access-log.md.

cdef class LogBatch:
    def __cinit__(self, Engine engine, sink):
        self.engine = engine
        self.sink = sink

    def __dealloc__(self):
        free(self.out.data)

    cdef int written(self) except -1:
        """A line was appended: hand over when there is enough, or soon."""
        self.engine.count(G_ACCESS_LOG_LINES)
        if self.out.size >= LOG_BATCH:
            self.flush()
        elif not self.scheduled:
            self.scheduled = True
            self.engine.loop.call_later(LOG_FLUSH_MS / 1000.0, self._on_timer)
        return 0

    def _on_timer(self):
        self.scheduled = False
        self.flush()

    def flush(self):
        if self.out.size:
            batch = PyBytes_FromStringAndSize(<char *>self.out.data, self.out.size)
            self.out.size = 0
            self.sink(batch)


cdef void log_text(Out *out, const uint8_t *data, size_t n) noexcept:
    """A JSON string's inside, cut; see log_escape."""
    log_escape(out, data, n if n < LOG_FIELD else LOG_FIELD)


cdef inline void log_escape(Out *out, const uint8_t *data, size_t n) noexcept:
    """A JSON string's inside; the caller has reserved 6 bytes per byte. Bytes above 0x7e are shown as Latin-1 escapes."""
    cdef size_t i
    cdef uint8_t c
    for i in range(n):
        c = data[i]
        if c == 34 or c == 92:
            out.data[out.size] = 92
            out.data[out.size + 1] = c
            out.size += 2
        elif c < 32 or c > 126:
            memcpy(out.data + out.size, b"\\u00", 4)
            out.data[out.size + 4] = b"0123456789abcdef"[c >> 4]
            out.data[out.size + 5] = b"0123456789abcdef"[c & 15]
            out.size += 6
        else:
            out.data[out.size] = c
            out.size += 1


cdef void log_ms(Out *out, int64_t us) noexcept:
    """Microseconds as milliseconds with three digits."""
    if us < 0:
        us = 0
    out_number(out, <uint64_t>(us // 1000))
    out.data[out.size] = c"."
    out.data[out.size + 1] = <uint8_t>(48 + us // 100 % 10)
    out.data[out.size + 2] = <uint8_t>(48 + us // 10 % 10)
    out.data[out.size + 3] = <uint8_t>(48 + us % 10)
    out.size += 4


cdef tuple FLAG_NAMES = (
    b"NR", b"NE", b"UO", b"UF", b"UR", b"UPE", b"UT", b"DC", b"RT", b"CFG", b"RD", b"CORS", b"MD", b"TL", b"SI", b"RL",
    b"RLSE", b"SR", b"DENY", b"AUTH", b"DI", b"FI",
)


cdef inline bint log_wanted(Engine engine, ListenerTable listener, int status, int64_t took) noexcept:
    """Whether the listener's filter and sampling let a line pass; `took` in us."""
    if listener.log_off:
        return False
    if (listener.log_min_status or listener.log_min_ms) and not (
        (listener.log_min_status and status >= listener.log_min_status)
        or (listener.log_min_ms and took >= listener.log_min_ms * 1000)
    ):
        return False
    return listener.log_sampling >= 1.0 or (ef_random(engine.random) >> 11) * (1.0 / 9007199254740992.0) < listener.log_sampling


cdef int log_by_program(LogProgram program, Peer peer, Exchange ex, int status, int64_t took, bytes reason) except -1:
    cdef LogMoment moment
    cdef timespec ts
    cdef LogBatch log = log_of(program.engine)
    clock_gettime(CLOCK_REALTIME, &ts)
    moment.now = <int64_t>ts.tv_sec * 1000000 + ts.tv_nsec // 1000
    moment.took = took
    moment.status = status
    program.run(&log.out, peer, ex, &moment, reason)
    return log.written()


cdef int log_exchange(Engine engine, Exchange ex, int64_t took) except -1:
    cdef LogBatch log = log_of(engine)
    cdef Out *out = &log.out
    cdef ListenerTable listener = ex.listener
    cdef uint32_t i, first
    cdef bytes text
    if listener is None:
        listener = ex.down.peer.port.log_first
    if listener is not None:
        if not log_wanted(engine, listener, http_status_of(ex, ex.status), took):
            return 0
        if listener.log_program is not None:
            return log_by_program(<LogProgram>listener.log_program, ex.down.peer, ex, ex.status, took, None)
    out_reserve(out, 1024 + 6 * 4 * LOG_FIELD + (PyBytes_GET_SIZE(ex.rule.in_log()) if ex.rule is not None else 0))
    out_raw(out, <const char *>b'{"time":"', 9)
    engine.clock.log_time(out)
    out_raw(out, <const char *>b'","client":"', 12)
    out_bytes(out, ex.client)
    if ex.client is not ex.down.peer.address:
        out_raw(out, <const char *>b'","peer":"', 10)
        out_bytes(out, ex.down.peer.address)
    out_raw(out, <const char *>b'","method":"', 12)
    log_text(out, ex.raw.data, ex.method_len)
    out_raw(out, <const char *>b'","host":"', 10)
    log_text(out, ex.raw.data + ex.authority_off, ex.authority_len)
    out_raw(out, <const char *>b'","path":"', 10)
    log_text(out, ex.raw.data + ex.target_off, ex.target_len)
    out_raw(out, <const char *>b'","status":', 11)
    out_number(out, ex.status)
    if ex.grpc:
        out_raw(out, <const char *>b',"grpc_status":"', 16)
        out_bytes(out, grpc_name(ex.grpc_status))
        out_raw(out, <const char *>b'"', 1)
    out_raw(out, <const char *>b',"flags":"', 10)
    first = 1
    for i in range(F_COUNT):
        if ex.flags >> i & 1:
            if not first:
                out_raw(out, <const char *>b",", 1)
            first = 0
            out_bytes(out, <bytes>FLAG_NAMES[i])
    out_raw(out, <const char *>b'"', 1)
    if ex.rule is not None:
        out_raw(out, <const char *>b",", 1)
        out_bytes(out, ex.rule.in_log())
    if ex.decision is not None and ex.decision.limit is not None:
        text = ex.decision.limit.log
        out_reserve(out, 4096 + PyBytes_GET_SIZE(text) + 6 * LOG_FIELD)
        out_raw(out, <const char *>b',"limit":', 9)
        out_bytes(out, text)
        out_raw(out, <const char *>b',"limit_window":', 16)
        out_number(out, ex.decision.window)
        out_raw(out, <const char *>b',"limit_remaining":', 19)
        out_number(out, ex.decision.remaining)
    if ex.refuser is not None:
        text = ex.refuser.log
        out_reserve(out, 4096 + PyBytes_GET_SIZE(text) + 6 * LOG_FIELD)
        out_raw(out, <const char *>b',"policy":', 10)
        out_bytes(out, text)
        if ex.refuser_rule is not None:
            text = ex.refuser_rule
            out_reserve(out, 4096 + PyBytes_GET_SIZE(text) + 6 * LOG_FIELD)
            out_raw(out, <const char *>b',"policy_rule":', 15)
            out_bytes(out, text)
    if ex.user is not None:
        text = ex.user
        out_reserve(out, 4096 + PyBytes_GET_SIZE(text) + 6 * LOG_FIELD)
        out_raw(out, <const char *>b',"user":', 8)
        out_bytes(out, text)
    if ex.forwarded:
        text = ex.backend.cluster.log
        out_reserve(out, 4096 + PyBytes_GET_SIZE(text) + 6 * LOG_FIELD)
        out_raw(out, <const char *>b',"backend":', 11)
        out_bytes(out, text)
    if ex.endpoint is not None:
        text = ex.endpoint.log
        out_reserve(out, 2048 + PyBytes_GET_SIZE(text) + 6 * LOG_FIELD)
        out_raw(out, <const char *>b',"endpoint":', 12)
        out_bytes(out, text)
    if ex.failure >= <int>UP_TLS_BY and ex.flags & F_CONNECT:
        out_raw(out, <const char *>b',"upstream_tls_failure":"', 25)
        out_bytes(out, tls_failure_of(ex))
        out_raw(out, <const char *>b'"', 1)
    out_raw(out, <const char *>b',"request_id":"', 15)
    log_text(out, ex.request_id, ex.request_id_len)
    out_raw(out, <const char *>b'","bytes_received":', 19)
    out_number(out, ex.body.received)
    out_raw(out, <const char *>b',"bytes_sent":', 14)
    out_number(out, ex.bytes_out)
    out_raw(out, <const char *>b',"duration_ms":', 15)
    log_ms(out, took)
    out_raw(out, <const char *>b',"upstream_ms":', 15)
    log_ms(out, ex.upstream_us)
    out_raw(out, <const char *>b',"tries":', 9)
    out_number(out, ex.retry.tries)
    out_raw(out, <const char *>b',"user_agent":"', 15)
    log_text(out, ex.raw.data + ex.agent_off, ex.agent_len)
    if ex.trace is not None and ex.trace.flags & 1:
        out_raw(out, <const char *>b'","trace_id":"', 14)
        put_hex(out, ex.trace.trace_id, 16)
    out_raw(out, <const char *>b'"}\n', 3)
    return log.written()


cdef int log_refused(Engine engine, Peer peer, int status, bytes reason) except -1:
    """A message that never became a request."""
    cdef LogBatch log = log_of(engine)
    cdef Out *out = &log.out
    cdef ListenerTable listener = peer.port.log_first
    if peer.port.log_off:
        return 0
    if listener is not None:
        if not log_wanted(engine, listener, status, -1):
            return 0
        if listener.log_program is not None:
            return log_by_program(<LogProgram>listener.log_program, peer, None, status, -1, reason)
    out_reserve(out, 1024 + 6 * LOG_FIELD)
    out_raw(out, <const char *>b'{"time":"', 9)
    engine.clock.log_time(out)
    out_raw(out, <const char *>b'","client":"', 12)
    out_bytes(out, peer.address)
    out_raw(out, <const char *>b'","status":', 11)
    out_number(out, status)
    out_raw(out, <const char *>b',"flags":"PE","reason":"', 24)
    log_text(out, <const uint8_t *>PyBytes_AS_STRING(reason), PyBytes_GET_SIZE(reason))
    out_raw(out, <const char *>b'"}\n', 3)
    return log.written()
