"""Backend policy: the policies of one backend of a rule, where the backend has its own.

In: the served table, a share of a rule (ir.BackendPolicy).
Out: the effective settings there, as text with their policies; the response where a policy of the
backend is broken. The twin of core/traffic/traffic.pyx (`apply_backend_policy`); tests/explain
compare both.
Must never: report what is decided before a request has a backend: that is the rule's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgefast import ir
from edgefast.explain.backend import (
    BACKEND_FIELDS,
    COUNTED,
    describe_overridden,
    describe_units,
    settle_backend,
)
from edgefast.explain.duration import write_time
from edgefast.explain.explanation import Answer
from edgefast.explain.policy_checks import answer_broken
from edgefast.explain.served_fleet import Served
from edgefast.explain.traffic import Setting, bound_body, own_timeouts, settle_traffic

__all__ = [
    "answer_by_backend_policy",
    "describe_backend_policy",
    "list_backend_policies",
    "settle_rule",
    "settle_shares",
    "settle_backend_policy",
    "treating",
    "units_at_backends",
]


def treating(
    served: Served, rule: ir.Rule, share: ir.BackendRef | None
) -> tuple[tuple[ir.PolicyUnit, ...], int]:
    """Return the units that say how requests are treated at a share, and how many of them are Overrides."""
    message = (share.treatment if share is not None else None) or rule
    return served.units(message.traffic), message.ceilings


def answer_by_backend_policy(served: Served, share: ir.BackendRef | None) -> Answer | None:
    """Return the answer to requests of a share that a policy of its backend closes; None: none does."""
    if share is None or share.treatment is None:
        return None
    units = served.units(share.treatment.traffic)
    broken = next((one for one in units if one.status or one.traffic is None), None)
    return answer_broken(broken) if broken is not None else None


def units_at_backends(rule: ir.Rule, units: Sequence[ir.PolicyUnit]) -> Sequence[ir.PolicyUnit]:
    """Return those of a rule's units that say how its backends are treated: none, where each has a treatment of its own."""
    return () if rule.each_treated() else units


def settle_rule(
    rule: ir.Rule, units: Sequence[ir.PolicyUnit], http: ir.HttpSettings | None
) -> dict[str, Setting]:
    """Return the numbers that are in force for a rule, below a listener's own if these are known."""
    found = settle_traffic(units, rule.ceilings, own_timeouts(rule))
    if rule.each_treated():
        found = {field: one for field, one in found.items() if field not in BACKEND_FIELDS}
    return bound_body(http, found) if http is not None else found


def settle_backend_policy(units: Sequence[ir.PolicyUnit], ceilings: int) -> dict[str, Setting]:
    """Return the numbers that are in force at a backend."""
    found = settle_traffic(units, ceilings)
    return {field: found[field] for field in BACKEND_FIELDS if field in found}


def describe_backend_policy(served: Served, share: ir.BackendRef) -> tuple[str, ...]:
    """Return what is in force at a share that is not treated as its rule says, and what does not hold there."""
    if share.treatment is None:
        return ()
    units = served.units(share.treatment.traffic)
    return (*list_backend_policies(units, share.treatment),)


def list_backend_policies(
    units: Sequence[ir.PolicyUnit], message: ir.BackendPolicy
) -> Iterator[str]:
    """Give the same, of units that are known already."""
    broken = next((one for one in units if one.status or one.traffic is None), None)
    if broken is not None:
        yield f"{broken.name}: answers {broken.status or 500}: {broken.reason}"
    else:
        for one in settle_backend_policy(units, message.ceilings).values():
            cut = f", cut by {one.cut_by}" if one.cut_by else ""
            lost = describe_overridden(units[message.ceilings :], one.field, one.unit, one.cut_by)
            yield f"{one.unit}: {_write(one)}{cut}{lost}"
        yield from describe_units(units)
    yield from (f"{name} has no effect: overridden by {by}" for name, by in message.lost)


def _write(one: Setting) -> str:
    if one.field == "max_connection_requests" and not one.value:
        return f"{COUNTED[one.field]} any number"
    if one.field in COUNTED:
        return f"{COUNTED[one.field]} {one.value} at most"
    if one.field in ("connect_timeout", "retry_timeout"):
        what = {"connect_timeout": "connect", "retry_timeout": "repeat requests"}[one.field]
        return f"{what} within {write_time(one.value)}" if one.value else f"no time limit to {what}"
    return (
        f"the peer must read data within {write_time(one.value)}"
        if one.value
        else "no time limit for reading data"
    )


def settle_shares(served: Served, rule: ir.Rule) -> tuple[tuple[str, object], ...]:
    """Return what is in force at shares that are not treated as their rule says, in a form that two tables can be compared by."""
    found: list[tuple[str, object]] = []
    for share in rule.backends:
        if share.treatment is None:
            continue
        units, ceilings = treating(served, rule, share)
        at: list[tuple[str, object]] = [
            (one.field, one.value) for one in settle_backend_policy(units, ceilings).values()
        ]
        at += settle_backend(units)
        found += [(f"{share.cluster} {field}", value) for field, value in at]
    return tuple(found)
