"""Canary: the canary-* annotations -> rules that divide requests of a location between its Service and the canary of that Service.

In: the annotations of an Ingress; the canary of the location's upstream, and both backendRefs. Out: `Canary`; `Share`s in order:
conditions on a header or a cookie, then the weights. A canary belongs to the upstream: it applies to every location with that Service
and port.
Source: ingress-nginx balancer.lua, `route_to_alternative_balancer`.
Must never: send requests to a canary without endpoints; it is left out.
"""

from __future__ import annotations

import re

import msgspec

from edgefast.api.edge.httproutefilter import HTTPCookieMatch
from edgefast.api.gateway.httproute import HTTPBackendRef, HTTPHeaderMatch
from edgefast.api.model.regex import check_regex
from edgefast.translate.ingress.annotation_fields import Canary
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.values import BASIC, REGEX

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,256}")
#: Least sum of the weights (balancer.lua).
_LEAST_TOTAL = 100
#: Largest weight of a backendRef.
_MOST = 1_000_000


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a location: its further conditions, and where its requests go."""

    backends: tuple[HTTPBackendRef, ...]
    headers: tuple[HTTPHeaderMatch, ...] = ()
    cookie: HTTPCookieMatch | None = None


def read_canary(reader: AnnotationReader) -> Canary | None:
    """Return the annotations of an Ingress with canary: true, None without it."""
    values = reader.values
    enabled = reader.read(False, values.flag, "canary")
    found = Canary(
        weight=reader.read(0, values.number, "canary-weight"),
        total=reader.read(100, values.number, "canary-weight-total"),
        header=reader.read("", values.text, "canary-by-header", BASIC),
        value=reader.read("", values.text, "canary-by-header-value", BASIC),
        pattern=reader.read("", values.text, "canary-by-header-pattern", REGEX),
        cookie=reader.read("", values.text, "canary-by-cookie", BASIC),
    )
    if enabled:
        if found.header and found.pattern and not found.value:
            wrong = check_regex(found.pattern)
            if wrong:
                message = (
                    f"not an RE2 expression ({wrong}); no value of the header selects the canary"
                )
                reader.note("canary-by-header-pattern", message)
        return found
    if found != Canary():
        reader.warn("canary", "canary-* annotations have no effect without canary: true")
    return None


def split_shares(
    primary: HTTPBackendRef, alternative: HTTPBackendRef, canary: Canary
) -> list[Share]:
    """Return the rules of a location whose Service has a canary, in the order of nginx."""
    shares: list[Share] = []
    if canary.header and _TOKEN.fullmatch(canary.header):
        name = canary.header
        if canary.value:
            shares.append(_by_header(name, canary.value, alternative))
        elif canary.pattern:
            if not check_regex(canary.pattern):
                value = f"(?s:.*?)(?:{canary.pattern})(?s:.*)"
                shares.append(_by_header(name, value, alternative, regex=True))
        else:
            shares.append(_by_header(name, "always", alternative))
            shares.append(_by_header(name, "never", primary))
    if canary.cookie and _TOKEN.fullmatch(canary.cookie):
        shares.append(_by_cookie(canary.cookie, "always", alternative))
        shares.append(_by_cookie(canary.cookie, "never", primary))
    shares.append(Share(backends=_weigh(primary, alternative, canary)))
    return shares


def _by_header(name: str, value: str, ref: HTTPBackendRef, *, regex: bool = False) -> Share:
    match = HTTPHeaderMatch(type="RegularExpression" if regex else "Exact", name=name, value=value)
    return Share(backends=(ref,), headers=(match,))


def _by_cookie(name: str, value: str, ref: HTTPBackendRef) -> Share:
    return Share(backends=(ref,), cookie=HTTPCookieMatch(name=name, value=value))


def _weigh(
    primary: HTTPBackendRef, alternative: HTTPBackendRef, canary: Canary
) -> tuple[HTTPBackendRef, ...]:
    """Return both backends with their weights; nginx draws a number from 1 to the total."""
    total = max(_LEAST_TOTAL, canary.total)
    weight = min(max(0, canary.weight), total)
    if total > _MOST:
        weight, total = weight * _MOST // total, _MOST
    if weight == 0:
        return (primary,)
    if weight == total:
        return (alternative,)
    return (
        msgspec.structs.replace(primary, weight=total - weight),
        msgspec.structs.replace(alternative, weight=weight),
    )
