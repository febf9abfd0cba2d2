"""EdgeProxy `spec.http2`: HTTP/2 with clients and with backends.

In: the merged settings. Out: ir.Http2Settings, and a problem for each window or time outside of what the data plane serves: then
the nearest one is used.
Source: docs/reference/http2.md; defaults in `resources/edge/edgeproxy_defaults.py`.
Must never: let a window be larger than what one connection may hold.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.resources.edge.edgeproxy_http2 import ProxyHTTP2, ProxyHTTP2Upstream
from edgefast.resources.model.duration import parse_duration
from edgefast.resources.model.size import parse_size
from edgefast.translate.report.report import Report

__all__ = ["check_http2", "translate_http2"]

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
            said = f'"{ping}" is less than {LEAST_PING // 1000}s, which is used instead'
            report.refuse("spec.http2.upstream.keepalivePing", "Invalid", said)


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
            said = f'"{size}" is {less} than {used // 1024}KiB, which is used instead'
            report.refuse(f"spec.http2.{where}{field}", "Invalid", said)


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
