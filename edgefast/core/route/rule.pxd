# Rule: ir.Rule with its clusters, operations and counters resolved.

cdef class HttpSettings:
    cdef:
        ef_head_limits request_limits
        ef_head_limits response_limits
        uint8_t drop_flags      # EF_SPAN_* that keep a request line from going on
        uint64_t body_size
        size_t buffer_bytes
        size_t body_start       # bytes of a body before a backend is asked, where many are slow; 0: none
        int64_t body_start_timeout
        size_t body_buffer      # bytes of a body that is gathered whole where all places are taken
        size_t mirror_buffer    # bytes that a copy for a mirror holds at most
        uint32_t body_share     # percent of a cluster's connections
        uint32_t body_client_share  # percent of these that one client address keeps when others wait
        uint64_t body_rate      # bytes a second; 0: nobody has to give way
        uint32_t answer_share   # percent of the connections that bodies leave
        uint64_t answer_rate    # bytes a second; 0: no answer has to give way
        int64_t upstream_idle
        int64_t head_timeout, idle_timeout, stream_idle_timeout, route_timeout, connect_timeout
        int64_t max_connections
        uint32_t stream_share   # percent of a backend's connections that long-lived streams may hold
        uint32_t max_streams    # of a port
        uint32_t address_streams    # of one client address; 0: any number
        bint h2_enabled
        uint32_t h2_streams, h2_requests
        uint32_t h2_stream_window
        int32_t h2_window
        int64_t h2_ping         # ms of silence before a client is asked; 0: never
        uint32_t h2_up_streams, h2_up_stream_window     # towards backends
        int32_t h2_up_window
        int64_t h2_up_ping
        bint grpc_web
        uint32_t grpc_codes     # a bit for each status after which a call is tried again
        uint32_t grpc_attempts
        int64_t grpc_backoff
        uint32_t max_requests
        int escaped_slashes     # 0 redirect, 1 keep, 2 reject
        int path_parameters     # PARAMETERS_* of exchange/target.pyx
        bytes via, via_0, via_2 # b"via: ...\r\n" of messages that came in HTTP/1.1, in HTTP/1.0 and in HTTP/2, or b""
        bytes default_host      # Host of HTTP/1.0 requests without one, or b""
        uint32_t trusted_hops
        InetRange *trusted      # networks whose x-forwarded-for is believed
        int n_trusted
        ForwardedHeaders forwarded  # headers about the client besides x-forwarded-for and -proto; None: as without any setting
        bint rate_limit_headers, retry_after
        int proxy_protocol      # 0 off, 1 optional, 2 required
        PreambleSenders senders # trusted peers
        int64_t tls_drain       # ms until connections of an earlier TLS rule are reset


cdef class Redirect:
    cdef:
        int status
        str scheme, hostname
        int port
        object path             # ir.PathRewrite or None
        bint trim_slash, write_port, drop_query, relative  # forms that Ingresses require
        LocationTemplate template   # in place of the fields above; None: there is none

    cdef bytes locate(self, Exchange ex, Routed *at)
    cdef bytes location(self, Exchange ex, const uint8_t *path, size_t path_len, size_t prefix_len, const uint8_t *query,
                        size_t query_len, const uint8_t *host, size_t host_len)


cdef class Cors:
    cdef:
        object spec             # ir.Cors
        frozenset exact
        list wildcards          # (prefix, suffix)
        bint any_origin

    cdef bint allows(self, str origin)
    cdef bytes simple(self, str origin)
    cdef list _exposed(self)
    cdef bytes preflight(self, str origin, str method, str headers)


cdef class MirrorTarget:
    cdef:
        Cluster cluster
        uint32_t numerator, denominator, sum

    cdef bint due(self) noexcept


cdef class Backend:
    cdef:
        Cluster cluster         # None: answer `status`
        int status
        HeaderOps request_ops, response_ops
        bytes host              # None: as the client sent it
        int path_kind           # 0 keep, 1 full, 2 prefix, 3 by `pattern`
        bytes path
        PathPattern pattern
        Redirect redirect
        list mirrors
        Cors cors
        Traffic traffic         # None: as the rule's
        SessionPolicy session   # None: it says nothing of its clients


# ir.DirectResponse, ready to be said.
cdef class DirectAnswer:
    cdef:
        int status
        bytes lines, body


cdef class Rule:
    cdef:
        # what every request reads, side by side
        int status
        bint has_retry
        Backend only                # the rule's one backend, if it has a weight; None when there are several
        bytes timeout_line          # b"x-edge-expected-rq-timeout-ms: ...\r\n"; None: by the port's default
        int64_t request_timeout     # ms; -1 unset (the default bounds the response head), 0 none
        int64_t backend_timeout     # ms; 0 none
        ef_stat_row *row
        list limits                 # of Limit that the store counts; None: no such limit
        list early_limits           # of Limit of this machine, before authentication; None: no such limit
        list late_limits            # those with headers, which authentication may set
        PolicyChain policy_chain                 # None: everybody may enter
        Traffic traffic             # None: no policy says how its requests are treated
        DirectAnswer direct         # None: it has no answer of its own
        ResponseRewrite response_rewrite    # None: none
        HeaderOps response_ops      # of answers of the proxy's own before a backend is chosen; None: none
        list backends               # when there are several
        uint32_t n_backends         # of them
        int attempts
        uint32_t *weights
        int64_t *current
        frozenset retry_codes       # None without retry
        int64_t backoff
        bytes log                   # b'"route":"default/web","rule":0'; None until a line asks for it
        str name                    # None when it has none
        readonly str route
        readonly int index

    cdef int share_out(self, Engine engine, spec, bint plain) except -1
    cdef bytes in_log(self)
    cdef Backend choose(self)
