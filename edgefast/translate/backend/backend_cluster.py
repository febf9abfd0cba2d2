"""Backend cluster: the endpoints (address, name or unix socket) and TLS of a Backend of `gateway.edge.io`.

In: a Backend. Out: its endpoints and TLS, or why it is broken: an invalid reference must not become
plain HTTP.
Source: spec section 2 and the field tables of the reference docs.
Must never: resolve a name; the data plane does this repeatedly.
"""

from __future__ import annotations

from typing import get_args

import msgspec

from edgefast import ir
from edgefast.api.edge.backend import Backend, BackendEndpoint, BackendProtocol, BackendTLS
from edgefast.api.kinds import ref_of
from edgefast.api.validation.edge import (
    check_address,
    check_backend_protocol,
    check_endpoint,
    check_fqdn,
    check_server_name,
    check_tls_hostname,
)
from edgefast.diagnostics.problem import Problem, supported_text
from edgefast.netaddr import parse_address
from edgefast.translate.backend.peer import (
    UNVERIFIED,
    UNVERIFIED_HINT,
    read_authorities,
    read_certificate,
)
from edgefast.translate.backend.reserved import (
    HINT,
    UNIX_HINT,
    check_endpoint_address,
    check_unix,
)
from edgefast.translate.backend.zones import read_zone
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.edgeproxy.protocols import PROXY_PROTOCOLS
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import refuse_unserved
from edgefast.translate.report.violation import refuse_violations
from edgefast.translate.settings import Settings
from edgefast.translate.tls.keyring import Keyring


class BackendOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a Backend comes to."""

    endpoints: tuple[ir.Endpoint, ...] = ()
    tls: ir.UpstreamTls | None = None
    secrets: tuple[ir.Secret, ...] = ()
    broken: str = ""
    problems: tuple[Problem, ...] = ()


def translate_backend(ref: ClusterRef, reader: Reader, keyring: Keyring) -> BackendOutcome:
    """Translate a Backend, or those of its endpoints that have the port of `ref`."""
    backend = reader.backend(ref.namespace, ref.name)
    if backend is None:
        return BackendOutcome()
    report = Report(ref_of(backend))
    refuse_unserved(backend, report, "requests to it get 500", reason="NotSupported")
    endpoints = tuple(
        endpoint
        for at, one in enumerate(backend.spec.endpoints)
        for endpoint in (
            _translate_endpoint(one, reader.settings, report, f"spec.endpoints[{at}]"),
        )
        if endpoint is not None and ref.port in (0, endpoint.port)
    )
    word = backend.spec.proxy_protocol
    if word and word not in PROXY_PROTOCOLS:
        report.refuse("spec.proxyProtocol", "NotSupported", supported_text(word, PROXY_PROTOCOLS))
    spoken = backend.spec.protocol
    if spoken and spoken not in get_args(BackendProtocol):
        known = get_args(BackendProtocol)
        report.refuse("spec.protocol", "NotSupported", supported_text(spoken, known))
    refuse_violations(check_backend_protocol(backend.spec), report, "spec")
    tls: ir.UpstreamTls | None = None
    secrets: tuple[ir.Secret, ...] = ()
    if backend.spec.tls is not None and ref.protocol not in ("raw", "udp"):
        tls, secrets = _translate_tls(backend, backend.spec.tls, reader, keyring, report)
    broken = report.refused[0].text() if report.refused else ""
    return BackendOutcome(
        endpoints=endpoints,
        tls=tls,
        secrets=secrets,
        broken=broken,
        problems=report.problems,
    )


def _translate_endpoint(
    one: BackendEndpoint, settings: Settings, report: Report, path: str
) -> ir.Endpoint | None:
    if refuse_violations(check_endpoint(one), report, path):
        return None
    zone = read_zone(one.zone, report, f"{path}.zone")
    if one.ip is not None:
        if refuse_violations(check_address(one.ip), report, f"{path}.ip"):
            return None
        address = str(parse_address(one.ip.address))
        if wrong := check_endpoint_address(address, settings):
            report.refuse(f"{path}.ip.address", "Forbidden", wrong, HINT)
            return None
        return ir.Endpoint(address=address, port=one.ip.port, zone=zone)
    if one.fqdn is not None:
        refuse_violations(check_fqdn(one.fqdn), report, f"{path}.fqdn")
        return ir.Endpoint(hostname=one.fqdn.hostname, port=one.fqdn.port, zone=zone)
    if one.unix is None:
        return None
    if wrong := check_unix(settings):
        report.refuse(f"{path}.unix", "Forbidden", wrong, UNIX_HINT)
        return None
    return ir.Endpoint(address=one.unix.path, zone=zone)


def _translate_tls(
    backend: Backend, tls: BackendTLS, reader: Reader, keyring: Keyring, report: Report
) -> tuple[ir.UpstreamTls | None, tuple[ir.Secret, ...]]:
    namespace = backend.metadata.namespace
    path = "spec.tls.caCertificateRefs"
    authority = read_authorities(tls.ca_certificate_refs, namespace, path, reader, keyring, report)
    shown = None
    if tls.client_certificate_ref is not None:
        shown = read_certificate(
            tls.client_certificate_ref, "Backend", namespace, reader, keyring, report
        )
    if tls.insecure_skip_verify and tls.ca_certificate_refs:
        message = "with caCertificateRefs, which verify the certificate"
        report.refuse("spec.tls.insecureSkipVerify", "Forbidden", message)
    elif tls.insecure_skip_verify:
        report.warn("spec.tls.insecureSkipVerify", "Invalid", UNVERIFIED, UNVERIFIED_HINT)
    refuse_violations(check_tls_hostname(backend.spec), report, "spec")
    refuse_violations(check_server_name(tls), report, "spec.tls")
    secrets = [one for one in (authority, shown) if one is not None]
    if report.refused:
        return None, ()
    first = backend.spec.endpoints[0].fqdn
    sni = tls.hostname or (first.hostname if first else "")
    upstream = ir.UpstreamTls(
        sni=sni,
        ca=authority.name if authority else "",
        certificate=shown.name if shown else "",
        insecure=tls.insecure_skip_verify,
    )
    return upstream, tuple(secrets)
