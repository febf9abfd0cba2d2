"""Load balancer: BackendTrafficPolicy spec.loadBalancer -> ir.LoadBalancer.

In: the field. Out: how endpoints are chosen; a problem for every mistake.
Source: BackendTrafficPolicy, with the fields of Envoy Gateway; RFC 6265 4.1.1 (cookies).
Must never: put anything into a cookie's line that is not its name, its age or an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from edgefast import ir
from edgefast.api.edge.load_balancer import (
    MAX_PARTS,
    ConsistentHash,
    HashCookie,
    HashHeader,
    HashParam,
    HashPart,
    LoadBalancer,
)
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.load_balancer import (
    MOST_WINDOW,
    NAMED,
    PARTS,
    check_given,
    check_hash,
    check_headers,
    check_part,
    check_part_name,
    check_slow_start,
)
from edgefast.api.validation.zone_aware import check_zone_aware
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.match.header_name import check_header_name
from edgefast.translate.policy.credentials import check_cookie, check_param
from edgefast.translate.policy.ext_auth import read_bounded
from edgefast.translate.policy.zone_aware import translate_zone_aware
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["translate_load_balancer"]

_TYPES = {
    "LeastRequest": ir.LoadBalancer(),
    "RoundRobin": ir.LoadBalancer(type="round_robin"),
    "Random": ir.LoadBalancer(type="random"),
}
_SOURCE = "SourceIP"
_OF_TTL = ("expires", "max-age")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,64}")
_VALUE = re.compile(r"[ -:<-~]{0,256}")
#: What a cookie has where nobody says otherwise: it is for all of a site, and for no script.
_DEFAULTS = {"Path": "/", "HttpOnly": ""}


def translate_load_balancer(given: LoadBalancer, report: Report, path: str) -> ir.LoadBalancer:
    """Translate it; of what a report refuses nothing is to be used."""
    if not _check_word(given.type, ("ConsistentHash", *_TYPES), report, f"{path}.type"):
        return ir.LoadBalancer()
    refuse_violations(check_hash(given), report, path, "Invalid")
    refuse_violations(check_slow_start(given), report, path, "Invalid")
    refuse_violations(check_zone_aware(given), report, path, "Invalid")
    if given.consistent_hash is None:
        made = _TYPES.get(given.type, ir.LoadBalancer())
        if given.zone_aware is not None:
            zones = translate_zone_aware(given.zone_aware, report, f"{path}.zoneAware")
            made = msgspec.structs.replace(made, zones=zones)
        if given.slow_start is None:
            return made
        where = f"{path}.slowStart.window"
        window = read_bounded(given.slow_start.window, MOST_WINDOW, report, where)
        return msgspec.structs.replace(made, slow_start=window)
    hashed = _translate_hash(given.consistent_hash, report, f"{path}.consistentHash")
    return ir.LoadBalancer(type="hash", hash=hashed)


def _translate_hash(given: ConsistentHash, report: Report, path: str) -> ir.HashPolicy:
    if not _check_word(given.type, (_SOURCE, *PARTS), report, f"{path}.type"):
        return ir.HashPolicy()
    refuse_violations((*check_part(given), *check_headers(given)), report, path, "Invalid")
    made = {_SOURCE: ir.HashPolicy(source=True)}
    if given.header is not None:
        _check_header(given.header, report, f"{path}.header")
        made["Header"] = ir.HashPolicy(headers=(given.header.name.lower(),))
    if given.headers is not None:
        _check_count(given.headers, report, f"{path}.headers")
        for at, header in enumerate(given.headers):
            _check_header(header, report, f"{path}.headers[{at}]")
        made["Headers"] = ir.HashPolicy(headers=tuple(one.name.lower() for one in given.headers))
    if given.query_params is not None:
        _check_params(given.query_params, report, f"{path}.queryParams")
        made["QueryParams"] = ir.HashPolicy(params=tuple(one.name for one in given.query_params))
    if given.parts is not None:
        made["Parts"] = ir.HashPolicy(parts=_translate_parts(given.parts, report, f"{path}.parts"))
    if given.cookie is not None:
        cookie = _translate_cookie(given.cookie, report, f"{path}.cookie")
        made["Cookie"] = ir.HashPolicy(cookie=cookie)
    return made.get(given.type, ir.HashPolicy())


_KINDS: Mapping[str, Literal["source", "host", "target", "path", "query"]] = {
    "SourceIP": "source",
    "Host": "host",
    "RequestURI": "target",
    "Path": "path",
    "Query": "query",
}


def _translate_parts(
    given: Sequence[HashPart], report: Report, path: str
) -> tuple[ir.HashPart, ...]:
    _check_count(given, report, path)
    return tuple(_translate_part(one, report, f"{path}[{at}]") for at, one in enumerate(given))


def _translate_part(one: HashPart, report: Report, path: str) -> ir.HashPart:
    if not _check_word(one.type, (*_KINDS, *NAMED), report, f"{path}.type"):
        return ir.HashPart("source")
    if refuse_violations(check_part_name(one), report, path, "Invalid"):
        return ir.HashPart("source")
    if one.type in _KINDS:
        return ir.HashPart(_KINDS[one.type])
    name = one.name or ""
    if one.type == "Header":
        _check_header(HashHeader(name=name), report, path)
        return ir.HashPart("header", name.lower())
    if one.type == "Cookie":
        check_cookie(name, report, f"{path}.name")
        return ir.HashPart("cookie", name)
    check_param(name, report, f"{path}.name")
    return ir.HashPart("param", name)


def _check_header(given: HashHeader, report: Report, path: str) -> None:
    host = given.name.lower() == "host"  # the one of the proxy's own that is there to be read
    if not host and (message := check_header_name(given.name)):
        _refuse(report, f"{path}.name", "Invalid", message)


def _check_params(given: Sequence[HashParam], report: Report, path: str) -> None:
    _check_count(given, report, path)
    seen: set[str] = set()
    for at, one in enumerate(given):
        check_param(one.name, report, f"{path}[{at}].name")
        if one.name in seen:
            _refuse(report, f"{path}[{at}].name", "Duplicate", f'"{one.name}"')
        seen.add(one.name)


def _check_count(given: Sequence[object], report: Report, path: str) -> None:
    if not 1 <= len(given) <= MAX_PARTS:
        _refuse(report, path, "Invalid", f"{len(given)} entries (expected 1 to {MAX_PARTS})")


def _translate_cookie(given: HashCookie, report: Report, path: str) -> ir.HashCookie:
    check_cookie(given.name, report, f"{path}.name")
    refuse_violations(check_given(given), report, path, "Invalid")
    if len(given.attributes) > MAX_PARTS:
        message = f"{len(given.attributes)} attributes, at most {MAX_PARTS}"
        _refuse(report, f"{path}.attributes", "TooMany", message)
    _check_attributes(given.attributes, report, f"{path}.attributes")
    if given.ttl is None:
        return ir.HashCookie(given.name)
    return ir.HashCookie(
        given.name,
        ttl=_read_seconds(given.ttl, report, f"{path}.ttl"),
        attributes=_write_attributes(given.attributes),
    )


def _check_attributes(given: Mapping[str, str], report: Report, path: str) -> None:
    """None of them ends the line, or says what another one says. (Names of a map are no concern of an API server.)"""
    seen: set[str] = set()
    for name, value in given.items():
        where = f"{path}.{name}"
        if not _NAME.fullmatch(name):
            message = f'"{name}" (expected the name of an attribute such as SameSite)'
            _refuse(report, path, "Invalid", message)
        elif name.lower() in _OF_TTL:
            _refuse(report, where, "Forbidden", "use ttl")
        elif name.lower() in seen:
            _refuse(report, where, "Duplicate", f'"{name}"')
        elif not _VALUE.fullmatch(value):
            message = f'"{value}" (expected printable ASCII without ;, at most 256 characters)'
            _refuse(report, where, "Invalid", message)
        seen.add(name.lower())


def _read_seconds(text: str, report: Report, path: str) -> int:
    try:
        age = parse_duration(text)
    except ValueError:
        age = -1
    if age < 0 or age % 1000:
        message = f'"{text}" (expected a duration of whole seconds such as 0s, 10s or 1h30m)'
        _refuse(report, path, "Invalid", message)
    return age // 1000


def _write_attributes(given: dict[str, str]) -> str:
    """Return them in the order of their names: an API server keeps no other."""
    message = {name.lower() for name in given}
    every = {
        name: value for name, value in _DEFAULTS.items() if name.lower() not in message
    } | given
    return "".join(
        f"; {name}={value}" if value else f"; {name}" for name, value in sorted(every.items())
    )


def _check_word(word: str, words: Sequence[str], report: Report, path: str) -> bool:
    if word in words:
        return True
    message, hint = supported_text(word, words), did_you_mean(word, words)
    report.refuse(path, "NotSupported", message, hint, condition="Invalid")
    return False


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")
