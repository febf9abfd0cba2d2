"""Backend: resolves a backendRef to a cluster reference, or to a problem.

In: a backendRef of a rule, a mirror or an authorization service. Out: the `ClusterRef` to send to,
or None and a problem. The reason of the problem is one of the Gateway API (InvalidKind,
BackendNotFound, RefNotPermitted, UnsupportedProtocol). For cases that the Gateway API does not name
it is one of edgefast: PortNotFound, PortNotSpecified, UnsupportedValue, InvalidBackendRef.
Source: Gateway API HTTPBackendRef, KEP-3726 for appProtocol.
Must never: use a protocol that the port does not accept.
"""

from __future__ import annotations

from typing import Literal

from edgefast.api.core.service import Service, ServicePort
from edgefast.api.edge.backend import Backend
from edgefast.api.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP
from edgefast.api.model.origin import is_made
from edgefast.api.model.reference import BackendObjectReference
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.translate.backend.xbackend import resolve_xbackend
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.deps.policy_summary import policy_for
from edgefast.translate.deps.referencegrant import core_hint, refusal_text
from edgefast.translate.report.report import Report

KINDS = ("Service", "Backend", "XBackend")
#: Kinds that have to be allowed in a cluster, and by what.
_ALLOWED = {"Backend": "enableBackend", "XBackend": "enableXBackend"}
#: What is spoken to a backend: HTTP as its port wishes, HTTP/2 alone, a stream that may be put into TLS, one that the client has
#: put into TLS, datagrams.
Spoken = Literal["http", "h2", "stream", "raw", "udp"]
SPOKEN_OF: dict[str, Spoken] = {
    "HTTPRoute": "http",
    "GRPCRoute": "h2",
    "TLSRoute": "stream",
    "TCPRoute": "stream",
    "UDPRoute": "udp",
    "SecurityPolicy": "http",
    "BackendTrafficPolicy": "http",
    "Gateway": "http",
    "ListenerSet": "http",
}
#: appProtocol values that mean HTTP/1.1, and those that mean it inside TLS.
PLAIN = ("http", "kubernetes.io/ws")
ENCRYPTED = ("https", "kubernetes.io/wss")
#: The one that means HTTP/2, and what a port may say to whom only HTTP/2 is spoken.
H2C = "kubernetes.io/h2c"
PLAIN_H2 = ("http", H2C, "grpc")
ENCRYPTED_H2 = ("https",)


def resolve_backend(
    ref: BackendObjectReference,
    namespace: str,
    certificate: str,
    reader: Reader,
    report: Report,
    path: str,
    *,
    kind: str = "HTTPRoute",
    passes: bool = False,
    http2: bool = False,
) -> ClusterRef | None:
    """Resolve a reference of a route of a kind in `namespace`; `path` is its field path.

    To a GRPCRoute's nothing but HTTP/2 is spoken, whatever the port says it can do besides, nor where `http2`
    is asked for. `passes`: TLS of clients is passed on.
    """
    route, spoken = kind, SPOKEN_OF[kind]
    if passes:
        spoken = "raw"
    elif http2:
        spoken = "h2"
    kind = _kind_of(ref)
    if not kind:
        named = f"{ref.group}/{ref.kind}" if ref.group else ref.kind
        report.unresolve(
            f"{path}.kind",
            "InvalidKind",
            supported_text(named, [one for one in KINDS if _is_allowed(one, reader, made=False)]),
            core_hint(ref.group) or _guess_kind(ref),
        )
        return None
    made = is_made(ref.name) and is_made(report.object.name)
    if kind in _ALLOWED and not _is_allowed(kind, reader, made=made):
        message = f"{kind} is not enabled (extensionApis.{_ALLOWED[kind]})"
        report.unresolve(f"{path}.kind", "InvalidKind", message)
        return None
    target = (ref.namespace or namespace, ref.name)
    if not reader.permits(route, namespace, ref.group, kind, target):
        message = refusal_text(route, namespace, kind, *target)
        report.unresolve(path, "RefNotPermitted", message)
        return None
    if kind == "Service":
        return _resolve_service(ref, target, certificate, reader, report, path, spoken=spoken)
    if kind == "XBackend":
        return resolve_xbackend(ref, target, reader, report, path, spoken=spoken)
    return _resolve_own(ref, target, certificate, reader, report, path, spoken=spoken)


def _is_allowed(kind: str, reader: Reader, *, made: bool) -> bool:
    if kind == "XBackend":
        return reader.settings.enable_x_backend
    # A Backend that was made, for a route that was, is a Service of an Ingress, such as one of type ExternalName.
    return kind != "Backend" or reader.settings.enable_backend or made


def _guess_kind(ref: BackendObjectReference) -> str:
    """Return the hint at the kind that is meant; a kind of another project's group is no slip of ours."""
    if ref.kind == "XBackend":
        return f"its group is {EXPERIMENTAL_GROUP}"
    known = ("", EDGE_GROUP, EXPERIMENTAL_GROUP)
    return did_you_mean(ref.kind, KINDS) if ref.group in known else ""


def _kind_of(ref: BackendObjectReference) -> str:
    if (ref.group, ref.kind) == ("", "Service"):
        return "Service"
    if (ref.group, ref.kind) == (EXPERIMENTAL_GROUP, "XBackend"):
        return "XBackend"
    return "Backend" if (ref.group, ref.kind) == (EDGE_GROUP, "Backend") else ""


