"""External auth: HTTPExternalAuthFilter -> ir.ExtAuth, the authorization check of a rule or a listener.

In: the filter's payload and its place. Out: its IR and the cluster of the service, or None when
refused. If the check cannot be made, no request passes. A body above `forwardBody.maxSize` is
answered 413: a partial body proves nothing.
Source: Gateway API HTTPExternalAuthFilter, GEP-1494.
Must never: forward a header that frames a message, or one that the filter does not name.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast import ir
from edgefast.api.edge.securitypolicy import MAX_AUTH_BODY
from edgefast.api.gateway.httproutefilter import HTTPExternalAuthFilter
from edgefast.api.validation.filter import check_external_auth
from edgefast.api.validation.httproute import check_literal
from edgefast.diagnostics.problem import supported_text
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.match.header_name import check_header_name, check_shown_name
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["translate_external_auth"]

_PROTOCOLS: tuple[str, ...] = ("HTTP", "GRPC")


def translate_external_auth(
    auth: HTTPExternalAuthFilter,
    namespace: str,
    certificate: str,
    reader: Reader,
    report: Report,
    path: str,
    kind: str,
) -> tuple[ir.ExtAuth, ClusterRef] | None:
    """Translate the filter of an object of a kind in `namespace`; its Gateway shows `certificate`; `path` is the filter's field path."""
    before = len(report.refused)
    if auth.protocol not in _PROTOCOLS:
        message = supported_text(auth.protocol, _PROTOCOLS)
        report.refuse(f"{path}.protocol", "UnsupportedValue", message)
    else:
        refuse_violations(check_external_auth(auth), report, path)
    cluster = _resolve(auth, namespace, certificate, reader, report, f"{path}.backendRef", kind)
    http, grpc = auth.http, auth.grpc
    prefix = ""
    headers: tuple[str, ...] = ()
    to_backend: tuple[str, ...] = ()
    if http is not None:
        prefix = _translate_path(http.path or "", report, f"{path}.http.path")
        headers = _translate_shown(http.allowed_headers, report, f"{path}.http.allowedHeaders")
        where = f"{path}.http.allowedResponseHeaders"
        to_backend = _translate_names(http.allowed_response_headers, report, where)
    if grpc is not None:
        headers = _translate_shown(grpc.allowed_headers, report, f"{path}.grpc.allowedHeaders")
    body = (auth.forward_body.max_size or 0) if auth.forward_body else 0
    if not 0 <= body <= MAX_AUTH_BODY:
        message = f"{body} (expected 0 to {MAX_AUTH_BODY})"
        report.refuse(f"{path}.forwardBody.maxSize", "UnsupportedValue", message)
    if cluster is None or len(report.refused) > before:
        return None
    if auth.protocol == "HTTP" and not to_backend:
        message = "the list is empty, so the backend gets no header of the service's answer"
        report.warn(f"{path}.http.allowedResponseHeaders", "NotSupported", message)
    made = ir.ExtAuth(
        backends=(ir.AuthBackend(cluster=reader.name_of(cluster)),),
        path=prefix,
        headers=headers,
        to_backend=to_backend,
        grpc=auth.protocol == "GRPC",
        body=body,
    )
    return made, cluster


def _resolve(
    auth: HTTPExternalAuthFilter,
    namespace: str,
    certificate: str,
    reader: Reader,
    report: Report,
    path: str,
    kind: str,
) -> ClusterRef | None:
    http2 = auth.protocol == "GRPC"
    cluster = resolve_backend(
        auth.backend_ref, namespace, certificate, reader, report, path, kind=kind, http2=http2
    )
    if cluster is None:
        return None
    state = reader.cluster(cluster)
    if not state.available:
        named = f"{cluster.kind.capitalize()} {cluster.namespace}/{cluster.name}"
        message = f"{named} has no endpoints"
        report.miss(path, "EndpointsNotFound", message, mistake=state.mismatch)
    return cluster


def _translate_path(prefix: str, report: Report, path: str) -> str:
    """Return what stands before the request's path; nothing for the root."""
    plain = prefix.strip("/")
    if not plain:
        return ""
    message = check_literal(f"/{plain}")
    if message:
        report.refuse(path, "UnsupportedValue", f'"{prefix}" ({message})')
    return f"/{plain}"


def _translate_shown(names: Iterable[str], report: Report, path: str) -> tuple[str, ...]:
    """Translate the names of headers that the service gets, and report those that it never gets."""
    for at, name in enumerate(names):
        if (wrong := check_shown_name(name)) and not check_header_name(name):
            report.warn(f"{path}[{at}]", "Ignored", wrong)
    return _translate_names(names, report, path)


def _translate_names(names: Iterable[str], report: Report, path: str) -> tuple[str, ...]:
    for at, name in enumerate(names):
        if wrong := check_header_name(name):
            report.refuse(f"{path}[{at}]", "UnsupportedValue", wrong)
    return tuple(sorted({name.lower() for name in names}))
