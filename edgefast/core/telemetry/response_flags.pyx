# Response flags: how a request ended, for log lines and spans (docs/guides/access-log.md lists them; Envoy's flags where it has one).
#
# In: flags and status of an exchange, or of one of its attempts. Out: constants, or texts made of them. Nothing a client sent is in it.

cdef tuple FLAG_WORDS = (  # as Envoy's %RESPONSE_FLAGS% and %RESPONSE_FLAGS_LONG%; by bit
    (b"NR", b"NoRouteFound"), (b"UH", b"NoHealthyUpstream"), (b"UO", b"UpstreamOverflow"), (b"UF", b"UpstreamConnectionFailure"),
    (b"UC", b"UpstreamConnectionTermination"), (b"UPE", b"UpstreamProtocolError"), (b"UT", b"UpstreamRequestTimeout"),
    (b"DC", b"DownstreamConnectionTermination"), None, (b"NC", b"NoClusterFound"), None, None, None, None,
    (b"SI", b"StreamIdleTimeout"), (b"RL", b"RateLimited"), (b"RLSE", b"RateLimitServiceError"),
    (b"OM", b"OverloadManagerTerminated"), (b"UAEX", b"UnauthorizedExternalService"),
    (b"UAEX", b"UnauthorizedExternalService"), (b"DI", b"DelayInjected"), (b"FI", b"FaultInjected"),
)
cdef tuple PROTOCOL_ERROR = (b"DPE", b"DownstreamProtocolError")
cdef tuple TRANSPORT_FAILURES = (None, None, None, b"connection_failure", b"connection_timeout", b"tls_error", b"no_http2", None, None, None, None, None)
TRANSPORT_FAILURES += (b"tls_error",) * EF_TLS_B_COUNT  # from UP_TLS_BY on
cdef tuple TLS_FAILURES = tuple([one.encode() for one in BACKEND_TLS_FAILURES])


cdef bytes tls_failure_of(Exchange ex):
    """Why the TLS handshake of the last try failed; None: it did not fail."""
    return <bytes>TLS_FAILURES[ex.failure - <int>UP_TLS_BY] if ex.flags & F_CONNECT and ex.failure >= <int>UP_TLS_BY else None


cdef bytes flags_of(Exchange ex, int column, int status):
    cdef uint32_t i
    if ex is None:
        return <bytes>PROTOCOL_ERROR[column]
    words = []
    status = http_status_of(ex, status)
    for i in range(F_COUNT):
        if ex.flags >> i & 1:
            word = PROTOCOL_ERROR if i == 9 and status == 400 else FLAG_WORDS[i]
            if word is not None:
                words.append(word[column])
    return b",".join(words) or None


cdef bytes failure_of(uint32_t flags, int failure, int status):
    """Why a try at a backend did not bring its whole answer: Envoy's words; None: it did."""
    if flags & F_CLIENT_GONE:
        return b"downstream_remote_disconnect"
    if flags & F_TOO_LARGE:
        return b"request_payload_too_large"
    if flags & F_NO_ENDPOINT:
        return b"no_healthy_upstream"
    if flags & F_TIMEOUT:
        return b"request_payload_timeout" if status == 408 else b"response_timeout"
    if flags & F_IDLE:
        return b"stream_idle_timeout"
    if flags & F_SLOW_READER:
        return b"overload_manager_reset"
    if flags & F_OVERFLOW:
        return b"overflow"
    if flags & F_CONNECT:
        return <bytes>(TRANSPORT_FAILURES[failure] or b"connection_failure")
    if flags & F_PROTOCOL:
        return b"protocol_error"
    return b"connection_termination" if flags & F_RESET else None


cdef bytes details_of(Exchange ex, int status, bytes reason):
    """Envoy's words of %RESPONSE_CODE_DETAILS%, where it has one."""
    cdef uint32_t flags
    if ex is None:
        return reason.replace(b" ", b"_")
    flags = ex.flags
    status = http_status_of(ex, status)
    failure = failure_of(flags, ex.failure, status)
    if failure is not None:
        if not flags & (F_OVERFLOW | F_CONNECT | F_PROTOCOL | F_RESET):
            return failure
        return b"upstream_reset_%b_response_started{%b}" % (b"after" if ex.retry.state == TRY_ANSWERED else b"before", failure)
    if flags & F_NO_ROUTE:
        return b"route_not_found"
    if flags & F_MISDIRECTED:
        return b"misdirected_request"
    if flags & F_AUTH_ERROR and not flags & F_DENIED and ex.retry.state != TRY_ANSWERED:
        return b"ext_authz_error"
    if flags & F_DENIED:
        return b"policy_denied"
    if flags & F_FAULT:
        return b"fault_filter_abort"
    if flags & F_LIMITED:
        return b"request_rate_limited"
    if flags & F_LIMIT_ERROR and ex.endpoint is None:
        return b"rate_limiter_error"
    if flags & F_CORS:
        return b"cors_response"
    if flags & F_INVALID:
        return b"path_normalization_failed" if status == 400 else b"invalid_configuration"
    if flags & F_REDIRECT:
        return b"direct_response"
    return b"via_upstream" if ex.retry.state == TRY_ANSWERED else b"direct_response"


cdef tuple TCP_PROXY_ENDS = (  # of connections and sessions that are passed on; by TcpProxyEnd
    b"", b"done", b"client_reset", b"backend_reset", b"idle_timeout", b"stalled", b"drained", b"fault",
    b"too_many_connections", b"address_connections", b"address_rate", b"proxy_protocol", b"no_route", b"no_backend",
    b"no_endpoint", b"connect_failed", b"connect_timeout", b"backend_tls", b"gave_way", b"backend_gone", b"tls_changed",
    b"policy_denied",
)

if len(TCP_PROXY_ENDS) != PE_COUNT:
    raise ImportError("edgefast/core/telemetry/response_flags.pyx TCP_PROXY_ENDS does not fit stream/tcp_proxy.pxd")
