"""Fleets: the tables of all fleets, the streams that follow them, and the answers of every node.

In: shards by fleet ("<namespace>/<name>") from the pipeline, streams from the server, answers from
sessions and other replicas.
Out: wake-ups for the streams of changed fleets, `acks` for statuses, `on_ack` when they change. No
I/O.
Must never: let a stream delay others for longer than they request, or read a table's content.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from controller.xds_server.ack import Ack, Acks, merge
from controller.xds_server.history import History
from controller.xds_server.limits import ITEMS_AT_ONCE, ITEMS_SECONDS, LOG_ENTRIES
from controller.xds_server.refusal import Refused
from edgefast.table.shards import Shards
from edgefast.xds.proxy_problems import ProxyProblem
from edgefast.xds.rejections import COMMIT, TABLE
from edgefast.xds.rejections import Refused as Refusal
from edgefast.xds.ticket_messages import encode_given
from edgefast.xds.ticket_secrets import TicketSecrets

__all__ = ["Ack", "Fleet", "Fleets", "Follower", "Refusal", "Report"]

#: What another replica said: fleet -> answers.
Report = dict[str, Acks]


class Follower(Protocol):
    """A stream, as its fleet sees it. Both calls return at once."""

    def wake(self) -> None:
        """The table is another one."""

    def end(self, refused: Refused) -> None:
        """The stream has to end."""


class Fleet:
    """One fleet: its table, its streams by node, its answers."""

    def __init__(self, name: str, log_entries: int = LOG_ENTRIES) -> None:
        self.name = name
        self.history = History(log_entries)
        self.followers: dict[str, Follower] = {}
        self.busy: set[Follower] = (
            set()
        )  # those that have more to send before they wait for an answer
        self.own = Acks()
        self.came = 0.0  # when the last stream began, by the loop's clock
        self.forgetting: asyncio.TimerHandle | None = None
        self.tickets = b""  # the message with its keys of session tickets; b"": there are none


class Fleets:
    """The tables of all fleets, the streams that follow them, and the nodes' answers."""

    def __init__(self, identity: str = "", *, log_entries: int = LOG_ENTRIES) -> None:
        """`identity`: this controller's, for `Ack.via`."""
        self.identity = identity
        self.on_ack: Callable[[str], None] = _nobody
        self.on_node: Callable[[str, str], None] = (
            _nobody  # fleet, node: an answer of our own streams
        )
        #: Fleets that stay although nobody wants them, some of them with a table that is not here.
        self.kept: Collection[str] = ()
        #: What a fleet's proxies make session tickets with; see `renew_tickets`.
        self.tickets: Callable[[str], TicketSecrets | None] = lambda fleet: None
        self._log_entries = log_entries
        self._fleets: dict[str, Fleet] = {}
        self._others: dict[str, Report] = {}  # via -> what it said
        self._busy: set[str] = set()  # fleets with a busy stream
        self._quiet = asyncio.Event()  # there is none
        self._quiet.set()

    # --- the pipeline's side --------------------------------------------------------------------

    def publish(self, fleet: str, shards: Shards) -> bool:
        """Make `shards` what a fleet serves and wake its streams; False when it is the table that it has."""
        if "/" not in fleet:
            raise ValueError(f'"{fleet}" is not the key of a fleet (NAMESPACE/NAME)')
        known = self._fleets.get(fleet)
        if known is None:
            known = self._fleets[fleet] = Fleet(fleet, self._log_entries)
            self._renew_tickets(known)
        if not known.history.publish(shards):
            return False
        for follower in tuple(known.followers.values()):
            self._begin(known, follower)
            follower.wake()
        return True

    def renew_tickets(self) -> None:
        """Have all proxies told of the keys of session tickets, which are others now."""
        for fleet in self._fleets.values():
            self._renew_tickets(fleet)
            for follower in tuple(fleet.followers.values()):
                follower.wake()

    def _renew_tickets(self, fleet: Fleet) -> None:
        given = self.tickets(fleet.name)
        if given is not None:
            fleet.tickets = encode_given(given)

    async def sent(self, seconds: float) -> None:
        """Return when every stream has sent what it can of what was published, `seconds` from now at the latest."""
        if not self._quiet.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._quiet.wait()

    def remove(self, fleet: str) -> None:
        """Forget a fleet and end its streams; nothing happens when there is none."""
        known = self._fleets.pop(fleet, None)
        if known is None:
            return
        for follower in tuple(known.followers.values()):
            follower.end(Refused("removed", "UNAVAILABLE", "the fleet was removed"))
            self.rest(known, follower)
        for others in self._others.values():
            others.pop(fleet, None)

    def acks(self, fleet: str) -> Mapping[str, Ack]:
        """Return what is known of every node of a fleet, whoever has its stream."""
        known = self._fleets.get(fleet)
        if known is None:
            return {}
        others = [acks[fleet] for acks in self._others.values() if fleet in acks]
        return merge((known.own, *others), known.history.version)

    def version(self, fleet: str) -> str:
        """Return the version of a fleet's present table, "" when there is none."""
        known = self._fleets.get(fleet)
        return known.history.version if known is not None else ""

    def names(self) -> tuple[str, ...]:
        """Return the fleets that have a table."""
        return tuple(self._fleets)

    # --- the streams' side ----------------------------------------------------------------------

    def find(self, fleet: str) -> Fleet:
        """Return a fleet for a stream; Refused when it has no table here."""
        known = self._fleets.get(fleet)
        if known is None and fleet in self.kept:
            message = (
                "no controller handles the fleet, and this controller does not have its last table"
            )
            raise Refused("unknown_fleet", "UNAVAILABLE", message)
        if known is None:
            raise Refused(
                "unknown_fleet", "PERMISSION_DENIED", "no Gateway has a fleet of this name"
            )
        return known

    def follow(self, fleet: Fleet, node: str, follower: Follower) -> None:
        """Enter a stream; an older one of the same node ends: its pod has a new one."""
        if self._fleets.get(fleet.name) is not fleet:
            raise Refused("removed", "UNAVAILABLE", "the fleet was removed")
        older = fleet.followers.pop(node, None)
        fleet.followers[node] = follower
        self._begin(fleet, follower)
        if fleet.forgetting is not None:
            fleet.came = asyncio.get_running_loop().time()
        if older is not None:
            self.rest(fleet, older)
            older.end(Refused("replaced", "ABORTED", "the node has a newer stream"))

    def leave(self, fleet: Fleet, node: str, follower: Follower) -> None:
        """Take a stream out; the node is gone unless it has another one."""
        self.rest(fleet, follower)
        if fleet.followers.get(node) is not follower:
            return
        del fleet.followers[node]
        known = fleet.own.get(node)
        if known is not None:
            self._note(fleet, node, Ack(known.version, known.refused, False, self.identity))

    def rest(self, fleet: Fleet, follower: Follower) -> None:
        """Note that a stream has sent all that it can for now: all there is, or up to an answer that it waits for."""
        fleet.busy.discard(follower)
        if fleet.busy:
            return
        together = fleet.name in self._busy and self._fleets.get(fleet.name, fleet) is fleet
        if together:
            self._busy.discard(fleet.name)
            if not self._busy:
                self._quiet.set()
        if together and fleet.history.items <= ITEMS_AT_ONCE:
            fleet.history.forget_items()
        elif fleet.history.items and fleet.forgetting is None:
            # A whole table, or a change that late streams send one after the other as their answers come.
            fleet.came = asyncio.get_running_loop().time()
            self._forget(fleet)

    def _forget(self, fleet: Fleet) -> None:
        loop = asyncio.get_running_loop()
        left = fleet.came + ITEMS_SECONDS - loop.time()
        if left > 0 or fleet.busy:
            fleet.forgetting = loop.call_later(max(left, 1.0), self._forget, fleet)
        else:
            fleet.forgetting = None
            fleet.history.forget_items()

    def _begin(self, fleet: Fleet, follower: Follower) -> None:
        fleet.busy.add(follower)
        self._busy.add(fleet.name)
        self._quiet.clear()

    def tell(
        self,
        fleet: Fleet,
        node: str,
        version: str,
        refused: tuple[Refusal, ...],
        problems: tuple[ProxyProblem, ...] = (),
    ) -> None:
        """Note what a node of ours answered."""
        self._note(fleet, node, Ack(version, refused, True, self.identity, problems))

    def turn_away(self, fleet: Fleet, node: str, version: str, reason: str) -> None:
        """Note a node that can be given no table of ours, and why; it goes on with what it has."""
        refused = (Refusal(COMMIT, TABLE, reason),)
        self._note(fleet, node, Ack(version, refused, False, self.identity))

    def _note(self, fleet: Fleet, node: str, ack: Ack) -> None:
        if fleet.own.put(node, ack) and self._fleets.get(fleet.name) is fleet:
            self.on_node(fleet.name, node)
            self.on_ack(fleet.name)

    # --- the other replicas' side ---------------------------------------------------------------

    def own_acks(self) -> Mapping[str, Acks]:
        """Return the answers of our own streams, by fleet."""
        return {name: fleet.own for name, fleet in self._fleets.items()}

    def open_report(self, via: str) -> Report:
        """Begin anew with what another replica knows; its report before this one is void."""
        report: Report = {}
        for fleet in self._others.pop(via, {}):
            self.on_ack(fleet)
        self._others[via] = report
        return report

    def hear(self, report: Report, fleet: str, node: str, ack: Ack) -> None:
        """Note what another replica knows; also of a fleet whose table is not here yet."""
        if report.setdefault(fleet, Acks()).put(node, ack):
            self.on_ack(fleet)

    def close_report(self, via: str, report: Report) -> None:
        """Drop what another replica said, unless it has begun anew."""
        if self._others.get(via) is report:
            del self._others[via]
            for fleet in report:
                self.on_ack(fleet)


def _nobody(*_: str) -> None:
    """Nobody listens yet."""
