"""Protocols: `spec.http2` of an EdgeProxy: HTTP/2 with clients and with backends.

In: the merged settings. Out: ir.Http2Settings, and a problem for each window or time outside of the
data plane's bounds. The nearest allowed value then applies.
Source: docs/reference/http2.md; defaults in `api/edge/edgeproxy_defaults.py`.
Must never: allow a window larger than what one connection may hold.
"""

from __future__ import annotations

from typing import get_args

from edgefast import ir
from edgefast.api.edge.edgeproxy import EdgeProxySpec
from edgefast.api.edge.edgeproxy_defaults import DEFAULT_SPEC
from edgefast.api.edge.edgeproxy_protocols import (
    MAX_GRPC_ATTEMPTS,
    GRPCCode,
    ProxyGRPC,
    ProxyGRPCRetry,
    ProxyHTTP2,
    ProxyHTTP2Upstream,
    ProxyStream,
)
from edgefast.api.model.units import parse_duration, parse_size
from edgefast.translate.report.report import Report

__all__ = ["GRPC_CODES", "check_http2", "translate_grpc", "translate_http2"]


#: Below a frame a window is worth nothing; above, a peer that nobody reads holds too much.
STREAM_WINDOW = (16 * 1024, 2 * 1024 * 1024)
#: A connection starts with 64 KiB less one, which no setting takes back (RFC 9113 6.9.2).
CONNECTION_WINDOW = (64 * 1024, 64 * 1024 * 1024)
#: ms; servers end connections on which they are asked too often.
LEAST_PING = 1000


def check_http2(http2: ProxyHTTP2, report: Report) -> None:
    """Report windows that are too small or too large, and backends that are asked too often."""
    _check_windows("", http2, report)
    if http2.upstream is not None:
        _check_windows("upstream.", http2.upstream, report)
        ping = http2.upstream.keepalive_ping
        if ping is not None and _ping(ping) != parse_duration(ping):
            message = f'"{ping}" is less than {LEAST_PING // 1000}s, which is used instead'
            report.refuse("spec.http2.upstream.keepalivePing", "Invalid", message)


def _check_windows(where: str, http2: ProxyHTTP2 | ProxyHTTP2Upstream, report: Report) -> None:
    windows = (
        ("initialStreamWindowSize", http2.initial_stream_window_size, STREAM_WINDOW),
        ("initialConnectionWindowSize", http2.initial_connection_window_size, CONNECTION_WINDOW),
    )
    for field, size, bounds in windows:
        if size is None:
            continue
        used = _within(size, bounds)
        if used != parse_size(size):
            less = "more" if used == bounds[1] else "less"
            message = f'"{size}" is {less} than {used // 1024}KiB, which is used instead'
            report.refuse(f"spec.http2.{where}{field}", "Invalid", message)


def translate_http2(http2: ProxyHTTP2) -> ir.Http2Settings:
    """Translate merged settings: no field is absent then."""
    upstream = http2.upstream
    assert upstream
    return ir.Http2Settings(
        enabled=bool(http2.enabled),
        max_concurrent_streams=http2.max_concurrent_streams or 1,
        initial_stream_window=_within(http2.initial_stream_window_size or 0, STREAM_WINDOW),
        initial_connection_window=_within(
            http2.initial_connection_window_size or 0, CONNECTION_WINDOW
        ),
        max_requests_per_connection=http2.max_requests_per_connection or 0,
        keepalive_ping=parse_duration(http2.keepalive_ping or "0s"),
        upstream=ir.Http2Upstream(
            max_concurrent_streams=upstream.max_concurrent_streams or 1,
            initial_stream_window=_within(upstream.initial_stream_window_size or 0, STREAM_WINDOW),
            initial_connection_window=_within(
                upstream.initial_connection_window_size or 0, CONNECTION_WINDOW
            ),
            keepalive_ping=_ping(upstream.keepalive_ping or "0s"),
        ),
    )


def _within(size: int | str, bounds: tuple[int, int]) -> int:
    return min(max(parse_size(size), bounds[0]), bounds[1])


def _ping(text: str) -> int:
    time = parse_duration(text)
    return max(time, LEAST_PING) if time else 0


# --- edgeProxy `spec.grpc`: retries by status, gRPC-Web ---


#: In the order of their numbers, from 1 on.
GRPC_CODES: tuple[str, ...] = get_args(GRPCCode)


def translate_grpc(grpc: ProxyGRPC) -> ir.GrpcSettings:
    """Translate merged settings: of the fields only `codes` may be absent then."""
    retry = grpc.retry or ProxyGRPCRetry()
    named = {GRPC_CODES.index(one) + 1 for one in retry.codes or () if one in GRPC_CODES}
    return ir.GrpcSettings(
        web=bool(grpc.web),
        retry_codes=tuple(sorted(named)),
        retry_attempts=min(retry.attempts or 0, MAX_GRPC_ATTEMPTS),
        retry_backoff=parse_duration(retry.backoff or "0s"),
    )


# --- stream ---


#: Words of proxyProtocol, the one that says more first: it is used for a word that only a newer CRD knows.
PROXY_PROTOCOLS: tuple[ir.ProxyProtocol, ...] = ("v2", "v1")


#: Times that have to end.
_BOUNDED = ("connect_timeout", "hello_timeout", "session_timeout")


def check_stream(stream: ProxyStream, report: Report) -> None:
    """Report times that would never end: the defaults are used instead."""
    default = DEFAULT_SPEC.stream
    for field in _BOUNDED:
        value = getattr(stream, field)
        if value is not None and not parse_duration(value):
            name = field.replace("_timeout", "Timeout")
            message = (
                f'"{value}" (expected more than 0s), {getattr(default, field)} is used instead'
            )
            report.refuse(f"spec.stream.{name}", "Invalid", message)


def translate_stream(spec: EdgeProxySpec) -> ir.StreamSettings:
    """Translate a merged spec, of which no field of `protocols` is absent."""
    stream, default = spec.stream, ir.StreamSettings()
    assert stream is not None
    return ir.StreamSettings(
        connect_timeout=parse_duration(stream.connect_timeout or "0s") or default.connect_timeout,
        idle_timeout=parse_duration(stream.idle_timeout or "0s"),
        hello_timeout=parse_duration(stream.hello_timeout or "0s") or default.hello_timeout,
        session_timeout=parse_duration(stream.session_timeout or "0s") or default.session_timeout,
        max_connections=stream.max_connections or 0,
        max_sessions=stream.max_sessions or 0,
        address_connections=stream.address_connections or 0,
        address_rate=stream.address_rate or 0,
    )


def proxy_protocol_of(word: str | None) -> ir.ProxyProtocol:
    """Return the version, "" when none is asked for."""
    if not word:
        return ""
    return next((one for one in PROXY_PROTOCOLS if one == word), PROXY_PROTOCOLS[0])
