"""Progress: the tables that reached a fleet's proxies, and the proxies that are behind.

In: revisions as they are published, the version of each proxy, the ready proxies, and the time.
Out: whether a revision is in force everywhere, and `Reach` for the Programmed message (architecture
D6). A version is a digest and has no order; the revisions in which it was current have one. A proxy
that has not followed within PATIENCE is a straggler: it is named and no longer waited for, until it
has caught up.
Must never: read a clock, or report a table as in force that no ready proxy has while ready proxies
exist.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

#: Seconds that a proxy may take before nothing waits for it any more.
PATIENCE = 10.0
_MAX_STEPS = 1000  # a proxy that is gone for good must not make memory grow


NO_REASONS: Mapping[str, str] = MappingProxyType({})


class Reach(msgspec.Struct, frozen=True):
    """How far the tables of a fleet are."""

    ready: int = 0  # proxies that count
    behind: tuple[str, ...] = ()  # stragglers, sorted
    why: Mapping[str, str] = NO_REASONS  # of some of them, why they cannot follow
    deserted: bool = False  # they have been looked at, and there is none


class _Step(msgspec.Struct):
    version: str
    first: int  # revision at which the version became current
    last: int  # the latest revision at which it was
    since: float


class Progress:
    """One fleet. Revisions grow."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []  # oldest first; nothing before what every proxy has
        self._last: dict[str, int] = {}  # version -> the latest revision at which it was current
        self._served: dict[str, str] = {}  # proxy -> version
        self._why: Mapping[str, str] = NO_REASONS
        self._required: set[str] = set()
        self.ready_known = False

    def publish(self, revision: int, version: str, now: float) -> None:
        """Note that the tables of `revision` are `version` and on their way."""
        self._last[version] = revision
        if self._steps and self._steps[-1].version == version:
            self._steps[-1].last = revision
        else:
            self._steps.append(_Step(version, revision, revision, now))
        self._forget()

    def see_proxies(
        self, ready: Iterable[str], served: dict[str, str], why: Mapping[str, str] = NO_REASONS
    ) -> None:
        """Take the present proxies: the ready ones and, by name, the version that each connected one serves.

        `why`: the reason why one of them cannot serve the newest there is.

        One that is connected and has a table counts too: it may be ready before that is seen here.
        """
        self._served = dict(served)
        self._why = why
        self._required = {*ready, *served}
        self.ready_known = True
        self._forget()

    def reached(self, now: float) -> int:
        """Return the newest revision that is in force; with no proxy at all, the newest there is."""
        if not self._steps or not self.ready_known:
            return 0
        if not self._required:
            return self._steps[-1].last
        places = self._places()
        waited = [at for at, since in places.values() if now - since < PATIENCE]
        # All behind: nothing is in force that nobody has, however long it takes.
        return min(waited) if waited else max(at for at, _ in places.values())

    def reach(self, now: float) -> Reach:
        """Return who counts and who is behind."""
        late = {
            version for version, (_, since) in self._places().items() if now - since >= PATIENCE
        }
        if not late:
            deserted = self.ready_known and not self._required
            return Reach(len(self._required), deserted=deserted)
        behind = sorted(one for one in self._required if self._served.get(one, "") in late)
        why = {one: self._why[one] for one in behind if one in self._why}
        return Reach(len(self._required), tuple(behind), why or NO_REASONS)

    def next_look(self, now: float) -> float:
        """Return the seconds until somebody's patience ends, 0 for never."""
        ends = [since + PATIENCE - now for _, since in self._places().values()]
        return min((end for end in ends if 0 < end <= PATIENCE), default=0.0)

    def _places(self) -> dict[str, tuple[int, float]]:
        """Return for each version that a proxy serves its latest revision, and since when a newer one is missing.

        Of a proxy that has the newest there is, that is never. There are few versions, however many proxies.
        """
        found: dict[str, tuple[int, float]] = {}
        for version in {self._served.get(one, "") for one in self._required}:
            at = self._last.get(version, 0)
            index = bisect_right(self._steps, at, key=_first)
            since = self._steps[index].since if index < len(self._steps) else math.inf
            found[version] = (at, since)
        return found

    def _forget(self) -> None:
        """Drop the steps before those that any proxy serves; the newest and what is waited for stay."""
        if len(self._steps) < 2:
            return
        served = {self._served.get(one, "") for one in self._required}
        at = min((self._last.get(one, 0) for one in served), default=self._steps[-1].last)
        if self._steps[0].last >= at and len(self._steps) <= _MAX_STEPS:
            return
        self._steps = [step for step in self._steps if step.last >= at][-_MAX_STEPS:]
        self._last = {step.version: step.last for step in self._steps}


def _first(step: _Step) -> int:
    return step.first
