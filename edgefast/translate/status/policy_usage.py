"""Policy usage: counts, below each Gateway, the rules where a unit applies, loses, or cannot apply.

In: (old, new) pairs of route outcomes, the previous usage. Out: the next usage, and the changed
units. The cost is proportional to the pairs; without attached policies there is no work. A rule
that answers 500 anyway does not count.
Must never: differ from a count without a previous one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from edgefast.api.model.route_name import ref_of_key
from edgefast.api.snapshot import Key
from edgefast.collections.sorted_map import EMPTY, SortedMap
from edgefast.translate.route.outcome import RouteOutcome, RoutePart, StreamPart

__all__ = ["PolicyUse", "PolicyUses", "count_uses"]

_Way = Literal["holds", "before", "lost", "refused", "layer4"]
#: Unit, Gateway, how, and the unit by which it is beaten or the route that it cannot hold for.
_Use = tuple[str, Key, _Way, str]


class PolicyUse(msgspec.Struct, frozen=True, gc=False):
    """What becomes of one unit below one Gateway."""

    holds: bool = False
    lost: tuple[str, ...] = ()  # by whom
    refused: tuple[str, ...] = ()  # routes of layer 4 that it closes, each with the field
    layer4: tuple[str, ...] = ()  # routes of layer 4 to which its settings of connections apply
    before: bool = (
        False  # of requests before they have a backend; all backends are treated without it
    )


class PolicyUses(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all units; never changed after they were made."""

    counts: SortedMap[_Use, int] = EMPTY
    touched: frozenset[str] = frozenset()  # units that differ from the translation before

    def of(self, unit: str, gateway: Key) -> PolicyUse:
        """Return what becomes of a unit below a Gateway."""
        found: dict[str, list[str]] = {}
        for use in self.counts.starting_at((unit, gateway, "", "")):
            if use[:2] != (unit, gateway):
                break
            found.setdefault(use[2], []).append(use[3])
        lost, refused, layer4 = (tuple(found.get(way, ())) for way in ("lost", "refused", "layer4"))
        return PolicyUse("holds" in found, lost, refused, layer4, "before" in found)

    def gateways_of(self, unit: str) -> Iterator[Key]:
        """Give the Gateways below which anything becomes of a unit."""
        for use in self.counts.starting_at((unit, ("", ""), "", "")):
            if use[0] != unit:
                return
            yield use[1]


def count_uses(
    changes: Iterable[tuple[RouteOutcome | None, RouteOutcome | None]],
    previous: PolicyUses,
    *,
    attached: bool,
) -> PolicyUses:
    """Return the uses after (old, new) pairs; `attached`: there are policies."""
    if not attached and not previous.counts:
        return previous
    deltas: Counter[_Use] = Counter()
    for old, new in changes:
        deltas.update(_uses_of(new))
        deltas.subtract(_uses_of(old))
    counts = previous.counts.edit()
    touched: set[str] = set()
    for use, delta in deltas.items():
        before = counts.get(use, 0)
        if delta and before + delta:
            counts[use] = before + delta
        elif delta:
            del counts[use]
        if bool(before) != bool(before + delta):
            touched.add(use[0])
    if not touched and not previous.touched and not any(deltas.values()):
        return previous
    return PolicyUses(counts=counts.done(), touched=frozenset(touched))


def _uses_of(outcome: RouteOutcome | None) -> Counter[_Use]:
    found: Counter[_Use] = Counter()
    if outcome is None:
        return found
    seen: set[tuple[Key, int]] = set()
    for places in (outcome.hosts, outcome.streams):
        for listener, _, part in places:
            namespace, name, *_ = listener.split("/")
            gateway = (namespace, name)
            if (gateway, id(part)) not in seen:
                seen.add((gateway, id(part)))
                found.update((unit, gateway, way, who) for unit, way, who in _uses_in(part))
    return found


def _uses_in(part: RoutePart | StreamPart) -> Iterator[tuple[str, _Way, str]]:
    if isinstance(part, StreamPart):
        above = part.above
        route = str(ref_of_key(part.key)) if above.policies or above.traffic else ""
        closing = dict(part.refused)
        yield from ((unit, "refused", f"{route} ({field})") for unit, field in part.refused)
        yield from ((unit, "holds", "") for unit in above.policies if unit not in closing)
        yield from ((unit, "holds", "") for unit in above.traffic)
        yield from ((unit, "layer4", route) for unit in above.traffic)
        yield from ((unit, "lost", by) for unit, by in above.lost)
        return
    for rule in part.rules:
        if not rule.status:
            treated = [one.treatment for one in rule.backends if one.treatment is not None]
            ahead = {*rule.traffic} if rule.each_treated() else set()
            ahead.difference_update(*(one.traffic for one in treated))
            for unit in rule.units():
                yield unit, "before" if unit in ahead else "holds", ""
            yield from ((unit, "lost", by) for unit, by in rule.lost)
            yield from ((unit, "lost", by) for one in treated for unit, by in one.lost)
