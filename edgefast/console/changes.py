"""Changes: the effect of the last table changes on rules and requests.

In: a `History`.
Out: the list of steps, and one step as text: rules that were added, removed or changed, and other
resources. If the changed hosts are not too large, also the example requests with another result
(edgefast.explain). The source position of a rule does not count: a new line in a file does not
change all rules below it.
Must never: show the content of a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from edgefast import ir
from edgefast.console.change_history import History, Step
from edgefast.console.reader import Reader
from edgefast.explain.changes import Change, rank_change
from edgefast.explain.compare import compare_requests
from edgefast.explain.fleet_pair import Pair
from edgefast.explain.layer4_diff import compare_streams
from edgefast.explain.listener_diff import compare_endpoints, compare_hosts
from edgefast.explain.match_failure import describe_match
from edgefast.explain.served_fleet import Served
from edgefast.explain.zone_diff import compare_zones
from edgefast.table import Resource, Shards
from edgefast.table.shards import Key

MOST = 200  # lines of each list
ENTRIES = 6000  # of the hosts that differ, up to which requests are tried

_Rules = dict[tuple[str, int], list[tuple[ir.Rule, tuple[ir.Match, ...]]]]


class StepLine(msgspec.Struct, frozen=True):
    """One step in the list."""

    number: int
    at: float
    before: str
    after: str
    resources: int


class Moved(msgspec.Struct, frozen=True):
    """One rule or resource."""

    what: str  # added, removed, changed
    kind: str  # rule, listener, host, backend, policy, certificate, store
    name: str
    where: str = ""
    said: str = ""


class Changes(msgspec.Struct, frozen=True):
    """The answer."""

    steps: tuple[StepLine, ...]
    step: StepLine | None = None
    moved: tuple[Moved, ...] = ()
    more_moved: int = 0
    requests: tuple[Change, ...] = ()
    more_requests: int = 0
    tried: int = 0  # example requests
    why_not: str = ""  # requests were not tried


def list_changes(history: History, number: int | None) -> Changes:
    """Return the steps, and one of them: the newest, unless another is asked for."""
    lines = tuple(_line(one) for one in history.steps)
    wanted = number if number is not None else (lines[0].number if lines else 0)
    found = history.rewind(wanted)
    if found is None:
        return Changes(lines)
    step, before, after = found
    reader = Reader()
    old = _forget_sources(reader.read(_without_hidden(before)))
    new = _forget_sources(reader.read(_without_hidden(after)))
    moved = [*_move_hosts(old, new), *_move_others(old, new), *_move_hidden(step)]
    requests, tried, why_not = _try_requests(old, new, before, after)
    return Changes(
        steps=lines,
        step=_line(step),
        moved=tuple(moved[:MOST]),
        more_moved=max(0, len(moved) - MOST),
        requests=tuple(requests[:MOST]),
        more_requests=max(0, len(requests) - MOST),
        tried=tried,
        why_not=why_not,
    )


def _line(step: Step) -> StepLine:
    count = len(step.undo) + len(step.hidden)
    return StepLine(step.number, step.at, step.before, step.after, count)


def _without_hidden(resources: Mapping[Key, Resource]) -> dict[Key, Resource]:
    return {key: one for key, one in resources.items() if key[0] not in ("secret", "limit_store")}


def _forget_sources(fleet: ir.Fleet) -> ir.Fleet:
    hosts = tuple(
        msgspec.structs.replace(
            host,
            rules=tuple(msgspec.structs.replace(rule, source="") for rule in host.rules),
        )
        for host in fleet.virtual_hosts
    )
    streams = tuple(msgspec.structs.replace(one, source="") for one in fleet.stream_routes)
    return msgspec.structs.replace(fleet, virtual_hosts=hosts, stream_routes=streams)


def _try_requests(
    old: ir.Fleet, new: ir.Fleet, before: Mapping[Key, Resource], after: Mapping[Key, Resource]
) -> tuple[list[Change], int, str]:
    hosts = [
        {(one.listener, one.hostname): one for one in side.virtual_hosts} for side in (old, new)
    ]
    moved = _differ(old.clusters, new.clusters) | _differ(old.policies, new.policies)
    entries = sum(
        max(len(one.entries) for one in (first, second) if one is not None)
        for key in hosts[0].keys() | hosts[1].keys()
        if (first := hosts[0].get(key)) != (second := hosts[1].get(key))
        or (first is not None and _goes_to(first, moved))
    )
    pair = Pair(
        Served(old, Shards(before, "")),
        Served(new, Shards(after, "")),
    )
    found: list[Change] = []
    why_not = ""
    if entries <= ENTRIES:
        found += compare_requests(pair)
    else:
        why_not = f"{entries} matches are on hosts that differ, too many to compare here; use edgefast diff"
    found += compare_streams(pair)
    found += compare_hosts(pair)
    found += compare_endpoints(pair)
    found += compare_zones(pair)
    found.sort(key=rank_change)
    return found, pair.examples, why_not


def _differ(old: Sequence[Any], new: Sequence[Any]) -> set[str]:
    """Return the names of resources that are not the same."""
    if old == new:
        return set()
    before, after = _named(old), _named(new)
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _goes_to(host: ir.VirtualHost, names: set[str]) -> bool:
    """Tell whether a host's rules name some of these clusters, or units of policies."""
    return bool(names) and any(
        not names.isdisjoint(rule.units()) or any(share.cluster in names for share in rule.backends)
        for rule in host.rules
    )


