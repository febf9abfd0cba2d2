"""Traffic: the effective traffic settings of a rule, and their policies.

In: a rule's traffic units in their order; the first `ceilings` of them are upper bounds. Out:
`Setting`s. The twin of core/traffic/traffic.pyx; a test compares both. The listener's own bound of a
body is one more ceiling (`bound_body`).
Must never: take "unlimited" (0) for the smaller of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from edgefast import ir

T = TypeVar("T")

#: Whose the listener's bound of a body is.
LISTENER = "EdgeProxy spec.http.bodySize"
#: How names of GRPCRoutes begin.
_CALLS = "grpcroute/"
#: Fields of ir.Traffic in the order in which they are told.
FIELDS = (
    "body_size",
    "request_timeout",
    "idle_timeout",
    "send_timeout",
    "connect_timeout",
    "retry_timeout",
    "max_connection_requests",
)
#: Those of them that are counts of what a backend has: 0 is none of it, not without end.
COUNTS = (
    "max_connections",
    "max_endpoint_connections",
    "max_pending",
    "max_requests",
    "max_retries",
)


class Setting(msgspec.Struct, frozen=True):
    """One leaf."""

    field: str  # of ir.Traffic
    value: int  # milliseconds or bytes; 0: without end
    unit: str  # whose it is; "": the route's own
    cut_by: str = ""  # whose ceiling it is, where the unit asked for more: a unit's, or LISTENER


def find_first(
    units: Sequence[ir.PolicyUnit], read: Callable[[ir.Traffic], T | None]
) -> tuple[T, str] | None:
    """Return a setting that is no bound and the name of its policy: the first unit with the setting."""
    for unit in units:
        found = read(unit.traffic) if unit.traffic is not None else None
        if found is not None:
            return found, unit.name
    return None


def settle_traffic(
    units: Sequence[ir.PolicyUnit], ceilings: int, own: ir.Timeouts | None = None
) -> dict[str, Setting]:
    """Return each setting that any unit (or the route, of the request's timeout) says, by field."""
    found = {}
    for field in (*FIELDS, *COUNTS):
        one = _settle(field, units, ceilings, own)
        if one is not None:
            found[field] = one
    return found


def _settle(
    field: str, units: Sequence[ir.PolicyUnit], ceilings: int, own: ir.Timeouts | None
) -> Setting | None:
    bounds, message = _list(field, units[:ceilings]), _list(field, units[ceilings:])
    if field == "request_timeout" and own is not None and own.request is not None:
        message.insert(0, ("", own.request))
    endless = math.inf if field in FIELDS else 0
    least = min(bounds, key=lambda one: one[1] or endless, default=None)
    if not message:
        return None if least is None else Setting(field, least[1], least[0])
    name, value = message[0]
    if least is not None and (least[1] or endless) < (value or endless):
        return Setting(field, least[1], name, cut_by=least[0])
    return Setting(field, value, name)


def _is_less(one: int, other: int) -> bool:
    return one != 0 and (other == 0 or one < other)


def bound_body(http: ir.HttpSettings, settings: dict[str, Setting]) -> dict[str, Setting]:
    """Return settings as they are on a listener: no policy lets a body be larger than its own bound."""
    one = settings.get("body_size")
    if one is None or not _is_less(http.body_size, one.value):
        return settings
    cut = msgspec.structs.replace(one, value=http.body_size, cut_by=LISTENER)
    return {**settings, "body_size": cut}


def _list(field: str, units: Sequence[ir.PolicyUnit]) -> list[tuple[str, int]]:
    return [
        (unit.name, value)
        for unit in units
        if unit.traffic is not None and (value := getattr(unit.traffic, field)) is not None
    ]


def own_timeouts(rule: ir.Rule) -> ir.Timeouts | None:
    """Return what the route itself says; that calls of a GRPCRoute may last is only a default."""
    if rule.timeouts is not None and not rule.timeouts.request and rule.route.startswith(_CALLS):
        return None
    return rule.timeouts


def find_shut(settings: Mapping[str, Setting]) -> Setting | None:
    """Return the bound that lets nothing through to a rule's backends; None: there is none."""
    found = (
        settings.get(field)
        for field in ("max_requests", "max_connections", "max_endpoint_connections")
    )
    return next((one for one in found if one is not None and one.value == 0), None)


def body_limit(http: ir.HttpSettings, settings: dict[str, Setting]) -> int:
    """Return the bytes that a request's body may have, 0 for any number; of settings that `bound_body` has seen."""
    one = settings.get("body_size")
    return http.body_size if one is None else one.value
