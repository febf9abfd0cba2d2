"""Dispatch: passes the results of a pipeline run to the components that apply them, and collects the proxies' answers.

In: outcomes; acknowledgements; observed states of fleets.
Out: tables to the stream, manifests to the fleets, statuses to the status writer, in this order. A
status therefore never precedes its tables. A fleet with a temporarily refused Gateway keeps its
tables and objects, because a typing error must not remove a load balancer.
Must never: decide the content of a table, a manifest or a status.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Protocol

from controller.fleets.cutover import Kept
from controller.fleets.migration import Migration
from controller.fleets.observe import FleetProblem
from controller.fleets.placement import Manifest
from controller.fleets.released import ReleasedObjects
from controller.pipeline import Outcome
from controller.proxy_problems import find_key_troubles
from controller.status.rejections import NO_REJECTIONS, Refusal, Rejections, attribute_rejections
from controller.status.tracker import StatusTracker
from controller.status.writer import Writer
from controller.xds_server.fleets import Ack, Fleets
from edgefast import ir
from edgefast.api.snapshot import Key
from edgefast.translate.settings import FleetState
from edgefast.xds.rejections import find_lasting

__all__ = ["Dispatch"]

_NAMED = 5  # proxies that are turned away, by name
#: Seconds in which acknowledgements are gathered: a thousand proxies answer one table in a few looks.
_GATHER = 0.002
#: Seconds that streams have at most to send a table before manifests and statuses are looked at.
_HEAD_START = 0.005


class Infra(Protocol):
    """The functions that dispatch needs from the fleets."""

    def render(self, fleets: Iterable[ir.Infra]) -> Mapping[str, Sequence[Manifest]]:
        """Return the manifests of each fleet by "namespace/name"."""

    def want(self, fleets: Mapping[str, Sequence[Manifest]], keep: Iterable[str]) -> None:
        """Take all manifests; fleets in `keep` are left as they are."""

    def states(self) -> Sequence[FleetState]:
        """Return what is seen of the fleets."""

    def fleet_problem(self, fleet: str) -> FleetProblem:
        """Return what keeps proxies of a fleet ("namespace/name") from taking traffic."""

    def kept(self, outcome: Outcome, serving: Callable[[str, str], Set[str]]) -> Kept:
        """Return the fleets that exist, are in no outcome, and have to go on serving (fleets/cutover.py).

        `serving` gives the nodes of a fleet that serve a version of its table.
        """


class Dispatch:
    """Passes a pipeline's outcome to push, infra and status, and returns acknowledgements."""

    def __init__(
        self,
        fleets: Fleets,
        infra: Infra,
        board: StatusTracker,
        writer: Writer,
        count_nack: Callable[[str], None] = lambda type_: None,
        leading: Callable[[], bool] = lambda: True,
        parting: ReleasedObjects | None = None,
    ) -> None:
        """`count_nack` gets the type of each resource that a proxy refuses anew."""
        self.parting = parting or ReleasedObjects(board)
        self._leading = leading
        self._overlap = Migration()
        self._fleets = fleets
        self._infra = infra
        self._tracker = board
        self._writer = writer
        self._count_nack = count_nack
        self._keys: dict[str, str] = {}  # fleet's name -> "namespace/name"
        self._tables: dict[str, ir.Fleet] = {}  # by key
        self._refusals: dict[str, frozenset[Refusal]] = {}
        self._acked: set[str] = set()
        self.first = asyncio.Event()  # every fleet has been published once
        #: Told while fleets are kept, when all ready proxies of another one serve its present table, or time is up.
        self.on_served: Callable[[], None] = lambda: None
        #: Told of what keeps proxies of a fleet from taking traffic, once while it lasts: fleet and text.
        self.on_trouble: Callable[[str, str], None] = lambda fleet, text: None
        self._last_problem: dict[str, frozenset[str]] = {}
        self._kept = Kept()
        self._published: Outcome | None = (
            None  # the last one, with the migrating Gateways of `_overlap`
        )
        self._timer: asyncio.TimerHandle | None = None
        fleets.on_ack = self.on_ack

    # --- from the pipeline ----------------------------------------------------------------------

    def publish(self, outcome: Outcome) -> None:
        """Give proxies the tables of an outcome; `tell` comes after."""
        states = {f"{one.namespace}/{one.name}": one for one in self._infra.states()}
        now = time.monotonic()
        outcome = self._overlap.extend(outcome, states.get, self._serving_surely, now)
        self._look_later(now)
        translation = outcome.translation
        keys = {one.name: f"{one.namespace}/{one.name}" for one in translation.infra}
        self._kept = self._infra.kept(outcome, self._serving)
        self._fleets.kept = self._kept.fleets
        for name, shards in outcome.shards.items():
            if name in outcome.changed or self._keys.get(name) != keys[name]:
                self._fleets.publish(keys[name], shards)
        for key in set(self._fleets.names()) - set(keys.values()) - self._kept.fleets:
            self._fleets.remove(key)
            self._refusals.pop(key, None)
            self._last_problem.pop(key, None)
        self._keys = keys
        self._tables = {keys[one.name]: one for one in translation.ir.fleets}
        self._published = outcome

    async def sent(self) -> None:
        """Return when the streams have sent it: proxies wait for the end of a table, and nobody for what comes after."""
        await self._fleets.sent(_HEAD_START)

    def tell(self) -> None:
        """Have fleets applied and statuses written, of the outcome that was published last."""
        outcome = self._published
        assert outcome is not None
        keys, translation = self._keys, outcome.translation
        self._infra.want(self._infra.render(translation.infra), self._kept.fleets)
        fleet_of: dict[Key, str] = {
            gateway: keys[fleet] for gateway, fleet in outcome.fleet_of().items()
        }
        versions = {keys[name]: shards.version for name, shards in outcome.shards.items()}
        now = time.monotonic()
        self._writer.mark_soon(
            self._tracker.want(translation.statuses, outcome.revision, versions, fleet_of, now)
            | self.parting.take(outcome, self._kept, self._infra.states())
        )
        self.look_at(self._tables)
        self.first.set()

    def _look_later(self, now: float) -> None:
        """Have the pipeline run again when an overlap ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if ends := self._overlap.next_end():
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(ends - now, lambda: self.on_served())

    # --- from proxies ---------------------------------------------------------------------------

    def on_ack(self, key: str) -> None:
        """A proxy of a fleet has answered."""
        if not self._acked:
            asyncio.get_running_loop().call_later(_GATHER, self._gather)
        self._acked.add(key)

    def _gather(self) -> None:
        acked, self._acked = self._acked, set()
        present = acked & self._tables.keys()
        self.look_at(present)
        self._writer.mark_now()
        if (self._kept.fleets or self._overlap) and any(map(self._is_served, present)):
            self.on_served()

    def _serving(self, key: str, version: str) -> set[str]:
        return {node for node, ack in self._fleets.acks(key).items() if ack.version == version}

    def _serving_surely(self, key: str, version: str) -> Set[str]:
        """Return who serves a table; to a follower, which hears of its own proxies alone, all ready ones do."""
        if self._leading():
            return self._serving(key, version)
        return frozenset(self._ready().get(key, ()))

    def _is_served(self, key: str) -> bool:
        ready = set(self._ready().get(key, ()))
        return bool(ready) and self._serving(key, self._fleets.version(key)) >= ready

    def _ready(self) -> dict[str, tuple[str, ...]]:
        return {f"{one.namespace}/{one.name}": one.ready for one in self._infra.states()}

    def look_at_all(self) -> None:
        """What is seen of fleets has changed."""
        self.look_at(self._tables)

    def look_at(self, keys: Iterable[str]) -> None:
        """Report to the StatusTracker which proxies of some fleets are ready, and their tables."""
        ready = self._ready()
        now = time.monotonic()
        for key in tuple(keys):
            there = frozenset(ready.get(key, ()))
            acks = self._fleets.acks(key)
            served: dict[str, str] = {}
            why: dict[str, str] = {}
            refused: set[Refusal] = set()
            for node, ack in acks.items():
                if node in there or (ack.connected and ack.version):
                    served[node] = ack.version
                    if reason := find_lasting(ack.refused):
                        why[node] = reason
                if ack.connected:
                    refused |= {Refusal(node, r.type, r.name, r.reason) for r in ack.refused}
            found = self._rejections(key, frozenset(refused))
            unfetched = find_key_troubles(self._tables[key], acks.values())
            self._writer.mark(
                self._tracker.see_proxies(key, there, served, found, now, why)
                | self._tracker.see_keys(key, unfetched)
            )
            self._note(key, acks)

    def report_again(self) -> None:
        """Tell of all trouble: this replica leads from now on."""
        self._last_problem.clear()
        self.parting.tell(anew=True)
        self.look_at_all()

    def _note(self, key: str, acks: Mapping[str, Ack]) -> None:
        """Tell what there is to say of a fleet besides how far its table is."""
        plight = self._infra.fleet_problem(key)
        turned_away = (
            f"{node} is not ready: {reason}"
            for node in sorted(plight.unready & acks.keys())
            if (reason := find_lasting(acks[node].refused))
        )
        problem = [*((plight.trouble,) if plight.trouble else ()), *islice(turned_away, _NAMED)]
        for text in frozenset(problem) - self._last_problem.get(key, frozenset()):
            self.on_trouble(key, text)
        self._last_problem[key] = frozenset(problem)
        kept = self._kept.let_go.get(key)
        waiting = (*self._kept.waiting.get(key, ()), *self._overlap.waiting.get(key, ()))
        let_go = (*self._overlap.let_go.get(key, ()), *((kept,) if kept else ()))
        notes = (*problem, *let_go, *waiting)
        self._writer.mark(self._tracker.see_fleet(key, notes, awaited=bool(waiting)))

    def _rejections(self, key: str, refused: frozenset[Refusal]) -> Rejections:
        for one in refused - self._refusals.get(key, frozenset()):
            self._count_nack(one.type)
        self._refusals[key] = refused
        if not refused:
            return NO_REJECTIONS
        # What is said of the table as a whole is told of the straggler that the proxy then is.
        return attribute_rejections(
            self._tables[key], (one for one in refused if one.type != "commit")
        )
