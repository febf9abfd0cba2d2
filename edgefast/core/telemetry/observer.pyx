# Telemetry: what the engine reports to the access log and the spans (hooks.pxd, Observer).

cdef class Telemetry(Observer):
    def __cinit__(self, Engine engine, access_log, spans):
        self.engine = engine
        self.log = LogBatch(engine, access_log)
        self.spans = SpanBatch(engine, spans)

    cdef LogFormat make_format(self, spec):
        return LogProgram(self.engine, spec)

    cdef int start_trace(self, Exchange ex, double share, const uint8_t *base, ef_head *head) except -1:
        return start_trace(ex, share, base, head)

    cdef int write_trace(self, Trace trace, Out *out, HeaderOps ops) except -1:
        return write_trace(trace, out, ops)

    cdef int begin_try(self, Exchange ex) except -1:
        return begin_try(ex)

    cdef int end_try(self, Exchange ex, int status, uint32_t why, int64_t now) except -1:
        return end_try(ex, status, why, now)

    cdef int note_auth_call(
        self, Exchange ex, const uint8_t *span_id, bytes cluster, int64_t began, bint grpc, int status, int outcome, bytes error, bytes endpoint,
        bytes protocol,
    ) except -1:
        return pack_auth_call(ex, span_id, cluster, began, grpc, status, outcome, error, endpoint, protocol)

    cdef int keep_request(self, Exchange ex, ef_head *head) except -1:
        return keep_request(ex, head)

    cdef int keep_answer(self, Exchange ex, const void *data, size_t n) except -1:
        return keep_answer(ex, data, n)

    cdef int keep_upstream(self, Exchange ex, Outbound up) except -1:
        return keep_upstream(ex, up)

    cdef int log_exchange(self, Exchange ex, int64_t took) except -1:
        return log_exchange(self.engine, ex, took)

    cdef int log_refused(self, Peer peer, int status, bytes reason) except -1:
        return log_refused(self.engine, peer, status, reason)

    cdef int record_span(self, Exchange ex, int64_t took) except -1:
        return record_span(ex, took)

    cdef int log_tcp_proxy(self, object tcp_proxy) except -1:
        return log_tcp_proxy(self.engine, <TcpProxy>tcp_proxy)

    cdef int record_tcp_proxy(self, object tcp_proxy) except -1:
        return record_tcp_proxy(self.engine, <TcpProxy>tcp_proxy)

    cdef int log_datagrams(self, object session) except -1:
        return log_datagrams(self.engine, <DatagramSession>session)

    cdef int flush(self) except -1:
        self.log.flush()
        self.spans.flush()
        return 0
