"""Policies: the policy units that apply to a rule, as text, with allowed and refused requests of the last seconds.

In: a state, a rule.
Out: lines of its detail, tags of its line. The counts of a unit cover all rules to which it
applies.
Must never: show a credential that an authorization rule compares.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast import ir
from edgefast.console.state import State
from edgefast.explain.backend import find_backend
from edgefast.explain.backend_policy import list_backend_policies, settle_rule, units_at_backends
from edgefast.explain.bandwidth import describe_bandwidth, find_bandwidth
from edgefast.explain.describe import describe_unit, write_setting
from edgefast.explain.encoding import describe_compression, find_compression
from edgefast.explain.fault import describe_fault, find_fault
from edgefast.explain.override import describe_overrides, find_overrides
from edgefast.explain.session_persistence import describe_session, find_session
from edgefast.explain.traffic import LISTENER, Setting
from edgefast.table.row_label import label_policy

_WORDS = ("let in", "refused", "failed", "known")
#: Settings of a listener that those of policies stand in place of, or may not pass.
_OF_LISTENER = {
    "body_size": "body_size",
    "request_timeout": "route_timeout",
    "idle_timeout": "stream_idle_timeout",
}
_MISSING = "not found in the table: answers 500"


def list_policies(state: State, rule: ir.Rule) -> Iterator[tuple[str, str]]:
    """Give each unit that is asked about a rule's requests: its name, what it says, what was counted."""
    for name in rule.policies:
        unit = state.index.policies.get(name)
        message = describe_unit(unit) if unit is not None else _MISSING
        yield name, f"{message}{_count(state, name)}"
    if rule.ext_auth is not None:
        yield "ExternalAuth", describe_unit(ir.PolicyUnit(name="", ext_auth=rule.ext_auth))


def list_filters_of(state: State, listener: ir.Listener) -> Iterator[tuple[str, str]]:
    """Give each filter that all requests of a listener meet before they are routed."""
    for name in listener.filters:
        unit = state.index.policies.get(name)
        message = describe_unit(unit) if unit is not None else _MISSING
        yield name.partition("#")[2], f"{message}{_count(state, name)}"


def list_settings(
    state: State, rule: ir.Rule, http: ir.HttpSettings | None
) -> Iterator[tuple[str, str]]:
    """Give the settings of policies that are in force, whose they are, and what the EdgeProxy says (`http`, of the rule's listener)."""
    found = [state.index.policies.get(name) for name in rule.traffic]
    units = [one for one in found if one is not None]
    for name, unit in zip(rule.traffic, found, strict=True):
        if unit is None or unit.status:
            yield name, describe_unit(unit) if unit is not None else _MISSING
            return
    for one in settle_rule(rule, units, http).values():
        if one.unit or one.cut_by:
            label, value = write_setting(one.field, one.value)
            owner = f"{one.unit or 'the route'}, cut by {one.cut_by}" if one.cut_by else one.unit
            yield label, f"{value}, {owner}{_beside(one, http)}"
    fault = find_fault(units)
    if fault is not None:
        yield "fault", f"injected fault: {describe_fault(fault.fault)}, {fault.unit}"
    overrides, owner = find_overrides(units)
    if overrides:
        yield "answers", f"{describe_overrides(overrides)}, {owner}"
    encoded = find_compression(units)
    if encoded is not None:
        yield "encodings", f"{describe_compression(encoded[0])}, {encoded[1]}"
    limited = find_bandwidth(units)
    if limited is not None:
        yield "bandwidth", f"{describe_bandwidth(limited[0])}, {limited[1]}"
    for part in find_backend(units_at_backends(rule, units)):
        yield part.leaf.label, f"{part.text()}, {part.unit}"
    kept = find_session(rule, units)
    if kept is not None:
        yield "sessions", f"{describe_session(kept[0])}, {kept[1]}"


def _beside(one: Setting, http: ir.HttpSettings | None) -> str:
    """Return what the EdgeProxy says of the same, "" where it says nothing or has cut the setting."""
    own = getattr(http, _OF_LISTENER[one.field]) if http and one.field in _OF_LISTENER else None
    if own is None or one.cut_by == LISTENER:
        return ""
    most = " at most" if one.field == "body_size" else ""
    return f" (EdgeProxy: {write_setting(one.field, own)[1]}{most if own else ''})"


def list_shares(state: State, rule: ir.Rule) -> Iterator[tuple[str, str]]:
    """Give how requests are treated at backends where policies of their own say something, too."""
    for share in rule.backends:
        if share.treatment is None:
            continue
        found = {name: state.index.policies.get(name) for name in share.treatment.traffic}
        units = [
            unit or ir.PolicyUnit(name=name, status=500, reason="it was not found in the table")
            for name, unit in found.items()
        ]
        yield from (
            (share.cluster, message) for message in list_backend_policies(units, share.treatment)
        )


def list_lost(rule: ir.Rule) -> Iterator[tuple[str, str]]:
    """Give units that do not hold, and by whom."""
    return ((name, f"overridden by {whom}") for name, whom in rule.lost)


def tag_policies(state: State, rule: ir.Rule) -> str:
    """Return the tag of a rule's line, "" where no policy holds."""
    names = rule.units()
    units = [state.index.policies.get(name) for name in names]
    if any(one is None or one.status for one in units):
        return "policy broken"
    count = len(names) + (rule.ext_auth is not None)
    return f"{count} polic{'y' if count == 1 else 'ies'}" if count else ""


def _count(state: State, name: str) -> str:
    rates = state.numbers.policy_rates(label_policy(name))
    reported = [
        f"{rate:.3g}/s {word}" for rate, word in zip(rates or (), _WORDS, strict=False) if rate
    ]
    return f" ({', '.join(reported)})" if reported else ""
