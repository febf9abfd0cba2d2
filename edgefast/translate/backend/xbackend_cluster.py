"""XBackend cluster: an external hostname, or Pods by labels, with their own TLS and sessions.

In: an XBackend and the Pods that its labels select. Out: its endpoints, TLS and sessions, or why it
is broken. A mistake must not become plain HTTP, or sessions without persistence.
Source: Gateway API v1.6 and v1.7 XBackend, GEP-4894, GEP-1619. `mode` sets what the proxy presents:
with ServerOnly no client certificate, not even the Gateway's.
Must never: resolve a name (the data plane does this repeatedly), or read a Pod of another
namespace.
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.api.gateway.xbackend import EndpointSelector, XBackend, XBackendTLS
from edgefast.api.kinds import ref_of
from edgefast.api.validation.core import check_alt_name, check_authorities
from edgefast.api.validation.hostname import check_own_hostname
from edgefast.api.validation.xbackend import (
    check_external_hostname,
    check_port,
    check_protocol,
    check_session,
    check_tls,
    check_type,
)
from edgefast.diagnostics.problem import Problem, supported_text
from edgefast.netaddr import read_address
from edgefast.translate.backend.peer import read_authorities, read_certificate, read_names
from edgefast.translate.backend.pod_selectors import MOST, MOST_OF_ALL, check_selector
from edgefast.translate.backend.reserved import HINT, check_endpoint_address
from edgefast.translate.backend.session_persistence import translate_session
from edgefast.translate.backend.xbackend import ONLY_HTTP1
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import refuse_unserved
from edgefast.translate.report.violation import refuse_violations
from edgefast.translate.tls.keyring import Keyring

__all__ = ["XBackendOutcome", "translate_xbackend"]

_TYPES = ("ExternalHostname", "EndpointSelector")
_MODES = ("None", "ServerOnly", "ClientAndServer")
#: MCP is none of them: nothing here reads it, and what carries it is HTTP.
_PROTOCOLS = ("HTTP", "HTTP2", "HTTP11", "H2C", "GRPC", "WSS", "TCP")


class XBackendOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an XBackend comes to."""

    endpoints: tuple[ir.Endpoint, ...] = ()
    fallback: tuple[ir.Endpoint, ...] = ()
    tls: ir.UpstreamTls | None = None
    protocol: ir.UpstreamProtocol = "http1"
    session: ir.SessionPersistence | None = None
    secrets: tuple[ir.Secret, ...] = ()
    selects: str = ""  # labels of Pods, whether these are followed or not; "": none, or something is wrong with it
    unread: str = ""  # why there may be Pods where none is known
    broken: str = ""
    problems: tuple[Problem, ...] = ()


def translate_xbackend(ref: ClusterRef, reader: Reader, keyring: Keyring) -> XBackendOutcome:
    """Translate an XBackend, or nothing where it is gone."""
    backend = reader.x_backend(ref.namespace, ref.name)
    if backend is None:
        return XBackendOutcome()
    report, spec = Report(ref_of(backend)), backend.spec
    refuse_unserved(backend, report, "requests to it get 500", reason="NotSupported")
    _check_words(backend, report)
    refuse_violations(check_type(spec), report, "spec")
    refuse_violations(check_port(spec.port), report, "spec.port")
    refuse_violations(check_session(spec), report, "spec")
    refuse_violations(check_protocol(spec), report, "spec")
    ready: tuple[ir.Endpoint, ...] = ()
    leaving: tuple[ir.Endpoint, ...] = ()
    if spec.external_hostname is not None:
        host = spec.external_hostname
        refuse_violations(check_external_hostname(host), report, "spec.externalHostname")
        # In a cluster the resolver would try a short name as a Service's, of any namespace: what is written is the whole name.
        end = "" if reader.settings.standalone else "."
        ready = (ir.Endpoint(hostname=f"{host.hostname}{end}", port=spec.port.value),)
    elif spec.endpoint_selector is not None:
        _check_selects(spec.endpoint_selector, reader, report)
    tls: ir.UpstreamTls | None = None
    secrets: tuple[ir.Secret, ...] = ()
    if spec.tls is not None:
        tls, secrets = _translate_tls(backend, spec.tls, reader, keyring, report)
    session = translate_session(
        spec.session_persistence, report, "spec.sessionPersistence", "Invalid"
    )
    if session is not None and not session.name:
        named = ir.name_session(f"xbackend/{ref.namespace}/{ref.name}", 0)
        session = msgspec.structs.replace(session, name=named)
    selects = unread = ""
    if spec.endpoint_selector is not None and not report.refused:
        # Last: what is refused for anything else asks for no Pods.
        selects = spec.endpoint_selector.text
        ready, leaving, unread = _select(backend, selects, reader, report)
    if report.refused:
        broken = report.refused[0].text()
        return XBackendOutcome(selects=selects, broken=broken, problems=report.problems)
    if ref.protocol == "raw":  # the client's own TLS is passed on
        tls, secrets = None, ()
    return XBackendOutcome(
        endpoints=ready,
        fallback=leaving,
        tls=tls,
        protocol=_protocol_of(backend, ref, tls),
        session=session,
        secrets=secrets,
        selects=selects,
        unread=unread,
        problems=report.problems,
    )


