"""XBackend: resolves a backendRef that names an XBackend, and its protocol.

In: a backendRef that names an XBackend. Out: the `ClusterRef` to send to, or None and a problem.
Source: Gateway API v1.7 XBackend spec.protocol, BackendObjectReference ("must not have port for
Backend reference"). v1.6 takes a port, which is then the XBackend's own. Routes of TLS and TCP may
name an XBackend; its protocol applies. No XBackend protocol carries datagrams.
Must never: use a protocol that the XBackend does not accept.
"""

from __future__ import annotations

from edgefast.api.gateway.xbackend import XBackend
from edgefast.api.model.reference import BackendObjectReference
from edgefast.diagnostics.problem import supported_text
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.report.report import Report

__all__ = ["ONLY_HTTP1", "resolve_xbackend"]

#: Protocols that are HTTP/1.1 and nothing else, and those that are HTTP/2.
ONLY_HTTP1 = ("HTTP11", "WSS")
_HTTP2 = ("HTTP2", "H2C", "GRPC")
#: By what is spoken (backend.py): the protocols that an XBackend may name.
_SPOKEN: dict[str, tuple[str, ...]] = {
    "http": ("HTTP", *_HTTP2, *ONLY_HTTP1),
    "h2": ("HTTP", *_HTTP2),
    "stream": ("TCP",),
    "raw": ("TCP",),
}


def resolve_xbackend(
    ref: BackendObjectReference,
    target: tuple[str, str],
    reader: Reader,
    report: Report,
    path: str,
    *,
    spoken: str,
) -> ClusterRef | None:
    """Resolve a reference that may be made; `path` is its field path."""
    backend = reader.x_backend(*target)
    named = f"XBackend {target[0]}/{target[1]}"
    if backend is None:
        missing = "XBackend" in reader.settings.missing
        hint = (
            "the API server has no kind XBackend: install its CRD (experimental)" if missing else ""
        )
        report.unresolve(f"{path}.name", "BackendNotFound", f"{named} not found", hint)
        return None
    protocol = backend.spec.protocol or ""
    word = "h2" if spoken == "h2" or (spoken == "http" and protocol in _HTTP2) else ""
    if spoken == "raw" and backend.spec.encrypted:
        word = "raw"
    cluster = ClusterRef("xbackend", *target, 0, "", word)
    # Before anything that is the reference's own: the status of the XBackend is of the cluster, whoever names it and how.
    broken = reader.cluster(cluster).broken
    port = backend.spec.port.value
    if ref.port is not None and ref.port != port:
        message = f"{ref.port} ({named} has its own port, {port or 'none'})"
        report.unresolve(f"{path}.port", "PortNotFound", message, "remove port")
        return None
    if broken:
        report.follow(report.unresolve(path, "InvalidBackendRef", broken))
        return None
    wrong = _check_spoken(backend, protocol, spoken)
    if wrong:
        report.unresolve(f"{path}.name", "UnsupportedProtocol", f"{named}: {wrong}")
        return None
    return cluster


def _check_spoken(backend: XBackend, protocol: str, spoken: str) -> str:
    """Return why nothing can be sent to it in what is spoken, "" when something can."""
    known = _SPOKEN.get(spoken)
    if known is None:
        return "an XBackend does not support UDP"
    if backend.spec.session_persistence is not None and spoken not in ("http", "h2"):
        return "it has sessionPersistence, which only HTTPRoutes and GRPCRoutes support"
    if protocol and protocol not in known:
        return f"protocol {supported_text(protocol, known)}"
    return ""
