"""Merge: which policy units between a Gateway and a rule apply to the rule, and which unit wins over each other one.

In: the levels of one place, outermost first (Gateway, its listener or ListenerSet, that one's
listener, route, rule). Each level has its policies, oldest first.
Out: `Effective`: names of units in the order in which a request meets them. Policies of one kind
merge among themselves, by unit:
- On one target the older policy provides a unit, for Overrides and for others each, and decides
  whether anything is replaced.
- Replace drops what levels above set, unless it is an Override.
- authorization: all Overrides and, of the others, the most specific.
- apiKeyAuth, basicAuth, oidc, jwt, extAuth, each: the highest Override, else the most specific.
- traffic: all, leaf by leaf.
- XBackendTrafficPolicies, which target only backends and set what no other kind sets: the oldest.
- closed: always; the merge type of such a policy is unknown.
Source: GEP-713 (hierarchical policies), shared design of policies.
Must never: drop a unit of an Override, look at the content of a unit, or depend on the order in
which policies came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from edgefast.translate.deps.policy_summary import CLOSED, Family, Level, PolicySummary, Unit

__all__ = ["Effective", "merge_levels"]


#: Units by which a client proves who it is, in the order in which they are asked for.
_PROOFS: tuple[Unit, ...] = ("apiKeyAuth", "basicAuth", "oidc", "jwt")


class Effective(msgspec.Struct, frozen=True, gc=False):
    """What holds for one rule; the fields are those of ir.Rule."""

    policies: tuple[str, ...] = ()  # closed ones, authorizations, proofs, authorisation services
    traffic: tuple[str, ...] = ()  # Overrides, highest first; then the most specific first
    ceilings: int = 0  # how many of `traffic` are Overrides
    lost: tuple[tuple[str, str], ...] = ()  # units that do not hold, and by whom


class _Held(NamedTuple):
    """A unit that has its target, with how its policy merges."""

    name: str
    override: bool


@lru_cache(maxsize=4096)
def merge_levels(levels: tuple[Level, ...]) -> Effective:
    """Return what holds where these levels apply; those without policies may be left out."""
    lost: dict[str, str] = {}
    security, traffic = _held(levels, "security", lost), _held(levels, "traffic", lost)
    constraint = _held(levels, "xtraffic", lost)
    closed = [one.name for one in (*security[CLOSED], *traffic[CLOSED], *constraint[CLOSED])]
    rules = _all_overrides(security["authorization"], lost)
    proofs = [name for unit in _PROOFS for name in _highest(security[unit], lost)]
    service = _highest(security["extAuth"], lost)
    leaves = traffic["traffic"]
    ceilings = dict.fromkeys(one.name for one in leaves if one.override)
    defaults = dict.fromkeys(one.name for one in reversed(leaves) if not one.override)
    defaults.update(dict.fromkeys(one.name for one in constraint["traffic"]))
    # A policy may be attached at several levels: what holds by one of them holds.
    requested = (*closed, *rules, *proofs, *service)
    holding = {**dict.fromkeys(requested), **ceilings, **defaults}
    return Effective(
        policies=tuple(dict.fromkeys(requested)),
        traffic=(*ceilings, *defaults),
        ceilings=len(ceilings),
        lost=tuple(one for one in lost.items() if one[0] not in holding),
    )


def _held(levels: Sequence[Level], family: Family, lost: dict[str, str]) -> dict[Unit, list[_Held]]:
    """Return the units of a kind of policy that are not beaten on their own target and not replaced, outermost first."""
    held: dict[Unit, list[_Held]] = {
        "closed": [],
        "authorization": [],
        "apiKeyAuth": [],
        "basicAuth": [],
        "oidc": [],
        "jwt": [],
        "extAuth": [],
        "traffic": [],
    }
    by_level = [tuple(one for one in level if one.family == family) for level in levels]
    dropped, by = 0, ""
    for at, level in enumerate(by_level):
        if level and level[0].merge == "Replace":
            dropped, by = at, level[0].name
    for at, level in enumerate(by_level):
        for shape, unit, first in _claims(level):
            name, override = shape.unit(unit), shape.merge == "Override"
            if first is not shape:
                lost[name] = first.unit(unit)
            elif at < dropped and not override and unit != CLOSED:
                lost[name] = by
            else:
                held[unit].append(_Held(name, override))
    return held


def _claims(level: Level) -> Iterator[tuple[PolicySummary, Unit, PolicySummary]]:
    """Give each unit on one target with its policy, and the policy that has it: of closed ones each, Overrides and others apart."""
    first: dict[tuple[Unit, bool], PolicySummary] = {}
    for shape in level:
        for unit in shape.units:
            rank = (unit, shape.merge == "Override")
            yield shape, unit, shape if unit == CLOSED else first.setdefault(rank, shape)


def _all_overrides(held: Sequence[_Held], lost: dict[str, str]) -> list[str]:
    """Return every Override, and the most specific of the others."""
    found = [one.name for one in held if one.override]
    others = [one.name for one in held if not one.override]
    if others:
        lost.update(dict.fromkeys(others[:-1], others[-1]))
    return found + others[-1:]


def _highest(held: Sequence[_Held], lost: dict[str, str]) -> list[str]:
    """Return the highest Override, else the most specific."""
    if not held:
        return []
    winner = next((one for one in held if one.override), held[-1])
    lost.update((one.name, winner.name) for one in held if one is not winner)
    return [winner.name]
