"""Limits: limit-rps, limit-rpm and limit-connections of an Ingress -> a RateLimitFilter of type Local.

In: the annotations of an Ingress, the statuses of the ConfigMap. Out: `Limits`, then the spec. All rules of the Ingress use one filter
and count together, as nginx does with its zone for each Ingress. A bucket of nginx passes `burst` requests beyond the first one, so a
full bucket here has one token more.
Source: ingress-nginx internal/ingress/annotations/ratelimit, nginx.tmpl; nginx ngx_http_limit_req_module (nodelay).
Must never: leave out a limit that is set.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from edgefast.api.edge.ratelimitfilter import (
    LocalRateLimit,
    LocalRateLimitRule,
    RateLimitFilter,
    RateLimitFilterSpec,
    RateLimitSelector,
    RateLimitSourceCIDR,
    RateLimitValue,
)
from edgefast.api.gateway.httproutefilter import HTTPRouteFilter
from edgefast.api.ingress.ingress import Ingress
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import MARK
from edgefast.api.model.reference import LocalObjectReference
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.values import NoValue, Rejected, is_addresses, read_range

__all__ = ["Limits", "make_filter", "read_limits", "refer_to_filter"]

#: Ranges of limit-allowlist: bound of `except` of a RateLimitFilter.
_MAX_EXEMPT = 256
#: limit-burst-multiplier of ingress-nginx.
_DEFAULT_MULTIPLIER = 5

_MOST = 2**32 - 1
#: Seconds until an empty bucket is full: bound of a RateLimitFilter.
_MAX_FILL = 365 * 86_400


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one Ingress for each client address; 0: no limit."""

    rps: int = 0
    rpm: int = 0
    connections: int = 0  # requests in progress
    multiplier: int = _DEFAULT_MULTIPLIER
    exempt: tuple[str, ...] = ()  # ranges of addresses without limits


def read_limits(reader: AnnotationReader) -> Limits | None:
    """Return the limits of an Ingress; None without one, or where the Ingress is refused or closed."""
    values, aliases = reader.values, ("limit-whitelist",)
    name = values.find_name("limit-allowlist", aliases)
    values.seen.update(("limit-allowlist", *aliases, "limit-burst-multiplier"))
    numbers = [_read_limit(reader, one) for one in ("limit-rps", "limit-rpm", "limit-connections")]
    try:
        listed = values.text("limit-allowlist", is_addresses, aliases).split(",")
    except Rejected:
        reader.refuse(name, "not a list of addresses and ranges")
        return None
    except NoValue:
        listed = []
    if not any(number > 0 for number in numbers):
        return None
    exempt = {known for one in listed if (known := read_range(one.strip()))}
    if len(exempt) > _MAX_EXEMPT:
        reader.close(name, f"{len(exempt)} ranges are not served (at most {_MAX_EXEMPT})")
        return None
    rps, rpm, connections = numbers
    return Limits(
        rps=rps,
        rpm=rpm,
        connections=connections,
        multiplier=reader.read(_DEFAULT_MULTIPLIER, values.number, "limit-burst-multiplier"),
        exempt=tuple(sorted(exempt)),
    )


def _read_limit(reader: AnnotationReader, name: str) -> int:
    """Read a limit; 0 and less set no limit, as in ingress-nginx."""
    try:
        return max(0, reader.values.number(name))
    except Rejected:
        reader.refuse(name, "not a number")
    except NoValue:
        pass
    return 0


def refer_to_filter(ingress: Ingress) -> HTTPRouteFilter:
    """Return the filter of a rule that counts in the limits of its Ingress."""
    ref = LocalObjectReference(group=EDGE_GROUP, kind="RateLimitFilter", name=_name_of(ingress))
    return HTTPRouteFilter(type="ExtensionRef", extension_ref=ref)


def make_filter(
    ingress: Ingress, limits: Limits, rate_status: int, parallel_status: int
) -> RateLimitFilter:
    """Return the RateLimitFilter of an Ingress; statuses: of a request above a rate, and of one too many in progress."""
    meta = ObjectMeta(name=_name_of(ingress), namespace=ingress.metadata.namespace)
    return RateLimitFilter(metadata=meta, spec=_translate(limits, rate_status, parallel_status))


def _name_of(ingress: Ingress) -> str:
    return f"{ingress.metadata.name}{MARK}-limits"


def _translate(limits: Limits, rate_status: int, parallel_status: int) -> RateLimitFilterSpec:
    source = RateLimitSourceCIDR(type="Distinct", except_=limits.exempt)
    selectors = (RateLimitSelector(source_cidr=source),)
    rules = [
        LocalRateLimitRule(
            client_selectors=selectors,
            limit=RateLimitValue(requests=min(number, _MOST), unit=unit),
            burst=_burst(min(number, _MOST), limits.multiplier, seconds),
            status_code=rate_status,
            shared=True,
        )
        for number, unit, seconds in _rates(limits)
        if number > 0
    ]
    if limits.connections > 0:
        parallel = LocalRateLimitRule(
            client_selectors=selectors,
            max_parallel_requests=min(limits.connections, _MOST),
            status_code=parallel_status,
            shared=True,
        )
        rules.append(parallel)
    return RateLimitFilterSpec(type="Local", local=LocalRateLimit(rules=tuple(rules)))


def _rates(limits: Limits) -> tuple[tuple[int, Literal["Second", "Minute"], int], ...]:
    return (limits.rps, "Second", 1), (limits.rpm, "Minute", 60)


def _burst(number: int, multiplier: int, seconds: int) -> int:
    """Return the tokens of a full bucket, as many as a RateLimitFilter allows."""
    wanted = number * max(0, multiplier) + 1
    return min(wanted, _MOST, _MAX_FILL * number // seconds)