def _check_words(backend: XBackend, report: Report) -> None:
    """Refuse words that are not served; an API server newer than this may have others."""
    spec = backend.spec
    if spec.type not in _TYPES:
        report.refuse("spec.type", "NotSupported", supported_text(spec.type, _TYPES))
    if spec.protocol is not None and spec.protocol not in _PROTOCOLS:
        hint = "MCP uses HTTP; set protocol HTTP" if spec.protocol == "MCP" else ""
        message = supported_text(spec.protocol, _PROTOCOLS)
        report.refuse("spec.protocol", "NotSupported", message, hint)
    if spec.tls is not None and spec.tls.mode not in _MODES:
        report.refuse("spec.tls.mode", "NotSupported", supported_text(spec.tls.mode, _MODES))


def _protocol_of(
    backend: XBackend, ref: ClusterRef, tls: ir.UpstreamTls | None
) -> ir.UpstreamProtocol:
    if ref.protocol == "h2":
        return "h2"
    return "alpn" if tls is not None and backend.spec.protocol not in ONLY_HTTP1 else "http1"


def _check_selects(selector: EndpointSelector, reader: Reader, report: Report) -> None:
    if reader.settings.standalone:
        message = "type EndpointSelector selects Pods, which exist only in a cluster"
        hint = "use a Service with its EndpointSlice, or a Backend with ip"
        report.refuse("spec.type", "NotSupported", message, hint)
    else:
        refuse_violations(check_selector(selector), report, "spec.endpointSelector")


def _select(
    backend: XBackend, selects: str, reader: Reader, report: Report
) -> tuple[tuple[ir.Endpoint, ...], tuple[ir.Endpoint, ...], str]:
    """Return the Pods that serve, those that are leaving, and why none is known though there may be some."""
    namespace, path = backend.metadata.namespace, "spec.endpointSelector.matchLabels"
    if missing := reader.why_unfollowed(namespace, selects):
        owner, most = f"namespace {namespace}", MOST
        hint = "use the same labels in several XBackends, or move some to another namespace"
        if missing == "all":
            owner, most = "all namespaces", MOST_OF_ALL
            hint = "use the same labels in several XBackends, or use Services"
        message = f"the XBackends of {owner} select Pods by more than {most} different sets of labels; the oldest ones are used, this one is not"
        report.refuse(path, "TooMany", message, hint)
        return (), (), ""
    ready: dict[ir.Endpoint, None] = {}
    leaving: dict[ir.Endpoint, None] = {}
    found = reader.pods(namespace, selects)
    for pod in found.pods:
        if address := read_address(pod.address):
            if wrong := check_endpoint_address(str(address), reader.settings):
                report.warn(path, "Forbidden", f"Pod address {wrong}", HINT)
                continue
            endpoint = ir.Endpoint(address=str(address), port=backend.spec.port.value)
            (leaving if pod.leaving else ready)[endpoint] = None
    why = ""
    if found.unread:
        message, known = f"its Pods cannot be read ({found.unread})", ready or leaving
        fate = "the Pods known before stay in use" if known else "and no Pods are known"
        report.warn(path, "PodsNotRead", f"{message}, {fate}")
        why = "" if known else message
    return _sorted(ready), _sorted(leaving), why


def _sorted(endpoints: dict[ir.Endpoint, None]) -> tuple[ir.Endpoint, ...]:
    return tuple(sorted(endpoints, key=lambda one: one.address))


def _translate_tls(
    backend: XBackend, tls: XBackendTLS, reader: Reader, keyring: Keyring, report: Report
) -> tuple[ir.UpstreamTls | None, tuple[ir.Secret, ...]]:
    refuse_violations(check_tls(tls), report, "spec.tls")
    validation, namespace = tls.validation, backend.metadata.namespace
    if validation is None or not backend.spec.encrypted:
        return None, ()
    path = "spec.tls.validation"
    refuse_violations(check_authorities(validation), report, path)
    refuse_violations(check_own_hostname(validation), report, path)
    for at, one in enumerate(validation.subject_alt_names):
        refuse_violations(check_alt_name(one), report, f"{path}.subjectAltNames[{at}]")
    well_known = validation.well_known_ca_certificates
    if well_known not in (None, "System"):
        message = f'"{well_known}" (supported: System)'
        report.refuse(f"{path}.wellKnownCACertificates", "NotSupported", message)
    refs, where = validation.ca_certificate_refs, f"{path}.caCertificateRefs"
    authority = read_authorities(refs, namespace, where, reader, keyring, report)
    names = tuple(
        read_names(validation.subject_alt_names, f"{path}.subjectAltNames", report, "NotSupported")
    )
    shown = None
    if tls.client_certificate_ref is not None:
        shown = read_certificate(
            tls.client_certificate_ref, "XBackend", namespace, reader, keyring, report
        )
    upstream = ir.UpstreamTls(
        sni=validation.hostname,
        ca=authority.name if authority else "",
        sans=names,
        certificate=shown.name if shown else "",
    )
    return upstream, tuple(one for one in (authority, shown) if one is not None)
