"""Names of the counters in shared memory: the place in each tuple is the cell's number (csrc/stat.h).

In: nothing. Out: GLOBALS (one set per worker) and ROW (one set per route rule), read by the engine, which writes the
cells, and by proxy/metrics, which reads them. Names are stable: new ones go at the end.
"""

from __future__ import annotations

__all__ = [
    "BACKEND",
    "BACKEND_TLS_FAILURES",
    "BUCKET_BOUNDS_MS",
    "GLOBALS",
    "GRPC_STATUSES",
    "HEAD_ERRORS",
    "HTTP2_BREACHES",
    "LIMIT",
    "MIRROR_DROPS",
    "POLICY",
    "ROW",
    "STREAM_REFUSED",
]

# Upper bounds of the latency buckets in milliseconds (ef_stat_bucket); the last bucket is +Inf.
BUCKET_BOUNDS_MS: tuple[float, ...] = (
    0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10000,
)  # fmt: skip

# enum ef_head_error from 1 on, as ef_head_error_name() spells it; the engine checks the spelling at start.
HEAD_ERRORS: tuple[str, ...] = (
    "line", "bare_lf", "method", "unknown_method", "refused_method", "target", "version",
    "http09", "http10", "version_unsupported", "line_too_long", "head_too_large", "too_many_headers",
    "name", "value", "fold", "underscore", "no_host", "many_hosts", "host", "authority",
    "content_length", "many_content_lengths", "transfer_encoding", "coding_unknown", "both_lengths",
    "expect", "status",
)  # fmt: skip

# enum ef_h2_breach from 1 on, as ef_h2_breach_name() spells it; the engine checks the spelling at start.
HTTP2_BREACHES: tuple[str, ...] = (
    "resets", "continuations", "settings", "acks", "overhead", "updates", "refused", "head", "stall", "memory",
)  # fmt: skip
#: In the order of csrc/tls/tls.h enum ef_tls_failure, but for the first, which stands for a deadline.
HANDSHAKE_FAILURES: tuple[str, ...] = (
    "timeout", "protocol", "name", "version", "cipher", "certificate", "alert", "closed", "limit", "local",
)  # fmt: skip
#: Why a handshake with a backend failed, in the order of csrc/tls/tls.h enum ef_tls_backend_failure.
BACKEND_TLS_FAILURES: tuple[str, ...] = (
    "certificate_expired", "certificate_not_yet_valid", "certificate_name_mismatch", "certificate_unknown_authority",
    "certificate_invalid", "protocol", "version", "cipher", "handshake_refused", "closed", "local",
)  # fmt: skip
#: Versions, and whether a session went on; as net/peer.pyx places them.
HANDSHAKES_DONE: tuple[str, ...] = ("1.2_false", "1.2_true", "1.3_false", "1.3_true")

#: Why a connection or session of layer 4 was not served (stream/tcp_proxy.pyx, TcpProxy.refuse).
STREAM_REFUSED: tuple[str, ...] = (
    "limit", "address_connections", "address_rate", "proxy_protocol", "route", "backend",
)  # fmt: skip

#: Why a copy for a mirror was dropped (exchange/mirror.pyx, enum MirrorDrop).
MIRROR_DROPS: tuple[str, ...] = (
    "unreachable", "behind", "memory", "timeout", "lost", "crowded", "request",
)  # fmt: skip

#: By number, as gRPC calls them (doc/statuscodes.md).
GRPC_STATUSES: tuple[str, ...] = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip

