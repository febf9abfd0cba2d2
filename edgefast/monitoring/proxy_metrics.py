"""Proxy metrics: every metric family of a proxy, in the order of the page.

In: nothing.
Out: `PROXY`, by name without the prefix. A family with a `cell` shows a counter of shared memory;
tests compare the cells of edgefast/core/cells.py with this list in both directions.
Must never: name a family that proxy/metrics/exposition.py does not write.
"""

from __future__ import annotations

from edgefast.monitoring.family import PREFIX, Family, Kind, Unit, by_name, count, now

__all__ = [
    "AUTHORISATION",
    "BY_LABELS",
    "DECIDED",
    "HANDSHAKES_DONE",
    "HANDSHAKES_FAILED",
    "HEAD_REFUSED",
    "HTTP2_BREACH",
    "LAYER4",
    "MIRRORS",
    "MIRROR_DROPS",
    "OVERFLOW",
    "PROXY",
    "STREAM",
    "STREAM_REFUSED",
]


#: A series for each cluster and reason; no label has a value that a backend or a client sends.
BACKEND_TLS = Family(
    f"{PREFIX}upstream_tls_failures_total",
    "counter",
    "Failed TLS handshakes with backends, by cluster and reason.",
    ("backend", "reason"),
    "",
)

#: What the cells of a reason begin with.
MIRROR_DROPS = "mirror_drops_"

MIRRORS = (
    count("mirrored", "Copies of requests sent to mirrors.", "mirrored"),
    count(
        "mirrors_dropped", "Mirror copies dropped; the request itself continues.", "mirrors_dropped"
    ),
    Family(
        f"{PREFIX}mirror_drops_total",
        "counter",
        "Mirror copies dropped, by reason.",
        ("reason",),
        cell=MIRROR_DROPS,
    ),
)


#: Cells that begin so are of one family: why connections and sessions were not served.
STREAM_REFUSED = "stream_refused_"


LAYER4 = (
    count(
        "stream_connections",
        "Forwarded connections of TCP listeners, and of TLS listeners after the ClientHello.",
        "stream_connections",
    ),
    now("stream_connections_active", "Of these, open connections."),
    count(
        "stream_received_bytes",
        "Bytes from clients of TCP, TLS and UDP listeners.",
        "stream_received_bytes",
        "bytes",
    ),
    count(
        "stream_sent_bytes",
        "Bytes to clients of TCP, TLS and UDP listeners.",
        "stream_sent_bytes",
        "bytes",
    ),
    Family(
        f"{PREFIX}stream_refused_total",
        "counter",
        "Refused connections, and datagrams without a session, by cause: a limit of the "
        "listener or of the client address, no PROXY protocol header, no route or backend "
        "weight, no reachable backend, or a policy.",
        ("reason",),
        cell=STREAM_REFUSED,
    ),
    count("stream_sessions", "Started UDP sessions.", "stream_sessions"),
    now("stream_sessions_active", "Of these, open sessions."),
    count("stream_datagrams_received", "Datagrams from clients.", "stream_datagrams_received"),
    count("stream_datagrams_sent", "Datagrams to clients.", "stream_datagrams_sent"),
    count(
        "stream_datagrams_dropped",
        "Dropped datagrams: no session for them, or the queue of a socket was full.",
        "stream_datagrams_dropped",
    ),
)


