"""Backends: the Service port, or the address, that an upstream of an Ingress stands for.

In: an upstream, a Lookup. Out: a `Target`: a backendRef, or why requests get 503. A port of an Ingress is the number, the name or
the targetPort of a Service's port.
Source: ingress-nginx controller.go, `serviceEndpoints`, `getServiceClusterEndpoint`, `externalNamePorts`.
Must never: send plain text to a port that requires TLS.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType

import msgspec

from edgefast.api.core.service import Service, ServicePort
from edgefast.api.edge.backend import (
    Backend,
    BackendEndpoint,
    BackendSpec,
    BackendTLS,
    FQDNEndpoint,
    IPEndpoint,
)
from edgefast.api.gateway.httproute import HTTPBackendRef
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import MARK
from edgefast.api.snapshot import Key
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.backend.backend import ENCRYPTED, H2C
from edgefast.translate.ingress.backend_tls import BackendTls, check_backend_secret
from edgefast.translate.ingress.lookup import Lookup
from edgefast.translate.ingress.servers import Upstream

#: Values of backend-protocol with TLS.
ENCRYPTED_PROTOCOLS = ("HTTPS", "GRPCS")

#: Whether a port gets TLS, or the settings of that.
TlsUse = BackendTls | bool
#: A namespace, a Service and the number of one of its ports.
ServicePortKey = tuple[str, str, int]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where requests to an upstream go."""

    ref: HTTPBackendRef | None = None
    backend: Backend | None = None  # an object made for an address
    wrong: str = ""  # why there is no ref: requests get 503
    reason: Word = "BackendNotFound"
    setting: str = ""  # the annotation that is wrong; "": the backend of the path
    port: ServicePort | None = None  # of a Service with endpoints
    tls: ServicePort | None = None  # a port of a Service without BackendTLSPolicy that gets TLS
    settings: BackendTls | None = None  # of that TLS
    http2: bool = False


def find_target(
    upstream: Upstream,
    protocol: str,
    lookup: Lookup,
    *,
    service_upstream: bool,
    speaks_tls: Mapping[ServicePortKey, TlsUse] = MappingProxyType({}),
    verifies: bool = False,
    backend_tls: BackendTls | None = None,
) -> Target:
    """Return the target of an upstream; `protocol` as in backend-protocol, `speaks_tls`: of find_encrypted.

    `verifies`: proxy-ssl-verify asks for a verified certificate.
    """
    settings = backend_tls
    if backend_tls is not None:
        checked = check_backend_secret(lookup.secret(backend_tls.secret), backend_tls)
        if isinstance(checked, str):
            return Target(wrong=checked, reason="Invalid", setting="proxy-ssl-secret")
        settings, verifies = checked, False
    named = f"Service {upstream.namespace}/{upstream.service}"
    service = lookup.service(upstream.key)
    if service is None:
        return Target(wrong=f"{named} not found")
    if protocol in ENCRYPTED_PROTOCOLS and verifies and not lookup.has_tls_policy(upstream.key):
        wrong = f"proxy-ssl-verify is not served; write a BackendTLSPolicy for {named}"
        return Target(wrong=wrong, reason="NotSupported", setting="proxy-ssl-verify")
    if service.spec.type == "ExternalName":
        if settings is not None and protocol in ENCRYPTED_PROTOCOLS:
            wrong = f"{named} of type ExternalName and proxy-ssl-secret is not served"
            return Target(wrong=wrong, reason="NotSupported", setting="proxy-ssl-secret")
        return _find_external(upstream, service, protocol)
    port = find_port(service, upstream.port)
    if port is None:
        known = ", ".join(str(one.port) for one in service.spec.ports) or "none"
        return Target(
            wrong=f"{named} has no port {upstream.port} (its ports: {known})", reason="PortNotFound"
        )
    wrong = _check_protocol(named, upstream, port, protocol, lookup)
    tls = protocol in ENCRYPTED_PROTOCOLS
    used = speaks_tls.get((*upstream.key, port.port), tls and (backend_tls or True))
    if not wrong and used != (tls and (backend_tls or True)):
        other = "TLS with other settings" if tls and used else "plain text" if tls else "TLS"
        wrong = f"{named} port {port.port} gets {other} by an older Ingress, and backend-protocol is {protocol}"
    if wrong:
        return Target(wrong=wrong, reason="UnsupportedProtocol")
    http2 = protocol in ("GRPC", "GRPCS")
    address = service.spec.cluster_ip or ""
    if service_upstream and _is_address(address) and protocol not in ENCRYPTED_PROTOCOLS:
        endpoint = BackendEndpoint(ip=IPEndpoint(address=address, port=port.port))
        return _use_backend(upstream, endpoint, http2)
    return Target(
        ref=HTTPBackendRef(name=upstream.service, namespace=upstream.namespace, port=port.port),
        port=port,
        http2=http2,
        settings=settings,
        tls=port
        if protocol in ENCRYPTED_PROTOCOLS and not lookup.has_tls_policy(upstream.key)
        else None,
    )