GLOBALS: tuple[str, ...] = (
    "connections_total",
    "connections_active",
    "connections_refused",
    "connections_tls_total",
    "requests_active",
    "downstream_bytes_received",
    "downstream_bytes_sent",
    "upstream_bytes_received",
    "upstream_bytes_sent",
    "upstream_connects",
    "upstream_connect_failures",
    "upstream_connections_active",
    "upstream_reuses",
    "upstream_protocol_errors",
    "retries",
    "retries_over_budget",
    "endpoint_ejections",
    "mirrored",
    "mirrors_dropped",
    "no_listener",
    "no_route",
    "misdirected",
    "parser_disagreements",
    "body_too_large",
    "body_malformed",
    "head_timeouts",
    "access_log_lines",
    "access_log_dropped",
    "tunnels_active",
    "applies",
    "resources_refused",
    "pending_refused",
    "proxy_protocol_refused",
    "path_refused",
    *("head_refused_" + name for name in HEAD_ERRORS),
    "limit_batches",
    "limit_store_us",
    "limit_store_errors",
    "limit_timeouts",
    "limit_store_full",
    "handshakes_active",
    "handshakes_failed",
    "spans_recorded",
    "spans_dropped",
    "bodies_gave_way",
    "limit_stores_down_active",
    "bodies_not_gathered",
    "turns",
    "turns_us",
    "turn_longest_us",
    "turn_events",
    "faults",
    "answers_gave_way",
    "http2_connections",
    "http2_streams_reset",
    "http2_streams_malformed",
    "http2_streams_refused",
    *("http2_breach_" + name for name in HTTP2_BREACHES),
    *("handshakes_failed_" + name for name in HANDSHAKE_FAILURES),
    *("handshakes_done_" + name for name in HANDSHAKES_DONE),
    "pending_gave_way",
    "upstream_http2_connections",
    "upstream_http2_unprocessed",
    "upstream_http2_breaches",
    "upstream_http2_retired",
    "grpc_retries",
    "grpc_web_requests",
    "stream_connections",
    "stream_connections_active",
    "stream_received_bytes",
    "stream_sent_bytes",
    *("stream_refused_" + name for name in STREAM_REFUSED),
    "stream_sessions",
    "stream_sessions_active",
    "stream_datagrams_received",
    "stream_datagrams_sent",
    "stream_datagrams_dropped",
    "auth_calls",
    "auth_denied",
    "auth_errors",
    "auth_cached",
    "faults_delayed",
    "faults_aborted",
    "compressed",
    "compressed_in",
    "compressed_out",
    "health_checks",
    "health_checks_failed",
    "health_checks_ill",
    "zone_own",
    "zone_other",
    "connections_gave_way",
    "streams_gave_way",
    *("mirror_drops_" + name for name in MIRROR_DROPS),
    "error_calls",
    "error_calls_failed",
    "http10_requests",
    "stream_refused_policy",
)

#: Those that say how much there is now, of a worker: its successor begins with none.
GAUGES: tuple[str, ...] = (
    "connections_active",
    "handshakes_active",
    "requests_active",
    "upstream_connections_active",
    "tunnels_active",
    "turn_longest_us",
    "stream_connections_active",
    "stream_sessions_active",
)

ROW: tuple[str, ...] = (
    "requests_1xx",
    "requests_2xx",
    "requests_3xx",
    "requests_4xx",
    "requests_5xx",
    "requests_aborted",
    "bytes_received",
    "bytes_sent",
    "duration_us",
    "upstream_us",
    "timeouts",
    "retries",
    *(f"duration_bucket_{i}" for i in range(len(BUCKET_BOUNDS_MS) + 1)),
    *("grpc_" + name for name in GRPC_STATUSES),
)

# A row whose label is "limit\t<route>\t<limit>"; behind the cells of ROW, because both may share the overflow row.
LIMIT: tuple[str, ...] = ("ok", "over", "shadow_over", "error", "store_us", "over_local", "no_room")

# A row whose label is "policy\t<policy>\t<unit>", behind the cells of LIMIT: let in, refused, not decided (the unit is broken, its
# service fails), and of those let in or refused the ones that nobody had to be asked about.
POLICY: tuple[str, ...] = ("allowed", "denied", "error", "cached")

# A row whose label is "backend\t<cluster>\t<reason of BACKEND_TLS_FAILURES>", behind the cells of POLICY.
BACKEND: tuple[str, ...] = ("tls_failed",)

assert len(GLOBALS) <= 192, "csrc/stat.h EF_STAT_GLOBALS"
assert len(ROW) + len(LIMIT) + len(POLICY) + len(BACKEND) <= 63, "csrc/stat.h EF_STAT_HOLDERS"