AUTHORISATION = (
    count("auth_calls", "Calls of authorization services.", "auth_calls"),
    count("auth_denied", "Requests that an authorization service denied.", "auth_denied"),
    count(
        "auth_errors",
        "Requests without a decision of the authorization service: they are denied, or pass if "
        "`failOpen` is set.",
        "auth_errors",
    ),
    count(
        "auth_cached",
        "Requests decided by a cached answer of an authorization service.",
        "auth_cached",
    ),
    count("error_calls", "Calls of services for error pages (responseOverride).", "error_calls"),
    count(
        "error_calls_failed",
        "Requests with the plain error, because the service for error pages did not answer in time, or the limit of "
        "simultaneous calls was reached.",
        "error_calls_failed",
    ),
    count("faults_delayed", "Requests delayed by fault injection.", "faults_delayed"),
    count("faults_aborted", "Requests aborted by fault injection.", "faults_aborted"),
    count("compressed", "Answers encoded by a policy.", "compressed"),
    count(
        "compressed_in_bytes",
        "Bytes of encoded answers before encoding.",
        "compressed_in",
        "bytes",
    ),
    count(
        "compressed_out_bytes",
        "Bytes of encoded answers after encoding.",
        "compressed_out",
        "bytes",
    ),
    count("health_checks", "Active health checks of endpoints.", "health_checks"),
    count("health_checks_failed", "Active health checks that failed.", "health_checks_failed"),
    count(
        "health_checks_ill",
        "Endpoints that became unhealthy by active health checks.",
        "health_checks_ill",
    ),
    count(
        "zone_own",
        "Endpoints chosen in the proxy's zone by zone-aware load balancing.",
        "zone_own",
    ),
    count(
        "zone_other", "Endpoints chosen in other zones by zone-aware load balancing.", "zone_other"
    ),
)

DECIDED = Family(
    f"{PREFIX}policy_requests_total",
    "counter",
    "Requests and layer 4 connections decided by a unit of a policy. error: it is invalid, or its service failed. "
    "cached: allowed and denied requests that were decided without a call of its service.",
    ("policy", "unit", "verdict"),
    "",
)


#: Cells that begin so are one family each, with the rest of the name as its labels, `_` between them.
HEAD_REFUSED = "head_refused_"
HTTP2_BREACH = "http2_breach_"  # why connections of HTTP/2 were ended
HANDSHAKES_FAILED = "handshakes_failed_"
HANDSHAKES_DONE = "handshakes_done_"
BY_LABELS: tuple[str, ...] = (HEAD_REFUSED, HTTP2_BREACH, HANDSHAKES_FAILED, HANDSHAKES_DONE)
BY_LABELS += (STREAM_REFUSED, MIRROR_DROPS)
#: What `route` (and `limit`) is for what is counted in no row of its own: there are more than rows.
OVERFLOW = "overflow"

_CONTROLLER = "a controller configures it"
_ROUTE = ("route", "rule")
_LIMIT = ("route", "limit")


def _gauge(name: str, text: str, unit: Unit = "", when: str = "") -> Family:
    return Family(PREFIX + name, "gauge", text, unit=unit, when=when)


def _row(kind: Kind, name: str, text: str, labels: tuple[str, ...], unit: Unit = "") -> Family:
    return Family(PREFIX + name, kind, text, labels, unit)


_AGENT = (
    Family(
        f"{PREFIX}info",
        "gauge",
        "Always 1; version of the product, of the table in use, and the TLS library of the engine.",
        ("version", "table", "tls"),
    ),
    _gauge("start_timestamp_seconds", "Start time of the process.", "timestamp"),
    _gauge("ready", "1 when all live workers serve a table and none drains."),
    _gauge("draining", "1 while the proxy drains."),
    _gauge("workers", "Configured worker processes."),
    _gauge("workers_alive", "Running worker processes."),
    count("worker_restarts", "Workers replaced."),
    count("tables", "Tables accepted."),
    _gauge("table_age_seconds", "Time since the table was accepted.", "seconds"),
    _gauge("table_resources", "Resources in the table."),
    _gauge(
        "table_refused",
        "Resources that a worker refused; the previous version of each stays in use.",
    ),
    _gauge("config_problems", "Present problems of the configuration and its ports."),
    _gauge("arena_used_bytes", "Bytes of the shared table memory in use.", "bytes"),
    _gauge("arena_retired_bytes", "Of these, bytes of old tables that workers still use.", "bytes"),
    count("spans_exported", "Traced requests and connections that collectors accepted."),
    count("spans_lost", "Traced requests and connections that no collector accepted."),
    count("last_good_failures", "Tables that could not be stored on disk."),
    _gauge(
        "last_good_age_seconds",
        "Time since the table on disk was written.",
        "seconds",
        "a table is stored on disk (`--state-dir`)",
    ),
    Family(
        f"{PREFIX}certificate_expiry_timestamp_seconds",
        "gauge",
        "Expiry time of a served certificate.",
        ("secret",),
        "timestamp",
        when="a certificate is served",
    ),
    Family(
        f"{PREFIX}ratelimit_store_troubles",
        "gauge",
        "Workers that report a problem of a counter store: `down` (it does not count), or a "
        "memory policy that can delete counters.",
        ("store", "trouble"),
        when="a store has a problem",
    ),
    Family(
        f"{PREFIX}jwks_fetch_failing",
        "gauge",
        "1 while the proxy cannot fetch the key set of a provider of a SecurityPolicy.",
        ("policy", "provider"),
        when="a provider has `remoteJWKS`",
    ),
    Family(
        f"{PREFIX}oidc_token_requests_total",
        "counter",
        "Requests to OIDC providers: `login`, `refresh` or `logout` (revocation), with the result `ok`, "
        "`rejected` (the provider refuses the code or token), `provider` (no usable answer) or `busy` (not sent).",
        ("policy", "kind", "result"),
        when="a policy with `oidc` requested tokens",
    ),
    _gauge(
        "metric_rows",
        "Rows of one worker for routes' rules, limits and policies; the rest overflows.",
    ),
    _gauge("metric_rows_used", "Of these, rows in use in the worker that uses most."),
)

