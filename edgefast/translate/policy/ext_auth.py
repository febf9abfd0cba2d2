"""Ext auth: SecurityPolicy spec.extAuth -> ir.ExtAuth and the clusters of the authorization service.

In: the fields, a Reader for the references. Out: the check request, and a problem for every
mistake. An invalid reference breaks the whole unit: `failOpen` applies to a service that fails,
never to an invalid configuration.
Source: SecurityPolicy, with the fields of Envoy Gateway; GEP-1494 for the check request.
Must never: send a header that frames a message in the check, or let a service set one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import get_args

from edgefast import ir
from edgefast.api.edge.securitypolicy import (
    MAX_AUTH_BODY,
    SIGN_IN_VARIABLES,
    CheckMethod,
    ExtAuth,
    ExtAuthGRPC,
    ExtAuthHTTP,
)
from edgefast.api.model.location_template import (
    CHECK_PATH_LENGTH,
    CHECK_PATH_PATTERN,
    CHECK_PATH_VARIABLES,
)
from edgefast.api.model.units import parse_duration
from edgefast.diagnostics.problem import supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.match.header_name import check_header_name, check_shown_name
from edgefast.translate.report.report import Report

__all__ = ["read_bounded", "translate_ext_auth"]

#: Milliseconds.
MAX_TIMEOUT = 60_000
MAX_TTL = 60_000
_MAX_BACKENDS = 16
_MAX_NAMES = 64
_MAX_KEYS = 16
_MAX_STATUSES = 100
_MAX_DENIED = 16
_MAX_FIXED = 16
_MAX_TEMPLATE = 2048
#: Headers of every key: authorization, and the headers that repeat method, Host and path.
_ALWAYS_KEY = frozenset(
    {"authorization", "x-forwarded-host", "x-forwarded-method", "x-forwarded-uri"}
)
_REQUEST_ID = "x-request-id"  # sent to every service, and different for each request
_NO_KEY = '"x-request-id" differs for each request, so no cached answer matches another request'
_MAX_WEIGHT = 1_000_000
_METHODS: tuple[str, ...] = get_args(CheckMethod)
_ORIGINAL = ("XForwarded", "XOriginal")
_CLIENT_ON = ("AllStatuses", "SuccessAndRedirect")
#: Headers of a check that edgefast alone writes.
_FIXED_NEVER = frozenset(
    {"http2-settings", "via", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"}
    | {"x-forwarded-method", "x-forwarded-uri", "x-request-id"}
)
_FIXED_VALUE = re.compile(r"[\t\x20-\x7e]{1,4096}")
_VARIABLES = "|".join(SIGN_IN_VARIABLES)
_SIGN_IN = re.compile(
    r"(?:https?://|\{scheme\}://|/)"
    rf"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@?%#]|\{{(?:{_VARIABLES})\}})*"
)
_PATH_TEMPLATE = re.compile(CHECK_PATH_PATTERN)
_PATH = re.compile(r"/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2}){0,1023}")
_QUERY = re.compile(r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@?]|%[0-9A-Fa-f]{2}){0,1024}")


def translate_ext_auth(
    given: ExtAuth, namespace: str, reader: Reader, report: Report, path: str
) -> tuple[ir.ExtAuth, tuple[ClusterRef, ...]]:
    """Translate the question of a SecurityPolicy in `namespace`; what a report refuses or has no reference for is not to be used."""
    if given.grpc is not None and given.http is not None:
        _refuse(report, f"{path}.grpc", "Forbidden", "with http")
    elif given.grpc is None and given.http is None:
        _refuse(report, f"{path}.http", "Required", "the service to call, or grpc")
    http = given.http or ExtAuthHTTP()
    where = f"{path}.http"
    backends: tuple[ir.AuthBackend, ...] = ()
    clusters: tuple[ClusterRef, ...] = ()
    if given.http is not None:
        backends, clusters = _resolve(given.http, namespace, reader, report, where)
    if given.grpc is not None:
        backends, clusters = _resolve(given.grpc, namespace, reader, report, f"{path}.grpc")
        _check_unused(given, report, path)
    _check_paths(http, report, where)
    body = given.body_to_ext_auth.max_request_bytes if given.body_to_ext_auth else 0
    if given.body_to_ext_auth is not None and not 1 <= body <= MAX_AUTH_BODY:
        message = f"{body} (expected 1 to {MAX_AUTH_BODY})"
        _refuse(report, f"{path}.bodyToExtAuth.maxRequestBytes", "Invalid", message)
    if not 400 <= given.status_on_error <= 599:
        message = f"{given.status_on_error} (expected 400 to 599)"
        _refuse(report, f"{path}.statusOnError", "Invalid", message)
    timeout = read_bounded(given.timeout, MAX_TIMEOUT, report, f"{path}.timeout")
    made = ir.ExtAuth(
        backends=backends,
        path=(http.path or "").rstrip("/"),  # the request's own begins with one
        path_override=http.path_override or "",
        path_template=http.path_template or "",
        headers=_names(
            given.headers_to_ext_auth,
            _MAX_NAMES,
            report,
            f"{path}.headersToExtAuth",
            check_shown_name,
        ),
        to_backend=_names(http.headers_to_backend, _MAX_NAMES, report, f"{where}.headersToBackend"),
        statuses=_statuses(given.allowed_statuses, report, f"{path}.allowedStatuses"),
        method=_word(http.method or "", _METHODS, report, f"{where}.method"),
        host=(http.hostname or "").lower(),
        all_headers=http.all_request_headers,
        original=_word(http.original_request, _ORIGINAL, report, f"{where}.originalRequest")
        == "XOriginal",
        fixed=_translate_fixed(http, report, f"{where}.headers"),
        denied=_translate_denied(http, report, f"{where}.deniedStatuses"),
        to_denied=None
        if http.headers_to_client_on_denied is None
        else _names(
            http.headers_to_client_on_denied,
            _MAX_NAMES,
            report,
            f"{where}.headersToClientOnDenied",
        ),
        to_client=_names(http.headers_to_client, _MAX_NAMES, report, f"{where}.headersToClient"),
        to_client_always=_word(
            http.headers_to_client_on, _CLIENT_ON, report, f"{where}.headersToClientOn"
        )
        == "AllStatuses",
        sign_in=_translate_sign_in(http, report, f"{where}.signIn.redirectTo"),
        grpc=given.grpc is not None,
        body=body,
        timeout=timeout,
        fail_open=given.fail_open,
        status_on_error=given.status_on_error,
        cache=_translate_cache(given, report, f"{path}.cache"),
    )
    return made, clusters


def _word(word: str, known: tuple[str, ...], report: Report, path: str) -> str:
    if word and word not in known:
        report.refuse(path, "NotSupported", supported_text(word, known), condition="Invalid")
    return word


def _translate_fixed(http: ExtAuthHTTP, report: Report, path: str) -> tuple[tuple[str, str], ...]:
    if len(http.headers) > _MAX_FIXED:
        _refuse(report, path, "TooMany", f"{len(http.headers)} headers, at most {_MAX_FIXED}")
    found: dict[str, str] = {}
    for at, one in enumerate(http.headers):
        name = one.name.lower()
        if wrong := check_header_name(one.name):
            _refuse(report, f"{path}[{at}].name", "Invalid", wrong)
        elif name.startswith("x-edge-") or name in _FIXED_NEVER:
            _refuse(report, f"{path}[{at}].name", "Forbidden", f'"{one.name}" belongs to the proxy')
        if name in found:
            _refuse(report, f"{path}[{at}].name", "Duplicate", f'"{one.name}"')
        if not _FIXED_VALUE.fullmatch(one.value):
            # A value can be a secret of the service.
            _refuse(report, f"{path}[{at}].value", "Invalid", "not a header value")
        found[name] = one.value
    return tuple(sorted(found.items()))


def _translate_denied(http: ExtAuthHTTP, report: Report, path: str) -> tuple[int, ...] | None:
    given = http.denied_statuses
    if given is None:
        return None
    if not 1 <= len(given) <= _MAX_DENIED:
        _refuse(report, path, "Invalid", f"{len(given)} statuses (expected 1 to {_MAX_DENIED})")
    for at, status in enumerate(given):
        if not 300 <= status <= 499:
            _refuse(report, f"{path}[{at}]", "Invalid", f"{status} (expected 300 to 499)")
    return tuple(sorted(set(given)))


def _translate_sign_in(http: ExtAuthHTTP, report: Report, path: str) -> str:
    if http.sign_in is None:
        return ""
    text = http.sign_in.redirect_to
    if len(text) > _MAX_TEMPLATE:
        _refuse(report, path, "TooLong", f"{len(text)} characters (at most {_MAX_TEMPLATE})")
    elif not _SIGN_IN.fullmatch(text):
        known = ", ".join(f"{{{one}}}" for one in SIGN_IN_VARIABLES)
        message = f"expected an address of http or https, or a path; variables: {known}"
        _refuse(report, path, "Invalid", message)
    return text


def _check_unused(given: ExtAuth, report: Report, path: str) -> None:
    """Say what means nothing to a service of gRPC."""
    if given.allowed_statuses != ExtAuth().allowed_statuses:
        message = "has no effect with grpc: status OK allows a request, all others deny it"
        report.warn(f"{path}.allowedStatuses", "NotSupported", message, "remove it")


def _resolve(
    requested: ExtAuthHTTP | ExtAuthGRPC, namespace: str, reader: Reader, report: Report, path: str
) -> tuple[tuple[ir.AuthBackend, ...], tuple[ClusterRef, ...]]:
    if requested.backend_ref is not None and requested.backend_refs:
        _refuse(report, f"{path}.backendRef", "Forbidden", "with backendRefs")
    if len(requested.backend_refs) > _MAX_BACKENDS:
        message = f"{len(requested.backend_refs)} backends, at most {_MAX_BACKENDS}"
        _refuse(report, f"{path}.backendRefs", "TooMany", message)
    refs = [
        (f"{path}.backendRefs[{at}]", one, one.weight)
        for at, one in enumerate(requested.backend_refs)
    ]
    if not refs and requested.backend_ref is not None:
        refs = [(f"{path}.backendRef", requested.backend_ref, 1)]  # type: ignore[list-item]
    shares, clusters = [], []
    for where, ref, weight in refs:
        if not 0 <= weight <= _MAX_WEIGHT:
            message = f"{weight} (expected 0 to {_MAX_WEIGHT})"
            _refuse(report, f"{where}.weight", "Invalid", message)
        grpc = isinstance(requested, ExtAuthGRPC)
        cluster = resolve_backend(
            ref, namespace, "", reader, report, where, kind="SecurityPolicy", http2=grpc
        )
        if cluster is None:
            continue
        state = reader.cluster(cluster)
        if not state.available:
            message = (
                f"{cluster.kind.capitalize()} {cluster.namespace}/{cluster.name} has no endpoints"
            )
            report.miss(where, "EndpointsNotFound", message, mistake=state.mismatch)
        if weight > 0:
            shares.append(ir.AuthBackend(cluster=state.name, weight=weight))
            clusters.append(cluster)
    if not refs:
        _refuse(report, f"{path}.backendRef", "Required", "the service to call")
    elif not any(weight > 0 for _, _, weight in refs):
        _refuse(report, f"{path}.backendRefs", "Invalid", "the weights of all backendRefs are 0")
    return tuple(shares), tuple(dict.fromkeys(clusters))


def _check_paths(http: ExtAuthHTTP, report: Report, path: str) -> None:
    if http.path is not None and http.path_override is not None:
        _refuse(report, f"{path}.path", "Forbidden", "with pathOverride")
    if http.path_template is not None:
        other = "path" if http.path is not None else "pathOverride"
        if http.path is not None or http.path_override is not None:
            _refuse(report, f"{path}.pathTemplate", "Forbidden", f"with {other}")
        if len(http.path_template) > CHECK_PATH_LENGTH or not _PATH_TEMPLATE.match(
            http.path_template
        ):
            known = ", ".join(f"{{{one}}}" for one in CHECK_PATH_VARIABLES)
            message = f"expected a path such as /verify?uri={{escapedTarget}}; variables: {known}"
            _refuse(report, f"{path}.pathTemplate", "Invalid", message)
    if http.path is not None and not _PATH.fullmatch(http.path):
        message = f'"{_without_query(http.path)}" (expected a path such as /auth)'
        _refuse(report, f"{path}.path", "Invalid", message)
    if http.path_override is not None:
        before, _, query = http.path_override.partition("?")
        if not _PATH.fullmatch(before) or not _QUERY.fullmatch(query):
            message = f'"{_without_query(http.path_override)}" (expected a path such as /verify)'
            _refuse(report, f"{path}.pathOverride", "Invalid", message)


def _without_query(path: str) -> str:
    """Return what may be shown: a query may hold a token of the service."""
    before, mark, _ = path.partition("?")
    return f"{before}?..." if mark else before


def _translate_cache(requested: ExtAuth, report: Report, path: str) -> ir.AuthCache | None:
    given = requested.cache
    if given is None:
        return None
    ttl = read_bounded(given.ttl, MAX_TTL, report, f"{path}.ttl")
    if given.key_headers is None:
        for at, name in enumerate(requested.headers_to_ext_auth):
            if name.lower() == _REQUEST_ID:
                where = f"{path.removesuffix('.cache')}.headersToExtAuth[{at}]"
                _refuse(
                    report, where, "Forbidden", f"{_NO_KEY}; remove it, or set cache.keyHeaders"
                )
        return ir.AuthCache(ttl=ttl)
    where = f"{path}.keyHeaders"
    if not given.key_headers:  # everybody would get in by the answer for anybody
        _refuse(report, where, "Required", "at least one header, or no keyHeaders")
    keys = _names(given.key_headers, _MAX_KEYS, report, where, check_shown_name)
    for at, name in enumerate(given.key_headers):
        if name.lower() == _REQUEST_ID:
            _refuse(report, f"{where}[{at}]", "Invalid", f"{_NO_KEY}; remove it")
    shown = dict.fromkeys(one.lower() for one in requested.headers_to_ext_auth)
    if requested.grpc is not None and not shown and keys:
        message = "does not include the other headers, which the service receives; if answers depend on them, a cached answer can allow another client"
        fix = "list every header that answers depend on, here and in headersToExtAuth"
        report.warn(where, "NotSupported", message, fix)
    missing = [
        one for one in shown if one not in keys and one not in _ALWAYS_KEY and one != _REQUEST_ID
    ]
    missing = [one for one in missing if not check_shown_name(one)]
    if missing and keys:
        message = f"does not include {', '.join(missing)}, which the service receives; if answers depend on it, a cached answer can allow another client"
        report.warn(where, "NotSupported", message, "list every header that answers depend on")
    return ir.AuthCache(ttl=ttl, key_headers=keys)


def _names(
    names: Iterable[str],
    most: int,
    report: Report,
    path: str,
    check: Callable[[str], str] = check_header_name,
) -> tuple[str, ...]:
    given = tuple(names)
    if len(given) > most:
        _refuse(report, path, "TooMany", f"{len(given)} headers, at most {most}")
    for at, name in enumerate(given):
        if wrong := check(name):
            _refuse(report, f"{path}[{at}]", "Invalid", wrong)
    return tuple(sorted({name.lower() for name in given}))


def _statuses(given: tuple[int, ...], report: Report, path: str) -> tuple[int, ...]:
    if not 1 <= len(given) <= _MAX_STATUSES:
        _refuse(report, path, "Invalid", f"{len(given)} statuses (expected 1 to {_MAX_STATUSES})")
    for at, status in enumerate(given):
        if not 200 <= status <= 299:
            _refuse(report, f"{path}[{at}]", "Invalid", f"{status} (expected 200 to 299)")
    return tuple(sorted(set(given)))


def read_bounded(text: str, most: int, report: Report, path: str) -> int:
    """Return a duration of more than nothing and at most so many milliseconds; what is none is refused."""
    try:
        found = parse_duration(text)
    except ValueError:
        found = 0
    if not 0 < found <= most:
        message = f'"{text}" (expected more than 0s, at most {most // 1000}s)'
        _refuse(report, path, "Invalid", message)
    return found


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")
