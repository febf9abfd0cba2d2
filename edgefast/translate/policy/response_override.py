"""Response override: BackendTrafficPolicy spec.responseOverride -> ir.ResponseOverride.

In: the fields, a Reader for ConfigMaps with bodies. Out: the same, in order; a problem for every
mistake. A missing ConfigMap closes the policy, so that clients do not see the response that the
policy hides.
Source: BackendTrafficPolicy, with the fields of Envoy Gateway.
Must never: put a byte into a header line that ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgefast import ir
from edgefast.api.edge.response_override import (
    CustomRedirect,
    CustomResponse,
    ResponseOverride,
    StatusCodeMatch,
)
from edgefast.api.validation.route_filter import check_body, check_body_size, check_value_ref
from edgefast.api.validation.traffic import check_override, check_range, check_statuses
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.match.path import check_path
from edgefast.translate.policy.error_service import translate_error_service
from edgefast.translate.policy.fixed_headers import translate_edits
from edgefast.translate.policy.response_body import read_body
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["translate_overrides"]

_MOST = 64
_STATUSES = 50
_TYPES = ("Value", "Range")
_SCHEMES = ("http", "https")
_SOURCES: dict[str, ir.OverrideSource] = {
    "All": "all",
    "Backend": "backend",
    "Gateway": "gateway",
    "NoEndpoints": "no_endpoints",
}


def translate_overrides(
    given: Iterable[ResponseOverride], namespace: str, reader: Reader, report: Report, path: str
) -> tuple[tuple[ir.ResponseOverride, ...], tuple[ClusterRef, ...]]:
    """Translate those of a policy in `namespace`, with the clusters of their services.

    What a report refuses of is not to be used.
    """
    ones = tuple(given)
    if len(ones) > _MOST:
        _refuse(report, path, "TooMany", f"{len(ones)} overrides, at most {_MOST}")
    clusters: list[ClusterRef] = []
    made = tuple(
        _translate(one, namespace, reader, report, f"{path}[{at}]", clusters)
        for at, one in enumerate(ones)
    )
    return made, tuple(dict.fromkeys(clusters))


def _translate(
    given: ResponseOverride,
    namespace: str,
    reader: Reader,
    report: Report,
    path: str,
    clusters: list[ClusterRef],
) -> ir.ResponseOverride:
    refuse_violations(check_override(given), report, path, "Invalid")
    codes = given.match.status_codes
    if not 1 <= len(codes) <= _STATUSES:
        message = f"{len(codes)} statuses (expected 1 to {_STATUSES})"
        _refuse(report, f"{path}.match.statusCodes", "Invalid", message)
    statuses = tuple(
        span
        for at, one in enumerate(codes)
        for span in _read_statuses(one, report, f"{path}.match.statusCodes[{at}]")
    )
    source = _SOURCES.get(given.match.source, "all")
    _check_word(given.match.source, tuple(_SOURCES), report, f"{path}.match.source")
    if given.service is not None:
        service = translate_error_service(
            given.service, namespace, reader, report, f"{path}.service", clusters
        )
        return ir.ResponseOverride(statuses=statuses, source=source, service=service)
    if given.redirect is not None:
        location, status = _write_location(given.redirect, report, f"{path}.redirect")
        return ir.ResponseOverride(
            statuses=statuses, source=source, status=status, location=location
        )
    response = given.response or CustomResponse()
    where = f"{path}.response"
    if response.status_code is not None:
        _check_status(response.status_code, report, f"{where}.statusCode")
    kind = response.content_type or ""
    if not kind.isascii() or (kind and not kind.isprintable()):
        _refuse(report, f"{where}.contentType", "Invalid", "must be visible ASCII, no line breaks")
    return ir.ResponseOverride(
        statuses=statuses,
        source=source,
        status=response.status_code or 0,
        content_type=kind,
        body=_read_body(response, namespace, reader, report, f"{where}.body"),
        header=None
        if response.header is None
        else translate_edits(response.header, report, f"{where}.header"),
    )


def _read_body(
    response: CustomResponse, namespace: str, reader: Reader, report: Report, path: str
) -> bytes:
    body = response.body
    if body is None:
        return b""
    if body.type not in ("Inline", "ValueRef"):
        _check_word(body.type, ("Inline", "ValueRef"), report, f"{path}.type")
        return b""
    found = [one for check in (check_body, check_body_size, check_value_ref) for one in check(body)]
    if refuse_violations(found, report, path, "Invalid"):
        return b""
    text, wrong = read_body(body, namespace, reader)
    if wrong:
        report.unresolve(f"{path}.valueRef", "NotFound", wrong)
    return text


def _read_statuses(given: StatusCodeMatch, report: Report, path: str) -> Iterator[tuple[int, int]]:
    if given.type not in _TYPES:
        _check_word(given.type, _TYPES, report, f"{path}.type")
        return
    if refuse_violations(check_statuses(given), report, path, "Invalid"):
        return
    if given.value is not None:
        _check_status(given.value, report, f"{path}.value")
        yield given.value, given.value
    if given.range is not None:
        where = f"{path}.range"
        refuse_violations(check_range(given.range), report, where, "Invalid")
        _check_status(given.range.start, report, f"{where}.start")
        _check_status(given.range.end, report, f"{where}.end")
        yield given.range.start, given.range.end


def _write_location(given: CustomRedirect, report: Report, path: str) -> tuple[str, int]:
    if given.scheme is not None:
        _check_word(given.scheme, _SCHEMES, report, f"{path}.scheme")
    if given.status_code not in (301, 302):
        message = f"{given.status_code} (expected 301 or 302)"
        _refuse(report, f"{path}.statusCode", "NotSupported", message)
    target = given.path.replace_full_path if given.path is not None else "/"
    if given.path is not None:
        _check_word(given.path.type, ("ReplaceFullPath",), report, f"{path}.path.type")
        if message := check_path(target):
            _refuse(report, f"{path}.path.replaceFullPath", "Invalid", f'"{target}" {message}')
    scheme = f"{given.scheme}:" if given.scheme else ""  # else the request's: RFC 3986 4.2
    port = f":{given.port}" if given.port is not None else ""
    return f"{scheme}//{given.hostname}{port}{target}", given.status_code


def _check_status(status: int, report: Report, path: str) -> None:
    if not 200 <= status <= 599:
        _refuse(report, path, "Invalid", f"{status} (expected 200 to 599)")


def _check_word(word: str, words: tuple[str, ...], report: Report, path: str) -> None:
    if word not in words:
        message, hint = supported_text(word, words), did_you_mean(word, words)
        report.refuse(path, "NotSupported", message, hint, condition="Invalid")


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")
