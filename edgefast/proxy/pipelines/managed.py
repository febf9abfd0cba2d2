"""Managed: the pipeline of `edgefast proxy`, from the controller's tables to served traffic.

In: an agent, the stream's address and credentials.
Out: every table of the controller, published; the acknowledgement that it is served, or the refused
parts with reasons. If no table arrives soon after a start, the proxy serves the last valid one from
disk and retries.
Must never: stop the service or remove readiness because of a controller's action or silence.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence

import msgspec

import edgefast
from edgefast.daemon.process import keep_all
from edgefast.diagnostics.problem import Problem
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.process.sd_notify import notify
from edgefast.proxy.sockets.bind_address import is_of
from edgefast.proxy.tables.last_good import LastGoodError
from edgefast.table import Shards
from edgefast.table.format import table_format
from edgefast.xds.client import XdsClient
from edgefast.xds.credentials import CredentialFiles
from edgefast.xds.messages import Node
from edgefast.xds.proxy_problems import find_proxy_problems
from edgefast.xds.rejections import COMMIT, LATE, TABLE, Refused

__all__ = ["Managed", "StreamSettings"]

log = logging.getLogger(__name__)

#: Seconds that a start waits for the controller's table before it serves the last good one.
PATIENCE = 1.0
#: Problems that are logged at once.
_SHOWN = 50


class StreamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where tables come from."""

    server: str  # HOST:PORT, or what gRPC names addresses by
    node: str  # this proxy's name: the pod's
    files: CredentialFiles
    server_name: str = ""  # in the server's certificate, if not HOST


class Managed:
    """Serves the tables of a controller: receives, publishes and acknowledges them.

    `run` is a part of the agent's life.
    """

    def __init__(self, agent: Agent, stream: StreamSettings) -> None:
        self._agent = agent
        self._stream = stream
        self._publishing = asyncio.Lock()
        self._first = asyncio.Event()  # a table has been published
        self._wanted: Shards | None = None  # the controller's newest
        self._settled = ""  # its version, once every worker has had it
        self._published: tuple[Problem, ...] = ()  # what kept it from being served whole
        self._known: dict[Problem, None] = {}
        self._client: XdsClient | None = None

    async def run(self) -> None:
        """Serve what the controller says, until cancelled."""
        agent = self._agent
        kept = await self._load_last_good()
        node = Node(
            id=self._stream.node,
            formats=(table_format(),),
            version=edgefast.__version__,
            workers=agent.settings.workers,
            tickets=True,
        )
        client = XdsClient(
            self._stream.server,
            self._stream.files.read,
            node,
            self._on_table,
            held=kept,
            server_name=self._stream.server_name,
            on_tickets=agent.tickets.use,
        )
        self._client = client
        client.tell(tuple(find_proxy_problems(agent.problems)))
        agent.stream = lambda: client.facts
        agent.on_problems = self._on_problems
        agent.on_news = self._on_news
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.run())
            if kept is not None:
                tasks.create_task(self._fall_back(kept))
            await self._first.wait()
            notify("READY=1")
            keep_all()

    # --- tables ---------------------------------------------------------------------------------

    async def _on_table(self, shards: Shards) -> Sequence[Refused]:
        """Bring a table of the controller into service; returns what of it is not."""
        async with self._publishing:
            before = self._wanted
            self._wanted = shards
            if self._client is not None:
                self._client.facts.from_disk = False
            tried = before is not None and before.version == shards.version
            if not tried or self._is_current(shards):  # what workers died of is not tried again
                await self._publish(shards)
            self._agent.keeper.approve(shards.version)
        return tuple(self._refused(shards))

    async def _publish(self, shards: Shards) -> None:
        began = time.perf_counter()
        published = await self._agent.publish(shards)
        self._first.set()
        self._published = published.problems
        self._on_problems(self._agent.problems)
        took = (time.perf_counter() - began) * 1000
        log.debug(
            "table %s: %d resources, %s in %.0f ms",
            shards.version[:8],
            len(shards.resources),
            "served" if published.acknowledged or not published.changed else "not whole",
            took,
        )

    async def _fall_back(self, kept: Shards) -> None:
        """Serve the last good table when no other one comes soon."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._first.wait()
        except TimeoutError:
            pass
        async with self._publishing:
            if self._first.is_set() or self._client is None:
                return
            saved_at = self._agent.last_good.saved_at if self._agent.last_good else None
            log.error(
                "NO TABLE FROM %s YET: serving the last good one, written %.0f s ago, until a "
                "new one arrives",
                self._stream.server,
                time.time() - (saved_at or time.time()),
            )
            self._client.facts.from_disk = True
            try:
                await self._publish(kept)
            except Exception:
                log.exception(
                    "the last good table cannot be served; still connecting to the controller"
                )

    async def _load_last_good(self) -> Shards | None:
        kept = self._agent.last_good
        if kept is None:
            return None
        try:
            return await asyncio.to_thread(kept.load)
        except LastGoodError as error:
            log.info("no last good table exists: %s", error)
            return None

    # --- what is not in force -------------------------------------------------------------------

    def _refused(self, shards: Shards) -> Iterator[Refused]:
        """Yield what of the controller's newest table is not in force, and why."""
        agent = self._agent
        if not self._is_current(shards):
            problems = dict.fromkeys((*self._published, *agent.problems))
            texts = [one.message for one in problems if one.object is None]
            yield Refused(COMMIT, TABLE, "; ".join(texts) or "it was rolled back")
            return
        if late := self._count_late(shards.version):
            yield Refused(COMMIT, TABLE, late)
        table = agent.ledger.current
        for one in table.refused.values():
            yield Refused(one.type, one.name, one.error)
        unbound = agent.listeners.problems
        for listener in agent.served if unbound else ():
            problem = next((one for at, one in unbound.items() if is_of(at, listener)), None)
            if problem is not None and ("listener", listener.name) not in table.refused:
                yield Refused("listener", listener.name, problem.message)

    def _is_current(self, shards: Shards) -> bool:
        """Whether workers are meant to serve it: neither taken back nor too large for the arena."""
        return self._agent.ledger.current.version == shards.version

    def _count_late(self, version: str) -> str:
        """Say how many workers still serve another table; "" when none, or when none did once."""
        if self._settled == version:
            return ""
        slots = [slot for slot in self._agent.slots if slot.connected]
        held = [self._agent.ledger.held_by(slot.number) for slot in slots]
        tables = [one for one in held if one is not None]  # one without a table serves nothing
        late = sum(one.version != version for one in tables)
        if tables and not late:
            self._settled = version
            return ""
        return f"{LATE}: {late} of {len(self._agent.slots)} workers serve an older table"

    def _on_news(self) -> None:
        """A worker has swapped, or has gone: what the controller was told may be another thing now."""
        if self._client is not None and self._wanted is not None and not self._publishing.locked():
            self._client.restate(tuple(self._refused(self._wanted)))

    def _on_problems(self, problems: Sequence[Problem]) -> None:
        """Log what is new, and what is gone."""
        now = dict.fromkeys(problems)
        new = [one for one in now if one not in self._known]
        solved = len(self._known.keys() - now.keys())
        self._known = now
        for one in new[:_SHOWN]:
            log.warning("%s", one.line())
        if len(new) > _SHOWN:
            log.warning("... and %d problems more", len(new) - _SHOWN)
        if solved:
            log.info("%d problems are solved", solved)
        if self._client is not None:
            self._client.tell(tuple(find_proxy_problems(problems)))
        self._on_news()
