# Hooks: what the fast path calls of the units that are compiled on their own.
#
# The fast path (fastpath.pyx) declares these classes and never cimports a unit. Each unit cimports the fast path and implements its
# classes. edgefast.core.engine makes one object of each and connects it. A method that a unit must implement raises NotImplementedError here.

# --- telemetry ------------------------------------------------------------------------------------------------------

# The trace state of a request (telemetry/span.pyx).
cdef class Trace:
    cdef:
        uint8_t trace_id[16]
        uint8_t parent_id[8]    # of the client's span
        uint8_t span_id[8]      # of ours towards the client
        uint8_t client_id[8]    # of ours towards the backend, one for each attempt: the backend gets it
        uint8_t flags           # trace-flags of W3C Trace Context: bit 0 is sampled
        bint has_parent
        size_t reported_at      # where the digits of client_id are in the backend's request head; 0: nowhere
        int64_t try_began       # us; a connection to the backend was asked for. 0: no attempt is in progress
        uint32_t tries          # attempts that have begun
        uint32_t kept           # attempts in `ended`
        Out ended               # attempts that are over, as MessagePack: the first ones and the last
        size_t last_at          # where the last of them begins
        Out asked               # calls of authorization services that it waited for, as MessagePack
        uint32_t n_asked        # of them
        bytes state             # tracestate, as it came


# What a request keeps for the log besides its head, and only if a log format needs it (telemetry/logvalue.pyx).
cdef class LogCapture:
    cdef:
        Out spans               # of the request head
        Out answer              # the head that the client got
        bytes upstream_local    # "10.0.0.1:40000"


# A compiled log format (telemetry/logprogram.pyx).
cdef class LogFormat:
    cdef bint wants_request, wants_answer, wants_address, wants_upstream   # of the client's connection; of the backend's


# Access log and spans.
cdef class Observer:
    cdef LogFormat make_format(self, spec)
    cdef int start_trace(self, Exchange ex, double share, const uint8_t *base, ef_head *head) except -1
    cdef int write_trace(self, Trace trace, Out *out, HeaderOps ops) except -1
    cdef int begin_try(self, Exchange ex) except -1
    cdef int end_try(self, Exchange ex, int status, uint32_t why, int64_t now) except -1
    cdef int note_auth_call(
        self, Exchange ex, const uint8_t *span_id, bytes cluster, int64_t began, bint grpc, int status, int outcome, bytes error, bytes endpoint,
        bytes protocol,
    ) except -1
    cdef int keep_request(self, Exchange ex, ef_head *head) except -1
    cdef int keep_answer(self, Exchange ex, const void *data, size_t n) except -1
    cdef int keep_upstream(self, Exchange ex, Outbound up) except -1
    cdef int log_exchange(self, Exchange ex, int64_t took) except -1
    cdef int log_refused(self, Peer peer, int status, bytes reason) except -1
    cdef int record_span(self, Exchange ex, int64_t took) except -1
    cdef int log_tcp_proxy(self, object tcp_proxy) except -1
    cdef int record_tcp_proxy(self, object tcp_proxy) except -1
    cdef int log_datagrams(self, object session) except -1
    cdef int flush(self) except -1


# --- TLS ------------------------------------------------------------------------------------------------------------

# The wire of a connection to a backend over TLS.
cdef class TlsClientWire(Wire):
    cdef int backend_failure(self) noexcept
    cdef int forget_session(self) except -1


cdef class TlsHooks:
    cdef TlsClientWire make_client_wire(self, object context, bytes name, str host, int port)
    cdef Py_ssize_t active(self) noexcept


# --- HTTP/2 ---------------------------------------------------------------------------------------------------------

# A connection that carries many streams, of either side. The pool of backends uses those of backends.
cdef class MultiplexedSession(Session):
    cdef:
        Peer peer               # of a client's connection
        Endpoint endpoint       # of a backend's connection
        bint draining           # no more streams
        bint retired            # it takes no more requests because so many were cancelled
        uint32_t served         # requests it has carried to their end
        uint32_t begun          # ... and those that have room on it
        uint32_t room           # streams at once that the backend takes and we want
        bint connects           # it takes extended CONNECT (RFC 8441)
        bint used_up            # it takes no more requests because it has had enough, or another worker needs its place
        bint lent               # the latter
        dict paced              # id -> (H2Call, code): resets that wait for the budget; None: of a client's connection

    cdef uint32_t load(self) noexcept
    cdef bint takes(self, bint wants_tunnel) noexcept
    cdef bint is_current(self) noexcept
    cdef bint is_idle(self) noexcept
    cdef Outbound open_call(self)
    cdef int use_up(self) except -1


cdef class Http2Hooks:
    cdef bint is_agreed(self, H1Server first) noexcept
    cdef int switch(self, H1Server first) except -1
    cdef int may_switch(self, H1Server first, const uint8_t *data, size_t n) except -1
    cdef MultiplexedSession make_client(self, Endpoint endpoint, HttpSettings settings, object tls, str sni, PoolDial dial)
    cdef size_t open_streams(self) noexcept


# --- layer 4 --------------------------------------------------------------------------------------------------------

