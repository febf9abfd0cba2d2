# Hooks: the abstract classes of hooks.pxd. A method that a unit does not implement is an error.


cdef class Trace:
    def __dealloc__(self):
        free(self.ended.data)
        free(self.asked.data)


cdef class LogCapture:
    def __dealloc__(self):
        out_free(&self.spans)
        out_free(&self.answer)


cdef class LogFormat:
    pass


cdef class Observer:
    cdef LogFormat make_format(self, spec):
        raise NotImplementedError

    cdef int start_trace(self, Exchange ex, double share, const uint8_t *base, ef_head *head) except -1:
        raise NotImplementedError

    cdef int write_trace(self, Trace trace, Out *out, HeaderOps ops) except -1:
        raise NotImplementedError

    cdef int begin_try(self, Exchange ex) except -1:
        raise NotImplementedError

    cdef int end_try(self, Exchange ex, int status, uint32_t why, int64_t now) except -1:
        raise NotImplementedError

    cdef int note_auth_call(
        self, Exchange ex, const uint8_t *span_id, bytes cluster, int64_t began, bint grpc, int status, int outcome, bytes error, bytes endpoint,
        bytes protocol,
    ) except -1:
        raise NotImplementedError

    cdef int keep_request(self, Exchange ex, ef_head *head) except -1:
        raise NotImplementedError

    cdef int keep_answer(self, Exchange ex, const void *data, size_t n) except -1:
        raise NotImplementedError

    cdef int keep_upstream(self, Exchange ex, Outbound up) except -1:
        raise NotImplementedError

    cdef int log_exchange(self, Exchange ex, int64_t took) except -1:
        raise NotImplementedError

    cdef int log_refused(self, Peer peer, int status, bytes reason) except -1:
        raise NotImplementedError

    cdef int record_span(self, Exchange ex, int64_t took) except -1:
        raise NotImplementedError

    cdef int log_tcp_proxy(self, object tcp_proxy) except -1:
        raise NotImplementedError

    cdef int record_tcp_proxy(self, object tcp_proxy) except -1:
        raise NotImplementedError

    cdef int log_datagrams(self, object session) except -1:
        raise NotImplementedError

    cdef int flush(self) except -1:
        raise NotImplementedError


cdef class TlsClientWire(Wire):
    cdef int backend_failure(self) noexcept:
        return 0

    cdef int forget_session(self) except -1:
        raise NotImplementedError


cdef class TlsHooks:
    cdef TlsClientWire make_client_wire(self, object context, bytes name, str host, int port):
        raise NotImplementedError

    cdef Py_ssize_t active(self) noexcept:
        return 0


cdef class MultiplexedSession(Session):
    cdef uint32_t load(self) noexcept:
        return 0

    cdef bint takes(self, bint wants_tunnel) noexcept:
        return 0

    cdef bint is_current(self) noexcept:
        return 0

    cdef bint is_idle(self) noexcept:
        return 0

    cdef Outbound open_call(self):
        raise NotImplementedError

    cdef int use_up(self) except -1:
        raise NotImplementedError


cdef class Http2Hooks:
    cdef bint is_agreed(self, H1Server first) noexcept:
        return 0

    cdef int switch(self, H1Server first) except -1:
        raise NotImplementedError

    cdef int may_switch(self, H1Server first, const uint8_t *data, size_t n) except -1:
        raise NotImplementedError

    cdef MultiplexedSession make_client(self, Endpoint endpoint, HttpSettings settings, object tls, str sni, PoolDial dial):
        raise NotImplementedError

    cdef size_t open_streams(self) noexcept:
        return 0


cdef class StreamHooks:
    cdef int change_route(self, str op, str name, uint64_t offset, uint64_t length) except -1:
        raise NotImplementedError

    cdef bint change_listener(self, str op, str name, object spec) except -1:
        raise NotImplementedError

    cdef int arrange(self, dict https, dict http) except -1:
        raise NotImplementedError

    cdef tuple key_at(self, int number, const NetAddress *local):
        raise NotImplementedError

    cdef tuple covering_key(self, tuple key):
        raise NotImplementedError

    cdef list hostnames(self, tuple key):
        raise NotImplementedError


cdef class CheckHooks(Timer):
    cdef int wake(self) except -1:
        raise NotImplementedError


cdef class Policy:
    def __dealloc__(self):
        if self.row != NULL:
            ef_stat_release(self.row)

    cdef int update(self, object spec) except -1:
        raise NotImplementedError

    cdef int refuse(self, Exchange ex, int status, bytes rule, uint32_t flag, bytes lines=b"") except -1:
        """End the request here; its log line names the unit. `rule`: of an authorization, its name as JSON; None: none.
        `lines`: header lines of the answer."""
        ef_stat_add(&self.row.cells[P_DENIED if flag & F_DENIED else P_ERROR], 1)
        ex.refuser = self
        ex.refuser_rule = rule
        return ex.answer(status, lines, flag)


cdef class PolicyChain:
    cdef PolicyResult evaluate(self, Exchange ex, Routed *at, ef_request *request) except *:
        raise NotImplementedError

    cdef int redact(self, Exchange ex, const uint8_t *base, ef_head *head, const uint8_t *query, size_t query_len) except -1:
        raise NotImplementedError

    cdef int drop_matched_headers(self, Out *trailers) except -1:
        raise NotImplementedError


cdef class ConnectionPolicies:
    cdef bytes refuses(self, const NetAddress *client, bytes sni, Wire wire, bint counts):
        """Return the unit that refuses the connection, as members of its log line; None: it is admitted. `wire`: TLS that the listener
        terminates; None: the connection has no such TLS. `counts`: the metrics of the unit count the decision."""
        raise NotImplementedError


cdef class ListenerFilters:
    cdef PolicyResult filter(self, Exchange ex, Routed *at, ef_request *request) except *:
        raise NotImplementedError


cdef class AuthFlow:
    cdef int advance(self, AuthEvent event) except -1:
        raise NotImplementedError

    cdef int take_body(self, iovec *iov, int n, size_t total) except -1:
        raise NotImplementedError

    cdef int leave(self) except -1:
        raise NotImplementedError


cdef class AuthResponse:
    cdef bytes lines(self, Exchange ex, const uint8_t *base, ef_head *head):
        raise NotImplementedError

    cdef int drop_trailers(self, Out *lines) except -1:
        raise NotImplementedError


cdef class Fault:
    cdef bint inject(self, Exchange ex, Routed *at, const ef_request *request) except -1:
        raise NotImplementedError


cdef class ErrorService:
    cdef bint serve(self, Exchange ex, int status, bytes lines, bytes reason) except -1:
        """Answer in place of an answer with that status, lines and body; False: it takes no more requests."""
        raise NotImplementedError


cdef class PolicyHooks:
    cdef Policy make_policy(self, str name):
        raise NotImplementedError

    cdef PolicyChain make_chain(self, object spec):
        raise NotImplementedError

    cdef ListenerFilters make_filters(self, object names):
        raise NotImplementedError

    cdef ConnectionPolicies make_connection_policies(self, object names):
        raise NotImplementedError

    cdef Fault make_fault(self, object spec):
        raise NotImplementedError

    cdef ErrorService make_error_service(self, object spec):
        raise NotImplementedError

    cdef int count_extractors(self, list places, int by) except -1:
        raise NotImplementedError

    cdef bint has_extractors(self) noexcept:
        return 0

    cdef int cover_unrouted(self, Exchange ex) except -1:
        raise NotImplementedError

