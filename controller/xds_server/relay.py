"""Relay: a follower replica reports the answers of its nodes to the leader.

In: `Fleets.on_node`, the holder of the Lease ("<pod>_<ip>").
Out: one open call to the leader over mutual TLS: first every node, then changes, the last state of
each. A failed call is repeated with jittered backoff.
Must never: hold more than one entry for each node, or report to its own replica.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from controller.xds_server.credentials import ServerKeys
from controller.xds_server.fleets import Fleets
from controller.xds_server.reports import REPORT, Line, encode_reports
from controller.xds_server.transport import ReportEnded, Talk, call_report
from edgefast.netaddr import read_address

__all__ = ["PORT", "Relay"]

log = logging.getLogger("edgefast.controller.push")

#: Where replicas take reports, on their pods' addresses.
PORT = 18002

_BACKOFF = (0.2, 5.0)  # seconds: first, most
_LOOK_EVERY = 1.0  # seconds between looks at the Lease if nobody says that it has changed
_WRITE_DEADLINE = 10.0


class Relay:
    """Sends the acknowledgements of this replica's streams to the leading replica."""

    def __init__(
        self,
        fleets: Fleets,
        keys: ServerKeys,
        *,
        name: str,
        holder: Callable[[], str],
        leading: Callable[[], bool],
        port: int = PORT,
    ) -> None:
        """`name`: of the controller's Service, which its certificate has; `holder`: identity of the leader, or ""."""
        self.connected_to = ""  # holder whom our call has reached
        self._fleets = fleets
        self._keys = keys
        self._name = name
        self._holder = holder
        self._leading = leading
        self._port = port
        self._wakeup = asyncio.Event()
        # What is still to be told; None while nobody is: whoever is told anew hears of every node first.
        self._changed: dict[tuple[str, str], None] | None = None
        fleets.on_node = self._note

    def look(self) -> None:
        """The Lease may have another holder."""
        self._wakeup.set()

    async def run(self) -> None:
        """Report, until cancelled."""
        delay, most = _BACKOFF
        while True:
            holder = self._other()
            if not holder:
                await self._wait(_LOOK_EVERY)
                continue
            try:
                await call_report(
                    self._target(holder), self._name, self._keys, REPORT, self._talk_to(holder)
                )
            except ReportEnded as ended:
                log.info("relay: the call to %s ended: %s", holder, ended)
            finally:
                reached, self.connected_to = bool(self.connected_to), ""
                self._changed = None
            delay = _BACKOFF[0] if reached else min(delay * 2, most)
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))

    def _note(self, fleet: str, node: str) -> None:
        if self._changed is not None:
            self._changed[fleet, node] = None
            self._wakeup.set()

    def _other(self) -> str:
        """Return the holder if it is another replica whose address we know."""
        holder = self._holder()
        if self._leading() or holder == self._fleets.identity or not self._target(holder):
            return ""
        return holder

    def _target(self, holder: str) -> str:
        address = read_address(holder.rpartition("_")[2])
        if address is None:
            return ""
        host = f"[{address}]" if address.version == 6 else str(address)
        return f"{host}:{self._port}"

    async def _wait(self, seconds: float) -> None:
        self._wakeup.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wakeup.wait()
        except TimeoutError:
            return

    def _talk_to(self, holder: str) -> Talk:
        async def talk(write: Callable[[bytes], Awaitable[None]]) -> None:
            fleets = self._fleets
            changed: dict[tuple[str, str], None] = {
                (fleet, node): None
                for fleet, acks in fleets.own_acks().items()
                for node, _ in acks.items()
            }
            self._changed = {}
            first = True
            while self._other() == holder:
                if changed or first:
                    own = fleets.own_acks()
                    lines = [
                        Line(fleet, node, ack)
                        for fleet, node in changed
                        if fleet in own and (ack := own[fleet].get(node)) is not None
                    ]
                    for data in encode_reports(fleets.identity, lines):
                        async with asyncio.timeout(_WRITE_DEADLINE):
                            await write(data)
                    self.connected_to = holder
                    first = False
                if not self._changed:
                    await self._wait(_LOOK_EVERY)
                changed, self._changed = self._changed or {}, {}

        return talk