cdef class StreamHooks:
    cdef dict served            # number of a port -> the addresses of its listeners
    cdef int change_route(self, str op, str name, uint64_t offset, uint64_t length) except -1
    cdef bint change_listener(self, str op, str name, object spec) except -1
    cdef int arrange(self, dict https, dict http) except -1
    cdef tuple key_at(self, int number, const NetAddress *local)
    cdef tuple covering_key(self, tuple key)
    cdef list hostnames(self, tuple key)


# --- health checks --------------------------------------------------------------------------------------------------

cdef class CheckHooks(Timer):
    cdef bint asks              # this worker probes; the others read its results
    cdef int wake(self) except -1


# --- policies -------------------------------------------------------------------------------------------------------

cdef enum PolicyResult:
    ADMITTED = 0
    ANSWERED = 1    # it was refused
    WAITING = 2     # an authentication or a service decides: AuthFlow continues or answers the request


# One unit of a policy by name. A rule holds the object, the table replaces its content.
cdef class Policy:
    cdef:
        object __weakref__
        readonly str name
        int status              # not 0: it is broken or missing, and requests are answered with this
        object traffic          # ir.Traffic or None
        list places             # of CredentialExtractor: where requests carry credentials for it, also while it is broken; None: nowhere
        ef_stat_row *row        # cells P_*; never NULL
        bytes log               # b'"security/ns/name#authorization"'

    cdef int update(self, object spec) except -1
    cdef int refuse(self, Exchange ex, int status, bytes rule, uint32_t flag, bytes lines=*) except -1


# The policy units of a rule.
cdef class PolicyChain:
    cdef PolicyResult evaluate(self, Exchange ex, Routed *at, ef_request *request) except *
    cdef int redact(self, Exchange ex, const uint8_t *base, ef_head *head, const uint8_t *query, size_t query_len) except -1
    cdef int drop_matched_headers(self, Out *trailers) except -1


# The policy units of a layer 4 route.
cdef class ConnectionPolicies:
    cdef bytes refuses(self, const NetAddress *client, bytes sni, Wire wire, bint counts)


# The filters that a request meets before it is routed.
cdef class ListenerFilters:
    cdef PolicyResult filter(self, Exchange ex, Routed *at, ef_request *request) except *


# States of an AuthFlow. policy/auth_flow.pyx has the table of transitions.
cdef enum AuthState:
    AUTH_NEW = 0
    # the driver takes the next step
    AUTH_PROOFS = 1         # authenticators, in order
    AUTH_BODY = 2           # the body, if services receive it
    AUTH_BODY_RATE = 3      # whether the awaited body keeps to bodyRate
    AUTH_SERVICES = 4       # authorization services, in order
    AUTH_DELAY = 5          # whether an injected delay is over
    AUTH_ADMISSION = 6      # authorization rules on tokens, then the request goes on
    # an event is awaited
    AUTH_READ_WAIT = 7      # the end of the read: HTTP/2 may cancel the request in the same read
    AUTH_PROOF_WAIT = 8     # a password thread, or the verification of a token
    AUTH_BODY_WAIT = 9      # the end of the request's body
    AUTH_CALL_WAIT = 10     # the answer of an authorization service
    AUTH_DELAY_WAIT = 11    # the end of an injected delay
    AUTH_ENDED = 12         # admitted, answered, or the exchange has ended


# What happens to an AuthFlow.
cdef enum AuthEvent:
    AUTH_BEGIN = 0
    AUTH_READ_END = 1       # all of a read is here
    AUTH_PROOF = 2          # a password or token has its result
    AUTH_BODY_END = 3       # the client's request is complete
    AUTH_DECISION = 4       # the service has answered, for this request or for all equal ones
    AUTH_ALONE = 5          # the service has answered an equal request, and the answer is not for this one
    AUTH_TIMER = 6          # Exchange.ask_at


# Authentication and authorization of a request, or an injected delay.
cdef class AuthFlow:
    cdef:
        AuthState state
        size_t held             # bytes of the copied head; 0: it has not waited
    cdef int advance(self, AuthEvent event) except -1
    cdef int take_body(self, iovec *iov, int n, size_t total) except -1
    cdef int leave(self) except -1


# What services that admitted a request changed of its answer and of the fields behind its body.
cdef class AuthResponse:
    cdef bytes lines(self, Exchange ex, const uint8_t *base, ef_head *head)
    cdef int drop_trailers(self, Out *lines) except -1


# Injected delays and aborts.
cdef class Fault:
    cdef bint inject(self, Exchange ex, Routed *at, const ef_request *request) except -1


# A service that writes error pages.
cdef class ErrorService:
    cdef bint serve(self, Exchange ex, int status, bytes lines, bytes reason) except -1


cdef class PolicyHooks:
    cdef Policy make_policy(self, str name)
    cdef PolicyChain make_chain(self, object spec)
    cdef ListenerFilters make_filters(self, object names)
    cdef ConnectionPolicies make_connection_policies(self, object names)
    cdef Fault make_fault(self, object spec)
    cdef ErrorService make_error_service(self, object spec)
    cdef int count_extractors(self, list places, int by) except -1
    cdef bint has_extractors(self) noexcept
    cdef int cover_unrouted(self, Exchange ex) except -1
