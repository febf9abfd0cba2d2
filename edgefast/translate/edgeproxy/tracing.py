"""Tracing: spec.tracing of an EdgeProxy -> ir.Tracing.

In: the merged spec, and whether this deployment can export spans (`Settings.tracing`). Out:
ir.Tracing; None: no spans.
Must never: trace without an exporter; backends would receive the ids of spans that do not exist.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from edgefast import ir
from edgefast.api.edge.edgeproxy import EdgeProxySpec, ProxyTracing
from edgefast.netaddr import read_address, why_reserved
from edgefast.translate.report.report import Report

#: Ports of OTLP by its specification: which one is asked says which protocol is meant.
_GRPC_PORT = 4317
_HTTP_PORT = 4318
_HINT = "the administrator allows ranges with EdgeGateway backends.allowedCIDRs"
PROTOCOLS: tuple[str, ...] = ("grpc", "http")


def check_tracing(
    tracing: ProxyTracing, report: Report, *, available: bool, allowed: tuple[str, ...] = ()
) -> None:
    """Report what is not served of it. `allowed`: reserved ranges that the administrator allows."""
    if not available:
        message = "tracing needs the package edgefast[tracing], which is not installed"
        report.refuse("spec.tracing", "NotSupported", message, "pip install 'edgefast[tracing]'")
    if what := _why_refused(tracing, allowed):
        message = f"{what}; no spans are exported"
        report.refuse("spec.tracing.endpoint", "Forbidden", message, _HINT)
    for name in tracing.attributes or {}:
        if not name.strip() or not name.isprintable():
            report.refuse("spec.tracing.attributes", "Invalid", "an attribute must have a name")


def _why_refused(tracing: ProxyTracing, allowed: tuple[str, ...]) -> str:
    """Return why the endpoint is refused. The proxy checks the addresses of names at each resolution."""
    host = urlsplit(tracing.endpoint).hostname or ""
    if read_address(host) is None:
        return ""
    what = why_reserved(host, allowed)
    return f"{host} is never a collector ({what})" if what else ""


def translate_tracing(
    spec: EdgeProxySpec, *, available: bool, allowed: tuple[str, ...] = ()
) -> ir.Tracing | None:
    """Translate the tracing of a merged spec."""
    tracing = spec.tracing
    if tracing is None or not available or _why_refused(tracing, allowed):
        return None
    endpoint = tracing.endpoint.rstrip("/")
    host, colon, port = endpoint.rpartition(":")
    number = int(port) if colon and port.isdigit() else 0
    protocol = tracing.protocol
    if protocol not in PROTOCOLS:  # absent, or a word that only a newer CRD knows
        protocol = "grpc" if number == _GRPC_PORT else "http"
    if not number:
        host, number = endpoint, _GRPC_PORT if protocol == "grpc" else _HTTP_PORT
    return ir.Tracing(
        endpoint=f"{host}:{number}",
        protocol=protocol,
        sampling=(100 if tracing.sampling is None else tracing.sampling) / 100,
        attributes=tuple(
            (name, text)
            for name, text in sorted((tracing.attributes or {}).items())
            if name.strip() and name.isprintable()
        ),
        exemplars=bool(tracing.exemplars),
        connections=bool(tracing.connections),
        allowed=allowed,
    )
