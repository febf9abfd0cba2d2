"""ConsoleSource: the data of the controller's console: tables of all fleets, their proxies, problems of all objects.

In: an App.
Out: a `Source` (edgefast.console), called in the event loop. Request counts are only in the console
of each proxy.
Must never: show key material, or keep more of an old table than `ChangeRecord` does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from controller.app import App
from controller.proxy_problems import find_troubles, list_troubles
from controller.xds_server.ack import Ack
from edgefast import __version__
from edgefast.console import ChangeRecord, Counters, HistoryBudget, Member, Table
from edgefast.diagnostics.problem import Problem
from edgefast.explain import Live
from edgefast.table import Shards

__all__ = ["ConsoleSource"]


class ConsoleSource:
    """Supplies the controller's console with the tables of all fleets, proxies and problems."""

    kind: Literal["proxy", "controller"] = "controller"
    bounds: tuple[float, ...] = ()

    def __init__(self, app: App, why_not_ready: Callable[[], str]) -> None:
        self._app = app
        self._why_not_ready = why_not_ready
        self._started = time.time()
        self._room = HistoryBudget()
        self._past: dict[str, ChangeRecord] = {}  # of fleets that are there, as below
        self._accepted: dict[str, float] = {}
        self._swept = 0  # the revision of which that is true
        app.pipeline.on_change = self._on_change

    def _on_change(self, fleet: str, before: Shards | None, after: Shards | None) -> None:
        self._sweep()
        if after is None:
            return
        now = time.time()
        past = self._past.get(fleet)
        if past is None:
            past = self._past[fleet] = ChangeRecord(self._room)
        past.note(before, after, now)
        self._accepted[fleet] = now

    def _sweep(self) -> None:
        """Forget fleets that are gone: their last table and what it replaced."""
        outcome = self._app.pipeline.outcome
        if outcome is None or outcome.revision == self._swept:
            return
        self._swept = outcome.revision
        for fleet in self._past.keys() - outcome.shards.keys():
            self._past.pop(fleet).clear()
            del self._accepted[fleet]

    def fleets(self) -> Sequence[str]:
        """Return the fleets that have a table, by key."""
        self._sweep()
        return sorted(self._app.fleets.names())

    def past(self, fleet: str) -> ChangeRecord:
        """Return the last changes of a fleet's table."""
        return self._past.get(_name(fleet)) or ChangeRecord()

    def problems(self) -> Sequence[Problem]:
        """Return those of objects and of the configuration, and those that proxies tell."""
        outcome = self._app.pipeline.outcome
        found = outcome.problems() if outcome is not None else ()
        own = (*self._app.file.problems, *self._app.denials.problems())
        return (*own, *found, *find_troubles(self._app.fleets))

    def table(self, fleet: str) -> Table | None:
        """Return a fleet's table, an empty one while there is no fleet at all."""
        outcome, name = self._app.pipeline.outcome, _name(fleet)
        if outcome is None or name not in outcome.shards:
            return None if fleet else Table(state=(), version="", accepted=0.0, resources={})
        shards = outcome.shards[name]
        return Table(
            state=(name, shards.version),
            version=shards.version,
            accepted=self._accepted.get(name, 0.0),
            resources=shards.resources,
            fleet=next(one for one in outcome.translation.ir.fleets if one.name == name),
            translation=outcome.translation,
        )

    def facts(self) -> Mapping[str, Any]:
        """Return the controller in words."""
        app = self._app
        why_not = self._why_not_ready()
        outcome = app.pipeline.outcome
        return {
            "name": app.options.pod_name,
            "version": __version__,
            "state": "late" if why_not else "good",
            "said": why_not or "ready",
            "started": self._started,
            "rows": [
                ("identity", app.options.identity),
                ("leader", f"{app.lease.holder or 'none'}{' (this one)' * app.lease.leading}"),
                ("controller name", app.board.controller),
                ("revision", str(outcome.revision if outcome is not None else 0)),
                *((kind, str(number)) for kind, number in sorted(app.cache.counts.items())),
            ],
        }

    def members(self) -> Sequence[Member]:
        """Return the proxies of all fleets."""
        return list(self._list_members())

    def _list_members(self) -> Iterator[Member]:
        fleets = self._app.fleets
        for key in sorted(fleets.names()):
            wanted = fleets.version(key)
            for node, ack in sorted(fleets.acks(key).items()):
                yield _describe(key, node, ack, wanted)

    def count(self) -> Counters:
        """Return nothing: requests are counted by proxies."""
        return Counters()

    async def live(self) -> Live | None:
        """Return None: endpoints are known to proxies."""
        return None

    async def counters(self) -> Sequence[Mapping[str, Any]] | str | None:
        """Return None: counters are known to proxies."""
        return None


def _describe(fleet: str, node: str, ack: Ack, wanted: str) -> Member:
    refused = tuple(("refused", f"{one.type} {one.name}: {one.reason}") for one in ack.refused[:5])
    via = (("via", ack.via),) if ack.via else ()
    problems = list_troubles(ack)
    state, message = _evaluate(ack, wanted, bool(problems))
    return Member(
        name=node,
        group=fleet,
        version=ack.version,
        state=state,
        said=message,
        facts=(*via, *refused, *(("trouble", one.message) for one in problems[:5])),
    )


def _evaluate(ack: Ack, wanted: str, troubled: bool) -> tuple[Literal["good", "late", "bad"], str]:
    if not ack.connected:
        return "bad", "is not connected"
    if ack.refused:
        return "bad", "refused a part of the table"
    if ack.version != wanted:
        return "late", "serves an older table"
    return ("late", "serves, with problems") if troubled else ("good", "serves")


def _name(fleet: str) -> str:
    return fleet.rpartition("/")[2]
