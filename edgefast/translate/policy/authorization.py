"""Authorization: SecurityPolicy spec.authorization -> ir.Authorization.

In: rules about addresses, headers, methods, paths and tokens. Out: the same in order, in the form
of requests at the time of the check. Names are folded and paths normalised as the router does.
Every mistake is reported, including those that an API server accepted; the caller makes a unit with
a mistake a broken one.
Source: SecurityPolicy, with the fields of Envoy Gateway.
Must never: make a rule wider or narrower than it is written, or omit one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from edgefast import ir
from edgefast.api.edge.securitypolicy import (
    Authorization,
    AuthorizationPrincipal,
    AuthorizationRule,
    OperationPath,
)
from edgefast.api.model.regex import explain_regex
from edgefast.api.validation.hostname import check_hostname
from edgefast.api.validation.policy import host_problem, is_empty_principal, tell_ascii
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.netaddr import parse_network
from edgefast.translate.match.header_name import check_header_name
from edgefast.translate.match.path import check_path, check_segments, normalize_path, strip_slash
from edgefast.translate.policy.jwt_principal import PolicyTokens, translate_principal
from edgefast.translate.report.report import Report

__all__ = ["translate_authorization"]

_ACTIONS = ("Allow", "Deny")
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
_PATHS: dict[str, ir.PathKind] = {
    "Exact": "exact",
    "PathPrefix": "prefix",
    "RegularExpression": "regex",
}
_MAX_RULES = 64
_MAX_METHODS = 16
_MAX_RANGES = 256
_MAX_HEADERS = 16
_MAX_NAMES = 64
_MAX_VALUES = 256
_MAX_PATH = 1024
_MAX_VALUE = 4096


def translate_authorization(
    given: Authorization, tokens: PolicyTokens | None, report: Report, path: str
) -> ir.Authorization:
    """Translate the rules; what comes of one that the report refuses something of is not to be used.

    `tokens`: what the same policy says of tokens, if it does.
    """
    _check_word(given.default_action, _ACTIONS, report, f"{path}.defaultAction")
    _check_count(len(given.rules), "rules", _MAX_RULES, report, f"{path}.rules")
    rules = tuple(
        _translate_rule(one, tokens, report, f"{path}.rules[{at}]")
        for at, one in enumerate(given.rules)
    )
    return ir.Authorization(rules=rules, allow=given.default_action == "Allow")


def _translate_rule(
    rule: AuthorizationRule, tokens: PolicyTokens | None, report: Report, path: str
) -> ir.AccessRule:
    _check_word(rule.action, _ACTIONS, report, f"{path}.action")
    operation, principal = rule.operation, rule.principal
    if operation is None and principal is None:
        _refuse(report, path, "Required", "operation or principal")
    if operation is not None and not operation.methods and operation.path is None:
        _refuse(report, f"{path}.operation", "Required", "methods or path")
    if principal is not None and is_empty_principal(principal):
        message = "clientCIDRs, serverNames, clientCertificate, headers or jwt"
        _refuse(report, f"{path}.principal", "Required", message)
    methods = operation.methods if operation is not None else ()
    _check_count(len(methods), "methods", _MAX_METHODS, report, f"{path}.operation.methods")
    for at, method in enumerate(methods):
        _check_word(method, _METHODS, report, f"{path}.operation.methods[{at}]")
    paths: tuple[tuple[ir.PathKind, str], ...] = ()
    if operation is not None and operation.path is not None:
        paths = tuple(_translate_path(operation.path, report, f"{path}.operation.path"))
    where = f"{path}.principal"
    return ir.AccessRule(
        allow=rule.action == "Allow",
        name=rule.name or "",
        sources=tuple(_translate_sources(principal, report, f"{where}.clientCIDRs")),
        server_names=tuple(_translate_names(principal, report, f"{where}.serverNames")),
        certificate=tuple(_translate_certificate(principal, report, f"{where}.clientCertificate")),
        headers=tuple(_translate_headers(principal, report, f"{where}.headers")),
        methods=tuple(dict.fromkeys(methods)),
        paths=paths,
        token=translate_principal(principal.jwt, tokens, report, f"{where}.jwt")
        if principal is not None and principal.jwt is not None
        else None,
    )


def _translate_path(
    given: OperationPath, report: Report, path: str
) -> Iterator[tuple[ir.PathKind, str]]:
    where = f"{path}.value"
    if len(given.value) > _MAX_PATH:
        message = f"{len(given.value)} characters (at most {_MAX_PATH})"
        _refuse(report, where, "TooLong", message)
    elif given.type not in _PATHS:
        _check_word(given.type, _PATHS, report, f"{path}.type")
    elif given.type == "RegularExpression":
        if message := explain_regex(given.value) or tell_ascii(given.value):
            _refuse(report, where, "Invalid", message)
        yield "regex", given.value
    else:
        message = check_path(given.value) or check_segments(normalize_path(given.value))
        if message:
            _refuse(report, where, "Invalid", f'"{given.value}" {message}')
        value = normalize_path(given.value)
        prefix = given.type == "PathPrefix"
        yield _PATHS[given.type], strip_slash(value) if prefix else value


def _translate_sources(
    principal: AuthorizationPrincipal | None, report: Report, path: str
) -> Iterator[str]:
    ranges = principal.client_cidrs if principal is not None else ()
    _check_count(len(ranges), "ranges", _MAX_RANGES, report, path)
    for at, one in enumerate(ranges):
        try:
            yield str(parse_network(one))
        except ValueError:
            message = f'"{one}" (expected a range of addresses such as 10.0.0.0/8)'
            _refuse(report, f"{path}[{at}]", "Invalid", message)


def _translate_names(
    principal: AuthorizationPrincipal | None, report: Report, path: str
) -> Iterator[str]:
    names = principal.server_names if principal is not None else ()
    _check_count(len(names), "names", _MAX_NAMES, report, path)
    for at, one in enumerate(names):
        if message := check_hostname(one):
            _refuse(report, f"{path}[{at}]", "Invalid", f'"{one}" {message}')
        yield one.lower()


def _translate_certificate(
    principal: AuthorizationPrincipal | None, report: Report, path: str
) -> Iterator[tuple[Literal["dns", "uri"], str]]:
    given = principal.client_certificate if principal is not None else None
    if given is None:
        return
    if not given.dns_names and not given.uris:
        _refuse(report, path, "Required", "dnsNames or uris")
    _check_count(len(given.dns_names), "names", _MAX_NAMES, report, f"{path}.dnsNames")
    _check_count(len(given.uris), "URIs", _MAX_NAMES, report, f"{path}.uris")
    yield from (("dns", one.lower()) for one in given.dns_names)
    yield from (("uri", one) for one in given.uris)


def _translate_headers(
    principal: AuthorizationPrincipal | None, report: Report, path: str
) -> Iterator[tuple[str, tuple[str, ...]]]:
    headers = principal.headers if principal is not None else ()
    _check_count(len(headers), "headers", _MAX_HEADERS, report, path)
    seen: set[str] = set()
    for at, one in enumerate(headers):
        where, name = f"{path}[{at}]", one.name.lower()
        if name in seen:
            _refuse(report, f"{where}.name", "Duplicate", f'"{one.name}"')
        seen.add(name)
        # What frames a message is in no head that is asked; a condition on it would never hold.
        if message := host_problem(one.name):
            _refuse(report, f"{where}.name", "Forbidden", message)
        elif wrong := check_header_name(one.name):
            _refuse(report, f"{where}.name", "Invalid", wrong)
        if not one.values:
            _refuse(report, f"{where}.values", "Required", "at least one value")
        _check_count(len(one.values), "values", _MAX_VALUES, report, f"{where}.values")
        for place, value in enumerate(one.values):
            if len(value) > _MAX_VALUE:
                message = f"{len(value)} characters (at most {_MAX_VALUE})"
                _refuse(report, f"{where}.values[{place}]", "TooLong", message)
        yield name, tuple(dict.fromkeys(one.values))


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")


def _check_word(word: str, words: Iterable[str], report: Report, path: str) -> None:
    if word not in words:
        message, hint = supported_text(word, words), did_you_mean(word, words)
        report.refuse(path, "NotSupported", message, hint, condition="Invalid")


def _check_count(count: int, what: str, most: int, report: Report, path: str) -> None:
    if count > most:
        _refuse(report, path, "TooMany", f"{count} {what}, at most {most}")