_STREAM = (
    _gauge("xds_connected", "1 while the stream to the controller is open.", when=_CONTROLLER),
    _gauge(
        "xds_last_commit_timestamp_seconds",
        "Time of the last table from the controller; 0: none yet.",
        "timestamp",
        _CONTROLLER,
    ),
    _gauge(
        "xds_last_good_served",
        "1 while the table is from disk and not confirmed by a controller.",
        when=_CONTROLLER,
    ),
    count("xds_streams", "Streams opened.", when=_CONTROLLER),
    count("xds_failures", "Streams that ended or could not be opened.", when=_CONTROLLER),
    count("xds_commits", "Applied tables.", when=_CONTROLLER),
    count("xds_nacks", "Tables that the proxy refused in part.", when=_CONTROLLER),
    count("xds_mismatches", "Tables with a wrong digest.", when=_CONTROLLER),
    count("xds_received_bytes", "Bytes of resources.", unit="bytes", when=_CONTROLLER),
)

_CELLS = (
    count("connections", "Connections of clients accepted.", "connections_total"),
    now("connections_active", "Connections of clients open now."),
    count(
        "connections_refused",
        "Client connections closed immediately: too many connections, or no free descriptor.",
        "connections_refused",
    ),
    count("connections_tls", "Connections of clients with TLS.", "connections_tls_total"),
    now("handshakes_active", "TLS handshakes in progress."),
    Family(
        f"{PREFIX}handshakes_total",
        "counter",
        "Successful TLS handshakes with clients, by version and session resumption.",
        ("version", "resumed"),
        cell=HANDSHAKES_DONE,
    ),
    count("handshakes_failed", "Failed TLS handshakes.", "handshakes_failed"),
    Family(
        f"{PREFIX}handshake_failures_total",
        "counter",
        "Failed TLS handshakes, by cause.",
        ("reason",),
        cell=HANDSHAKES_FAILED,
    ),
    now("requests_active", "Requests in progress."),
    now("tunnels_active", "Open upgraded connections (WebSocket)."),
    count(
        "downstream_received_bytes",
        "Bytes from clients.",
        "downstream_bytes_received",
        "bytes",
    ),
    count("downstream_sent_bytes", "Bytes to clients.", "downstream_bytes_sent", "bytes"),
    count("upstream_received_bytes", "Bytes from backends.", "upstream_bytes_received", "bytes"),
    count("upstream_sent_bytes", "Bytes to backends.", "upstream_bytes_sent", "bytes"),
    count("upstream_connects", "Connections to backends opened.", "upstream_connects"),
    count(
        "upstream_connect_failures",
        "Connections to backends that could not be opened.",
        "upstream_connect_failures",
    ),
    now("upstream_connections_active", "Connections to backends open now."),
    count(
        "upstream_reuses", "Requests to backends on an already open connection.", "upstream_reuses"
    ),
    count(
        "upstream_protocol_errors",
        "Answers of backends that were not valid HTTP.",
        "upstream_protocol_errors",
    ),
    count(
        "pending_refused",
        "Requests refused because too many wait for the backend, or a circuitBreaker limit is "
        "reached.",
        "pending_refused",
    ),
    count(
        "pending_gave_way",
        "Of these, waiting requests that were dropped because their client address had most "
        "requests in the queue.",
        "pending_gave_way",
    ),
    count("retries", "Retries.", "retries"),
    count(
        "retries_over_budget",
        "Retries that were not made because the retry limit was reached.",
        "retries_over_budget",
    ),
    count(
        "endpoint_ejections",
        "Ejected endpoints.",
        "endpoint_ejections",
    ),
    *MIRRORS,
    *AUTHORISATION,
    count("no_listener", "Requests for a host that no listener of the port has.", "no_listener"),
    count("no_route", "Requests that match no rule (404).", "no_route"),
    count(
        "misdirected",
        "Requests with a host and a TLS server name of different listeners (421).",
        "misdirected",
    ),
    count(
        "parser_disagreements",
        "Messages refused because the two parsers read them differently.",
        "parser_disagreements",
    ),
    count("body_too_large", "Requests with too large a body (413).", "body_too_large"),
    count("body_malformed", "Requests with a malformed chunked body.", "body_malformed"),
    count("http10_requests", "Requests in HTTP/1.0.", "http10_requests"),
    count("path_refused", "Requests with a path that is refused (400).", "path_refused"),
    count(
        "proxy_protocol_refused",
        "Connections without a valid PROXY protocol header.",
        "proxy_protocol_refused",
    ),
    count(
        "head_timeouts", "Requests with a head that did not arrive in time (408).", "head_timeouts"
    ),
    Family(
        f"{PREFIX}heads_refused_total",
        "counter",
        "Refused request heads, by error.",
        ("reason",),
        cell=HEAD_REFUSED,
    ),
    count("http2_connections", "Client connections with HTTP/2.", "http2_connections"),
    count("http2_streams_reset", "Requests that HTTP/2 clients cancelled.", "http2_streams_reset"),
    count(
        "http2_streams_malformed",
        "HTTP/2 requests refused because they are malformed (RFC 9113 8.1.1) or have invalid "
        "pseudo-header fields.",
        "http2_streams_malformed",
    ),
    count(
        "http2_streams_refused",
        "HTTP/2 requests refused because of too many requests, or too much buffered data for "
        "slow clients.",
        "http2_streams_refused",
    ),
    Family(
        f"{PREFIX}http2_breaches_total",
        "counter",
        "Connections or answers ended because of abuse by HTTP/2 clients, by type.",
        ("reason",),
        cell=HTTP2_BREACH,
    ),
    count(
        "upstream_http2_connections",
        "Connections to backends with HTTP/2.",
        "upstream_http2_connections",
    ),
    count(
        "upstream_http2_unprocessed",
        "Requests that HTTP/2 backends did not process (REFUSED_STREAM, GOAWAY) or did not "
        "receive.",
        "upstream_http2_unprocessed",
    ),
    count(
        "upstream_http2_breaches",
        "HTTP/2 connections ended because of abuse by the backend.",
        "upstream_http2_breaches",
    ),
    count(
        "upstream_http2_retired",
        "HTTP/2 connections to backends without new requests because too many requests were "
        "cancelled on them.",
        "upstream_http2_retired",
    ),
    count("grpc_retries", "Calls of gRPC retried because of their status.", "grpc_retries"),
    count("grpc_web_requests", "Calls of gRPC-Web that were translated.", "grpc_web_requests"),
    count("access_log_lines", "Lines of the access log.", "access_log_lines"),
    count(
        "access_log_dropped",
        "Lines of the access log lost because its reader is too slow.",
        "access_log_dropped",
    ),
    count("spans_recorded", "Requests and connections that were traced.", "spans_recorded"),
    count("spans_dropped", "Of these, lost because the agent's queue is full.", "spans_dropped"),
    count(
        "bodies_gave_way",
        "Requests ended because their bodies arrived too slowly while others waited (408).",
        "bodies_gave_way",
    ),
    count(
        "bodies_not_gathered",
        "Request bodies that were not buffered completely, or not sent to an authorization "
        "service, because the memory for them was in use.",
        "bodies_not_gathered",
    ),
    count(
        "answers_gave_way",
        "Answers cut because their clients read too slowly while others waited for the connection to the backend.",
        "answers_gave_way",
    ),
    count(
        "connections_gave_way",
        "Connections closed to make room for other clients.",
        "connections_gave_way",
    ),
    count(
        "streams_gave_way",
        "Long-lived streams ended to make room for other clients.",
        "streams_gave_way",
    ),
    count("worker_turns", "Event loop iterations of workers with events.", "turns"),
    count("worker_events", "Events in these iterations.", "turn_events"),
    count(
        "worker_faults",
        "Connections ended because of a bug of edgefast; the log has the traceback.",
        "faults",
    ),
    count(
        "worker_busy_seconds", "Time that workers spent in these iterations.", "turns_us", "seconds"
    ),
    Family(
        f"{PREFIX}worker_longest_turn_seconds",
        "gauge",
        "Longest iteration in the last 15 to 30 seconds; all other connections of the worker "
        "waited for it.",
        unit="seconds",
        cell="turn_longest_us",
    ),
    count("applies", "Changes of the table that workers applied.", "applies"),
    count(
        "resources_refused", "Resources that workers refused, by all workers.", "resources_refused"
    ),
    now(
        "ratelimit_stores_down",
        "Workers that do not use a counter store because it does not count.",
        "limit_stores_down_active",
    ),
    count("ratelimit_batches", "Batches of counters sent to the store.", "limit_batches"),
    count(
        "ratelimit_store_seconds",
        "Time from batches to their answers.",
        "limit_store_us",
        "seconds",
    ),
    count(
        "ratelimit_store_errors",
        "Batches, or parts of them, that the store could not answer.",
        "limit_store_errors",
    ),
    count(
        "ratelimit_store_timeouts",
        "Batches, or parts of them, without an answer in time.",
        "limit_timeouts",
    ),
    count(
        "ratelimit_store_full",
        "Requests without room for their counter in shared memory.",
        "limit_store_full",
    ),
    *LAYER4,
)