def find_encrypted(
    used: Iterable[tuple[Upstream, str, BackendTls | None]],
    services: Container[Key],
    lookup: Lookup,
) -> Mapping[ServicePortKey, TlsUse]:
    """Tell which ports of `services` get TLS, and its settings.

    `used`: upstreams with backend-protocol and proxy-ssl-*, the oldest Ingress first, which decides.
    """
    found: dict[ServicePortKey, TlsUse] = {}
    for upstream, protocol, settings in used:
        if upstream.key not in services:
            continue
        service = lookup.service(upstream.key)
        port = find_port(service, upstream.port) if service is not None else None
        if port is not None and not lookup.has_tls_policy(upstream.key):
            use = protocol in ENCRYPTED_PROTOCOLS and (settings or True)
            found.setdefault((*upstream.key, port.port), use)
    return found


def find_port(service: Service, text: str) -> ServicePort | None:
    """Return the port of a Service that an Ingress names by number, name or targetPort."""
    for one in service.spec.ports:
        target = one.target_port if one.target_port is not None else one.port
        if text in (str(one.port), str(target), one.name):
            return one
    return None


def _check_protocol(
    named: str, upstream: Upstream, port: ServicePort, protocol: str, lookup: Lookup
) -> str:
    """Return why the protocol of an upstream is not served, "" when it is."""
    spoken = (port.app_protocol or "").lower()
    if protocol not in ENCRYPTED_PROTOCOLS and (
        lookup.has_tls_policy(upstream.key) or spoken in ENCRYPTED
    ):
        return f"{named} requires TLS, and backend-protocol is {protocol}; set it to HTTPS"
    if spoken == H2C and protocol == "HTTP":
        return f"{named} has appProtocol {spoken}, and backend-protocol is HTTP; set it to GRPC"
    return ""


def _find_external(upstream: Upstream, service: Service, protocol: str) -> Target:
    named = f"Service {upstream.namespace}/{upstream.service}"
    number = int(upstream.port) if upstream.port.isdecimal() else 0
    for one in service.spec.ports:
        if upstream.port in (one.name, str(one.port)):
            number = one.target_port if isinstance(one.target_port, int) else one.port
    if not 1 <= number <= 65535:
        return Target(wrong=f"{named} has no port {upstream.port}", reason="PortNotFound")
    host = (service.spec.external_name or "").rstrip(".").lower()
    tls = (
        BackendTLS(hostname=host, insecure_skip_verify=True)
        if protocol in ENCRYPTED_PROTOCOLS
        else None
    )
    if _is_address(host):
        if tls is not None:
            message = f"{named} of type ExternalName with an address and backend-protocol {protocol} is not served"
            return Target(wrong=message, reason="UnsupportedProtocol")
        endpoint = BackendEndpoint(ip=IPEndpoint(address=host, port=number))
    else:
        endpoint = BackendEndpoint(fqdn=FQDNEndpoint(hostname=host, port=number))
    return _use_backend(upstream, endpoint, protocol in ("GRPC", "GRPCS"), tls)


def _use_backend(
    upstream: Upstream, endpoint: BackendEndpoint, http2: bool, tls: BackendTLS | None = None
) -> Target:
    name = f"{upstream.service}{MARK}-{upstream.port}{'' if tls is None else '-tls'}"
    meta = ObjectMeta(name=name, namespace=upstream.namespace)
    return Target(
        ref=HTTPBackendRef(
            group=EDGE_GROUP, kind="Backend", name=name, namespace=upstream.namespace
        ),
        backend=Backend(metadata=meta, spec=BackendSpec(endpoints=(endpoint,), tls=tls)),
        http2=http2,
    )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
