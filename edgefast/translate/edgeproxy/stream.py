"""Stream: EdgeProxy spec.stream and spec.proxyProtocol -> what the data plane needs of them.

In: a merged spec. Out: ir.StreamSettings, and the version of the PROXY protocol that backends are told clients with.
Must never: take a word for a version that it is not.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.resources.edge.edgeproxy import EdgeProxySpec
from edgefast.resources.edge.edgeproxy_defaults import DEFAULT_SPEC
from edgefast.resources.edge.edgeproxy_stream import ProxyStream
from edgefast.resources.model.duration import parse_duration
from edgefast.translate.report.report import Report

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
            said = f'"{value}" (expected more than 0s), {getattr(default, field)} is used instead'
            report.refuse(f"spec.stream.{name}", "Invalid", said)


def translate_stream(spec: EdgeProxySpec) -> ir.StreamSettings:
    """Translate a merged spec, of which no field of `stream` is absent."""
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