def _resolve_service(
    ref: BackendObjectReference,
    target: tuple[str, str],
    certificate: str,
    reader: Reader,
    report: Report,
    path: str,
    *,
    spoken: Spoken,
) -> ClusterRef | None:
    service = reader.service(*target)
    named = f"Service {target[0]}/{target[1]}"
    if service is None:
        report.unresolve(f"{path}.name", "BackendNotFound", f"{named} not found")
        return None
    if service.spec.type == "ExternalName":
        message = f"{named} is of type ExternalName, which is not allowed as a backend"
        report.unresolve(f"{path}.name", "UnsupportedValue", message, "use a Backend with fqdn")
        return None
    if ref.port is None:
        message = f"{named} needs a port ({_ports(service)})"
        report.unresolve(f"{path}.port", "PortNotSpecified", message)
        return None
    port = find_port(service, ref.port, "UDP" if spoken == "udp" else "TCP")
    if port is None:
        message = f"{ref.port} ({named} has {_ports(service)})"
        report.unresolve(f"{path}.port", "PortNotFound", message)
        return None
    policy = None
    if spoken != "udp":
        policy = policy_for(reader.policies(*target), port.name)
    if policy is not None and policy.broken and spoken != "raw":
        report.follow(report.unresolve(path, "InvalidBackendRef", policy.broken))
        return None
    wrong = _check_protocol(port, encrypted=policy is not None, spoken=spoken)
    if wrong:
        report.unresolve(
            f"{path}.port", "UnsupportedProtocol", f"{named} port {port.port}: {wrong}"
        )
        return None
    own_tls = certificate if policy and spoken != "raw" else ""
    if spoken in ("http", "h2"):
        http2 = spoken == "h2" or (port.app_protocol or "").lower() == H2C
        return ClusterRef("service", *target, ref.port, own_tls, "h2" if http2 else "")
    if spoken == "raw" and policy is None:
        return ClusterRef("service", *target, ref.port, "")
    return ClusterRef("service", *target, ref.port, own_tls, "" if spoken == "stream" else spoken)


def transport_of(spoken: str) -> str:
    """Return the protocol of ports at which something is spoken."""
    return "UDP" if spoken == "udp" else "TCP"


def find_port(service: Service, number: int, transport: str = "TCP") -> ServicePort | None:
    """Return the port of that number; of several, which differ in the protocol, the one of the transport."""
    found = [one for one in service.spec.ports if one.port == number]
    return next((one for one in found if one.protocol == transport), found[0] if found else None)


def _check_protocol(port: ServicePort, *, encrypted: bool, spoken: Spoken) -> str:
    if port.protocol != ("UDP" if spoken == "udp" else "TCP"):
        return f"protocol {port.protocol} (supported: {transport_of(spoken)})"
    if spoken in ("stream", "raw", "udp"):
        return ""
    h2 = spoken == "h2"
    wanted = (port.app_protocol or "http").lower()
    plain = PLAIN_H2 if h2 else (*PLAIN, H2C)
    inside = ENCRYPTED_H2 if h2 else ENCRYPTED
    if wanted in plain:
        return ""
    if wanted in inside:
        return "" if encrypted else f'appProtocol "{wanted}" needs a BackendTLSPolicy'
    known = (*plain, *inside) if encrypted else plain
    return f"appProtocol {supported_text(port.app_protocol or '', known)}"


def _resolve_own(
    ref: BackendObjectReference,
    target: tuple[str, str],
    certificate: str,
    reader: Reader,
    report: Report,
    path: str,
    *,
    spoken: Spoken,
) -> ClusterRef | None:
    backend = reader.backend(*target)
    named = f"Backend {target[0]}/{target[1]}"
    if backend is None:
        report.unresolve(f"{path}.name", "BackendNotFound", f"{named} not found")
        return None
    if ref.port is not None and ref.port not in _ports_of(backend):
        report.unresolve(
            f"{path}.port", "PortNotFound", f"no endpoint of {named} has port {ref.port}"
        )
        return None
    tls = backend.spec.tls
    shown = certificate if tls and tls.client_certificate_ref is None else ""
    protocol: str = spoken if spoken in ("h2", "udp") else ""
    if spoken == "http" and backend.spec.protocol == "H2C":
        protocol = "h2"
    if spoken == "raw":
        shown, protocol = "", "raw" if tls else ""
    cluster = ClusterRef("backend", *target, ref.port or 0, shown, protocol)
    wrong = reader.cluster(cluster).broken
    if wrong:
        report.follow(report.unresolve(path, "InvalidBackendRef", wrong))
        return None
    if message := _check_own(backend, named, spoken):
        report.unresolve(f"{path}.name", "UnsupportedValue", message)
        return None
    return cluster


def _check_own(backend: Backend, named: str, spoken: Spoken) -> str:
    """Return what a Backend asks for that is not done in what is spoken, "" when nothing is."""
    spec = backend.spec
    if spec.proxy_protocol and spoken not in ("stream", "raw"):
        return f"{named} has proxyProtocol, which only TLSRoutes and TCPRoutes support"
    if spec.protocol and spoken in ("stream", "raw", "udp"):
        return f"{named} has protocol {spec.protocol}, which only HTTPRoutes and GRPCRoutes support"
    if spoken == "udp" and spec.tls is not None:
        return f"{named} has tls, which UDPRoutes do not support"
    if spoken == "udp" and any(one.unix for one in spec.endpoints):
        return f"{named} has a unix socket, which UDPRoutes do not support"
    return ""


def _ports(service: Service) -> str:
    return ", ".join(str(port.port) for port in service.spec.ports) or "none"


def _ports_of(backend: Backend) -> set[int]:
    found = (one.ip or one.fqdn for one in backend.spec.endpoints)
    return {one.port for one in found if one is not None}