# --- rules and resources ------------------------------------------------------------------------


def _move_hosts(old: ir.Fleet, new: ir.Fleet) -> Iterator[Moved]:
    sides = [
        {(one.listener, one.hostname): one for one in side.virtual_hosts} for side in (old, new)
    ]
    for key in sorted(sides[0].keys() | sides[1].keys()):
        before, after = sides[0].get(key), sides[1].get(key)
        if before == after:
            continue
        where = f"{key[1]} on {key[0]}"
        if before is None or after is None:
            yield Moved("removed" if after is None else "added", "host", key[1], key[0])
        yield from _move_rules(_rules(before), _rules(after), where)


def _rules(host: ir.VirtualHost | None) -> _Rules:
    found: _Rules = {}
    matches: dict[int, list[ir.Match]] = {}
    for entry in host.entries if host is not None else ():
        matches.setdefault(entry.rule, []).append(entry.match)
    for number, rule in enumerate(host.rules if host is not None else ()):
        form = (rule, tuple(matches.get(number, ())))
        found.setdefault((rule.route, rule.index), []).append(form)
    return found


def _move_rules(old: _Rules, new: _Rules, where: str) -> Iterator[Moved]:
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        name = f"{key[0]} rule {key[1]}"
        if before is None or after is None:
            matches = [one for _, found in (before or after or ()) for one in found]
            message = "; ".join(describe_match(one) for one in matches[:3])
            yield Moved("removed" if after is None else "added", "rule", name, where, message)
        else:
            yield Moved(
                "changed", "rule", name, where, ", ".join(_differences(before[0], after[0]))
            )


def _differences(
    before: tuple[ir.Rule, tuple[ir.Match, ...]], after: tuple[ir.Rule, tuple[ir.Match, ...]]
) -> Iterator[str]:
    if before[1] != after[1]:
        yield "matches"
    for field in ir.Rule.__struct_fields__:
        if field not in ("source", "index", "route") and (
            getattr(before[0], field) != getattr(after[0], field)
        ):
            yield field.replace("_", " ")


def _move_others(old: ir.Fleet, new: ir.Fleet) -> Iterator[Moved]:
    for kind, before, after in (
        ("listener", _named(old.listeners), _named(new.listeners)),
        ("stream route", _streams(old), _streams(new)),
        ("backend", _named(old.clusters), _named(new.clusters)),
        ("policy", _named(old.policies), _named(new.policies)),
    ):
        for name in sorted(before.keys() | after.keys()):
            one, other = before.get(name), after.get(name)
            if one == other:
                continue
            what = "added" if one is None else "removed" if other is None else "changed"
            fields = [
                field.replace("_", " ")
                for field in (
                    one.__struct_fields__ if one is not None and other is not None else ()
                )
                if getattr(one, field) != getattr(other, field)
            ]
            yield Moved(what, kind, name, said=", ".join(fields))


def _streams(fleet: ir.Fleet) -> Mapping[str, ir.StreamRoute]:
    return {f"{one.hostname} on {one.listener}": one for one in fleet.stream_routes}


def _named(
    found: Sequence[ir.Listener] | Sequence[ir.Cluster] | Sequence[ir.PolicyUnit],
) -> dict[str, ir.Listener | ir.Cluster | ir.PolicyUnit]:
    return {one.name: one for one in found}


def _move_hidden(step: Step) -> Iterator[Moved]:
    for type_, name in step.hidden:
        kind = "secret" if type_ == "secret" else "store of rate limits"
        yield Moved("changed", kind, name)
