"""Error service: responseOverride[].service of a BackendTrafficPolicy -> ir.ErrorService and its cluster.

In: the fields, a Reader for the reference. Out: the call, and a problem for every mistake. An invalid reference closes the policy,
so that clients do not see the response that the policy hides. A service without endpoints is a warning: clients get the plain error.
Must never: send the service a header of the client under a name that edgefast writes.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.api.edge.response_override import ErrorService
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.match.header_name import check_shown_name
from edgefast.translate.match.path import check_path
from edgefast.translate.policy.ext_auth import read_bounded
from edgefast.translate.policy.fixed_headers import translate_fixed
from edgefast.translate.report.report import Report

__all__ = ["translate_error_service"]

#: Milliseconds.
MAX_TIMEOUT = 60_000
_MAX_NAMES = 64
_STATUSES = ("Original", "Service")
#: Headers of the call that edgefast alone writes.
_OWN = frozenset(
    {"x-code", "x-format", "x-original-uri", "x-request-id", "via", "http2-settings"}
    | {"x-forwarded-for", "x-forwarded-proto"}
)


def translate_error_service(
    given: ErrorService,
    namespace: str,
    reader: Reader,
    report: Report,
    path: str,
    clusters: list[ClusterRef],
) -> ir.ErrorService:
    """Translate the service of a policy in `namespace`; its cluster is appended to `clusters`."""
    where = f"{path}.backendRef"
    found = resolve_backend(
        given.backend_ref, namespace, "", reader, report, where, kind="BackendTrafficPolicy"
    )
    name = ""
    if found is not None:
        state = reader.cluster(found)
        name = state.name
        clusters.append(found)
        if not state.available:
            message = f"{found.kind.capitalize()} {found.namespace}/{found.name} has no endpoints"
            report.miss(where, "EndpointsNotFound", message, mistake=state.mismatch)
    if given.path is not None and (message := check_path(given.path)):
        _refuse(report, f"{path}.path", "Invalid", f'"{given.path}" {message}')
    if given.status not in _STATUSES:
        message = f'"{given.status}" (expected Original or Service)'
        _refuse(report, f"{path}.status", "NotSupported", message)
    return ir.ErrorService(
        cluster=name,
        path=given.path or "",
        host=(given.hostname or "").lower(),
        headers=_translate_names(given, report, f"{path}.requestHeaders"),
        all_headers=given.all_request_headers,
        fixed=translate_fixed(given.headers, _OWN, report, f"{path}.headers"),
        own_status=given.status == "Service",
        timeout=read_bounded(given.timeout, MAX_TIMEOUT, report, f"{path}.timeout"),
    )


def _translate_names(given: ErrorService, report: Report, path: str) -> tuple[str, ...]:
    names = given.request_headers
    if len(names) > _MAX_NAMES:
        _refuse(report, path, "TooMany", f"{len(names)} headers, at most {_MAX_NAMES}")
    for at, name in enumerate(names):
        if wrong := check_shown_name(name):
            _refuse(report, f"{path}[{at}]", "Invalid", wrong)
    return tuple(sorted({name.lower() for name in names}))


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")