_ROWS = (
    _row(
        "counter",
        "requests_total",
        "Requests by route, rule and status class; for gRPC the matching HTTP status.",
        (*_ROUTE, "code_class"),
    ),
    _row(
        "counter",
        "grpc_requests_total",
        "Calls of gRPC by route, rule and status; only routes with gRPC calls.",
        (*_ROUTE, "grpc_status"),
    ),
    _row("counter", "requests_aborted_total", "Requests that ended without an answer.", _ROUTE),
    _row("counter", "request_bytes_total", "Bytes of bodies of requests.", _ROUTE, "bytes"),
    _row("counter", "response_bytes_total", "Bytes of bodies of answers.", _ROUTE, "bytes"),
    _row("counter", "request_timeouts_total", "Requests that timed out.", _ROUTE),
    _row("counter", "request_retries_total", "Retries.", _ROUTE),
    _row(
        "counter",
        "upstream_seconds_total",
        "Time spent waiting for backends.",
        _ROUTE,
        "seconds",
    ),
    _row(
        "histogram",
        "request_duration_seconds",
        "Time from the first byte of a request to its end.",
        _ROUTE,
        "seconds",
    ),
    _row(
        "counter",
        "ratelimit_requests_total",
        "Requests that a limit counted, by result. error: the store failed.",
        (*_LIMIT, "result"),
    ),
    _row(
        "counter",
        "ratelimit_local_total",
        "Denied requests that were decided without the store.",
        _LIMIT,
    ),
    _row(
        "counter",
        "ratelimit_no_room_total",
        "Requests with result error because the limit has no room for their value in shared "
        "memory.",
        _LIMIT,
    ),
    _row(
        "counter",
        "ratelimit_wait_seconds_total",
        "Time that requests waited for the store.",
        _LIMIT,
        "seconds",
    ),
    DECIDED,
    BACKEND_TLS,
)

#: Only with a controller.
STREAM = by_name(_STREAM)
PROXY = by_name((*_AGENT, *_STREAM, *_CELLS, *_ROWS))
