"""Dashboard "traffic": requests, errors, latency, connections and backends of proxies.

In: nothing. Out: `TRAFFIC`. Names are checked against the catalogue by tests/monitoring.
"""

from __future__ import annotations

from edgefast.monitoring.panel import Panel, Row

__all__ = ["TRAFFIC"]

_RATE = "[$__rate_interval]"
_REQUESTS = f"rate(edgefast_requests_total{{$$}}{_RATE})"
_ERRORS = f'rate(edgefast_requests_total{{$$,code_class="5xx"}}{_RATE})'
_BUCKETS = f"rate(edgefast_request_duration_seconds_bucket{{$$}}{_RATE})"


def _quantile(share: float, by: str = "le") -> str:
    return f"histogram_quantile({share}, sum by ({by}) ({_BUCKETS}))"


def _sum(name: str) -> str:
    return f"sum(rate({name}{{$$}}{_RATE}))"


def _by_reason(name: str) -> str:
    return f"sum by (reason) (rate({name}{{$$}}{_RATE}))"


TRAFFIC = (
    Row(
        "All requests",
        (
            Panel("Requests", ((f"sum({_REQUESTS})", "all"),), "reqps", "stat", width=6),
            Panel(
                "Share of 5xx",
                ((f"sum({_ERRORS}) / (sum({_REQUESTS}) > 0)", "5xx"),),
                "percentunit",
                "stat",
                width=6,
            ),
            Panel("99th percentile", ((_quantile(0.99), "p99"),), "s", "stat", width=6),
            Panel(
                "Ready proxies",
                (("sum(edgefast_ready{$$})", "ready"), ("count(edgefast_ready{$$})", "all")),
                "short",
                "stat",
                width=6,
            ),
            Panel(
                "Requests by class of the status",
                ((f"sum by (code_class) ({_REQUESTS})", "{{code_class}}"),),
                "reqps",
            ),
            Panel(
                "gRPC by status",
                (
                    (
                        f"sum by (grpc_status) (rate(edgefast_grpc_requests_total{{$$}}{_RATE}))",
                        "{{grpc_status}}",
                    ),
                    (_sum("edgefast_grpc_web_requests_total"), "of them gRPC-Web"),
                ),
                "reqps",
            ),
            Panel(
                "Latency",
                tuple((_quantile(one), f"p{one * 100:g}") for one in (0.5, 0.9, 0.99)),
                "s",
                text="From the first byte of a request to the end of its answer.",
            ),
            Panel(
                "Requests that no rule answers",
                tuple(
                    (_sum(f"edgefast_{name}_total"), text)
                    for name, text in (
                        ("no_route", "no rule (404)"),
                        ("no_listener", "no listener"),
                        ("misdirected", "misdirected (421)"),
                        ("path_refused", "path refused (400)"),
                        ("body_too_large", "body too large (413)"),
                        ("head_timeouts", "head too slow (408)"),
                        ("bodies_gave_way", "body too slow for others (408)"),
                        ("answers_gave_way", "answer read too slowly for others"),
                        ("streams_gave_way", "long-lived stream ended for other clients"),
                        ("heads_refused", "head refused"),
                    )
                ),
                "reqps",
            ),
        ),
    ),
    Row(
        "Routes",
        (
            Panel(
                "Requests by route",
                ((f"topk(10, sum by (route) ({_REQUESTS}))", "{{route}}"),),
                "reqps",
                text="The ten busiest. `-` are requests that match no rule, `overflow` are "
                "requests without a row of their own.",
            ),
            Panel(
                "Share of 5xx by route",
                (
                    (
                        f"topk(10, sum by (route) ({_ERRORS}) / (sum by (route) ({_REQUESTS}) > 0))",
                        "{{route}}",
                    ),
                ),
                "percentunit",
            ),
            Panel(
                "99th percentile by route",
                ((f"topk(10, {_quantile(0.99, 'le, route')})", "{{route}}"),),
                "s",
            ),
            Panel(
                "Without an answer, timeouts, retries",
                (
                    (_sum("edgefast_requests_aborted_total"), "without an answer"),
                    (_sum("edgefast_request_timeouts_total"), "timeouts"),
                    (_sum("edgefast_request_retries_total"), "retries"),
                    (_sum("edgefast_retries_over_budget_total"), "retries over budget"),
                    (_sum("edgefast_grpc_retries_total"), "retries for a status of gRPC"),
                ),
                "reqps",
            ),
            Panel(
                "Refused by policies",
                (
                    (
                        "topk(10, sum by (policy, unit, verdict) "
                        f'(rate(edgefast_policy_requests_total{{$$,verdict=~"denied|error"}}{_RATE})))',
                        "{{policy}} {{unit}}: {{verdict}}",
                    ),
                ),
                "reqps",
                text="error: the unit is invalid, or its service failed.",
            ),
            Panel(
                "Requests to OIDC providers",
                (
                    (
                        "topk(10, sum by (policy, kind, result) "
                        f"(rate(edgefast_oidc_token_requests_total{{$$}}{_RATE})))",
                        "{{policy}} {{kind}}: {{result}}",
                    ),
                ),
                "reqps",
                text="busy: too many requests wait. provider: no usable answer.",
            ),
            Panel(
                "Bytes by route",
                (
                    (
                        f"topk(10, sum by (route) (rate(edgefast_response_bytes_total{{$$}}{_RATE})))",
                        "answers {{route}}",
                    ),
                    (
                        f"topk(10, sum by (route) (rate(edgefast_request_bytes_total{{$$}}{_RATE})))",
                        "requests {{route}}",
                    ),
                ),
                "Bps",
            ),
            Panel(
                "Share of the time spent in backends",
                (
                    (
                        f"sum by (route) (rate(edgefast_upstream_seconds_total{{$$}}{_RATE})) / "
                        f"(sum by (route) (rate(edgefast_request_duration_seconds_sum{{$$}}{_RATE})) > 0)",
                        "{{route}}",
                    ),
                ),
                "percentunit",
            ),
        ),
    ),
    Row(
        "Clients and backends",
        (
            Panel(
                "Connections of clients",
                (
                    ("sum(edgefast_connections_active{$$})", "open"),
                    ("sum(edgefast_requests_active{$$})", "requests"),
                    ("sum(edgefast_tunnels_active{$$})", "upgraded"),
                    ("sum(edgefast_handshakes_active{$$})", "handshakes"),
                ),
            ),
            Panel(
                "Workers",
                (
                    (
                        _sum("edgefast_worker_busy_seconds_total")
                        + " / sum(edgefast_workers_alive{$$})",
                        "busy",
                    ),
                ),
                "percentunit",
            ),
            Panel(
                "Longest event loop iteration of a worker",
                (("max(edgefast_worker_longest_turn_seconds{$$})", "longest"),),
                "s",
            ),
            Panel(
                "Events in an event loop iteration of a worker",
                (
                    (
                        _sum("edgefast_worker_events_total")
                        + " / "
                        + _sum("edgefast_worker_turns_total"),
                        "events",
                    ),
                ),
                text="About one with low load; an iteration handles at most 256.",
            ),
            Panel(
                "New connections of clients",
                (
                    (_sum("edgefast_connections_total"), "accepted"),
                    (_sum("edgefast_connections_tls_total"), "of these with TLS"),
                    (_sum("edgefast_http2_connections_total"), "of these with HTTP/2"),
                    (_sum("edgefast_connections_refused_total"), "refused"),
                    (_sum("edgefast_connections_gave_way_total"), "closed for other clients"),
                    (_sum("edgefast_handshakes_failed_total"), "handshakes failed"),
                    (_sum("edgefast_proxy_protocol_refused_total"), "without PROXY protocol"),
                ),
                "cps",
            ),
            Panel(
                "Failed handshakes and HTTP/2 errors",
                (
                    (_by_reason("edgefast_handshake_failures_total"), "handshake: {{reason}}"),
                    (_by_reason("edgefast_http2_breaches_total"), "HTTP/2 ended: {{reason}}"),
                    (_sum("edgefast_http2_streams_malformed_total"), "HTTP/2 malformed"),
                    (_sum("edgefast_http2_streams_refused_total"), "HTTP/2 refused"),
                    (_sum("edgefast_http2_streams_reset_total"), "HTTP/2 cancelled"),
                ),
                "cps",
            ),
            Panel(
                "TLS handshakes",
                (
                    (
                        'sum by (version) (rate(edgefast_handshakes_total{$$,resumed="false"}[$__rate_interval]))',
                        "{{version}} full",
                    ),
                    (
                        'sum by (version) (rate(edgefast_handshakes_total{$$,resumed="true"}[$__rate_interval]))',
                        "{{version}} resumed",
                    ),
                ),
                "cps",
            ),
            Panel(
                "Bytes",
                (
                    (_sum("edgefast_downstream_received_bytes_total"), "from clients"),
                    (_sum("edgefast_downstream_sent_bytes_total"), "to clients"),
                    (_sum("edgefast_upstream_received_bytes_total"), "from backends"),
                    (_sum("edgefast_upstream_sent_bytes_total"), "to backends"),
                ),
                "Bps",
            ),
            Panel(
                "Connections to backends",
                (
                    ("sum(edgefast_upstream_connections_active{$$})", "open"),
                    (_sum("edgefast_upstream_connects_total"), "opened /s"),
                    (_sum("edgefast_upstream_reuses_total"), "reused /s"),
                    (
                        _sum("edgefast_upstream_http2_connections_total"),
                        "of the new with HTTP/2 /s",
                    ),
                ),
            ),
            Panel(
                "Errors of backends",
                (
                    (_sum("edgefast_upstream_connect_failures_total"), "connecting failed"),
                    (_sum("edgefast_upstream_tls_failures_total"), "TLS handshakes failed"),
                    (_sum("edgefast_upstream_http2_unprocessed_total"), "HTTP/2: not processed"),
                    (_sum("edgefast_upstream_http2_breaches_total"), "HTTP/2: abuse"),
                    (_sum("edgefast_upstream_http2_retired_total"), "HTTP/2: too many cancelled"),
                    (_sum("edgefast_upstream_protocol_errors_total"), "invalid answers"),
                    (_sum("edgefast_endpoint_ejections_total"), "endpoints ejected"),
                    (_sum("edgefast_health_checks_ill_total"), "unhealthy by checks"),
                    (_sum("edgefast_health_checks_failed_total"), "failed checks"),
                    (_sum("edgefast_pending_refused_total"), "too many wait"),
                ),
                "ops",
            ),
            Panel(
                "Processes",
                (
                    ("sum(edgefast_workers_alive{$$})", "workers"),
                    ("sum(increase(edgefast_worker_restarts_total{$$}[1h]))", "replaced in 1 h"),
                    (
                        "sum(increase(edgefast_access_log_dropped_total{$$}[1h]))",
                        "log lines lost in 1 h",
                    ),
                ),
            ),
        ),
    ),
    Row(
        "Layer 4",
        (
            Panel(
                "Forwarded connections and sessions",
                (
                    ("sum(edgefast_stream_connections_active{$$})", "connections"),
                    ("sum(edgefast_stream_sessions_active{$$})", "sessions of UDP"),
                    (_sum("edgefast_stream_connections_total"), "new connections /s"),
                    (_sum("edgefast_stream_sessions_total"), "new sessions /s"),
                ),
            ),
            Panel(
                "Not served",
                ((_by_reason("edgefast_stream_refused_total"), "{{reason}}"),),
                "cps",
            ),
            Panel(
                "Forwarded bytes",
                (
                    (_sum("edgefast_stream_received_bytes_total"), "from clients"),
                    (_sum("edgefast_stream_sent_bytes_total"), "to clients"),
                ),
                "Bps",
            ),
            Panel(
                "Datagrams",
                (
                    (_sum("edgefast_stream_datagrams_received_total"), "from clients"),
                    (_sum("edgefast_stream_datagrams_sent_total"), "to clients"),
                    (_sum("edgefast_stream_datagrams_dropped_total"), "dropped"),
                ),
                "pps",
            ),
        ),
    ),
    Row(
        "Copies, log lines, traces",
        (
            Panel(
                "Authorization services",
                (
                    (_sum("edgefast_auth_calls_total"), "called"),
                    (_sum("edgefast_auth_cached_total"), "cached"),
                    (_sum("edgefast_auth_denied_total"), "denied"),
                    (_sum("edgefast_auth_errors_total"), "failed"),
                ),
                "reqps",
                text="cached: decided by a cached answer. failed: denied, or passed if failOpen "
                "is set.",
            ),
            Panel(
                "Services for error pages",
                (
                    (_sum("edgefast_error_calls_total"), "called"),
                    (_sum("edgefast_error_calls_failed_total"), "failed"),
                ),
                "reqps",
                text="failed: clients got the plain error.",
            ),
            Panel(
                "Encoded answers",
                (
                    (_sum("edgefast_compressed_in_bytes_total"), "from backends"),
                    (_sum("edgefast_compressed_out_bytes_total"), "to clients"),
                ),
                "Bps",
            ),
            Panel(
                "Encoded",
                ((_sum("edgefast_compressed_total"), "answers"),),
                "reqps",
            ),
            Panel(
                "Injected faults",
                (
                    (_sum("edgefast_faults_delayed_total"), "waited"),
                    (_sum("edgefast_faults_aborted_total"), "refused"),
                ),
                "reqps",
            ),
            Panel(
                "Mirrored requests",
                (
                    (_sum("edgefast_mirrored_total"), "sent"),
                    (_sum("edgefast_mirrors_dropped_total"), "not sent"),
                    (_by_reason("edgefast_mirror_drops_total"), "not sent: {{reason}}"),
                ),
                "reqps",
            ),
            Panel(
                "Lines of the access log",
                (
                    (_sum("edgefast_access_log_lines_total"), "written"),
                    (_sum("edgefast_access_log_dropped_total"), "lost"),
                ),
                "ops",
            ),
            Panel(
                "Traced requests",
                (
                    (_sum("edgefast_spans_recorded_total"), "traced"),
                    (_sum("edgefast_spans_exported_total"), "accepted by collectors"),
                    (_sum("edgefast_spans_dropped_total"), "lost in workers"),
                    (_sum("edgefast_spans_lost_total"), "accepted by no collector"),
                ),
                "reqps",
                text="A traced request has one span, and one for each attempt (at most 16). "
                "Lost in workers: the agent is too slow. Accepted by no collector: the "
                "collector is down or slow; the log has its error.",
            ),
        ),
    ),
)
