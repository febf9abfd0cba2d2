"""Agent: the parent process. It owns the arena, the sockets, the counters and the workers.

In: tables (`publish`) from files or a config stream.
Out: workers that serve the tables and acknowledge them; problems as values; an ordered end. The
agent never handles a request and does not depend on the source of tables.
Must never: block its loop; decoding, compiling and disk access run in threads.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial

import msgspec

from edgefast import ir
from edgefast.daemon.logs import set_level
from edgefast.diagnostics.problem import Problem
from edgefast.proxy.agent.acknowledgement import Acknowledgement
from edgefast.proxy.agent.drain import Drain
from edgefast.proxy.agent.limit_warnings import LimitWarnings
from edgefast.proxy.agent.refusal import describe_refusal
from edgefast.proxy.agent.shared_state import SharedState
from edgefast.proxy.agent.unresolved_hosts import Unresolved
from edgefast.proxy.agent.worker_slot import WorkerSlot, request_from_others
from edgefast.proxy.agent.zone import ProxyZone
from edgefast.proxy.control import messages
from edgefast.proxy.health.memory import HealthMemory
from edgefast.proxy.jwks.key_delivery import KeyDelivery
from edgefast.proxy.limits.count import LimitCount
from edgefast.proxy.limits.memory import LimitMemory
from edgefast.proxy.metrics.row_reclaim import RowReclaim
from edgefast.proxy.oidc.token_exchange import TokenExchange
from edgefast.proxy.process.file_limit import check_descriptors, raise_limit
from edgefast.proxy.process.reserved_descriptors import RESERVE
from edgefast.proxy.settings import ProxySettings
from edgefast.proxy.sockets.bind_address import Place
from edgefast.proxy.sockets.fd_store import FdStore
from edgefast.proxy.sockets.inherited import MEMORY, TICKETS, Inherited
from edgefast.proxy.sockets.listeners import Listeners
from edgefast.proxy.sockets.ports import Ports
from edgefast.proxy.tables.arena import Arena, ArenaFull
from edgefast.proxy.tables.last_good import LastGood
from edgefast.proxy.tables.last_good_keeper import LastGoodKeeper
from edgefast.proxy.tables.worker_tables import Key, Refusal, WorkerTables
from edgefast.proxy.tls.ticket_keys import TicketKeys
from edgefast.proxy.tls.ticket_memory import TicketMemory
from edgefast.proxy.traces.export_thread import SpanExport
from edgefast.table import Shards
from edgefast.xds.stream_stats import StreamStats

__all__ = ["WORKER_COMMAND", "Agent", "Published"]

log = logging.getLogger(__name__)

#: -P: without it the folder that the agent was started in comes before everything installed.
WORKER_COMMAND = (sys.executable, "-P", "-m", "edgefast.proxy.worker")
#: Descriptors kept back for workers to be started.
_RESERVE = 16
#: Seconds until what was refused for want of descriptors or memory is tried again.
_SHORT_FIRST, _SHORT_MAX = 1.0, 30.0
#: Seconds between two looks for counters that may be forgotten; only where rows run short.
_LOOK_FOR_ROWS = 5.0
#: Seconds that collectors get for the last spans.
_SPANS_LAST = 3.0
_LISTENER: msgspec.msgpack.Decoder[ir.Listener] = msgspec.msgpack.Decoder(ir.Listener)


class Published(msgspec.Struct, frozen=True):
    """What came of one `publish`."""

    version: str
    changed: bool
    acknowledged: bool  # whole, by every live worker, while it was waited for
    problems: tuple[Problem, ...]
    served: str = ""  # another version, when this one was taken back
    refused: int = 0  # resources of it that workers refused


class Agent:
    """The parent process: owns the arena, the sockets, the counters and the workers.

    Construct and `run` inside one event loop.
    """

    def __init__(
        self,
        settings: ProxySettings,
        command: Sequence[str] = WORKER_COMMAND,
        *,
        inherited: Inherited | None = None,
    ) -> None:
        """`inherited`: listening sockets that were there before."""
        self.settings = settings
        self.started_at = time.time()
        self.table_at = 0.0  # Unix time of the newest table
        self.tables = 0
        self.file_limit = raise_limit()
        self.arena = Arena(settings.arena_bytes)
        self.limits = LimitMemory.go_on(inherited.take_memory(MEMORY) if inherited else None)
        self.health = HealthMemory(settings.workers)
        ring = TicketMemory.go_on(inherited.take_memory(TICKETS) if inherited else None)
        self.tickets = TicketKeys(ring)
        self.ledger = WorkerTables(self.arena)
        self.listeners = Listeners(
            settings.binds,
            settings.workers,
            required=settings.binds_required,
            inherited=inherited,
        )
        store = FdStore.of_manager(os.environ, inherited.names if inherited else ())
        store.spare = {MEMORY: self.limits.fd, TICKETS: self.tickets.fd}
        self.last_good = LastGood(settings.state_dir) if settings.state_dir else None
        self.keeper = LastGoodKeeper(self.last_good, lambda: self.ledger.settled.shards)
        self.on_problems: Callable[[tuple[Problem, ...]], None] = lambda _: None
        self.on_news: Callable[[], None] = lambda: None  # a worker may hold another table
        self.on_table: Callable[[Shards | None, Shards], None] = lambda *_: None  # before, after
        self.stream: Callable[[], StreamStats | None] = lambda: None  # of a controller's tables
        self._shared = SharedState(
            command,
            self.arena,
            self.limits,
            self.health,
            self.tickets,
            self.ledger,
            self.listeners,
            settings.log_level,
            str(settings.access_log or ""),
            self._on_refused,
            self._on_short,
            self._on_poison,
            self._on_progress,
        )
        self.own_zone = self._shared.own_zone = ProxyZone(self.arena, settings.zone, settings.pod)
        self.ports = Ports(
            self.listeners, store, lambda: self.served, lambda: self._shared.stopping
        )
        self.ports.on_opened, self.ports.on_problems = self._wake, self._report_problems
        self.spans = SpanExport(
            rows=settings.stat_rows, own_ports=lambda: self.listeners.server_ports
        )
        self._limit_count = LimitCount(self.arena, self.limits)
        keys = settings.state_dir / "keys" if settings.state_dir else None
        self.keys = KeyDelivery(self.arena, keys, lambda: self.listeners.server_ports)
        self.keys.on_told, self.keys.on_problems = self._wake, self._report_problems
        self._shared.keys, self._shared.on_keys_wanted = self.keys.told, self.keys.ask
        self.token_exchange = TokenExchange(
            self.keys.oidc_of,
            self.keys.provider_of,
            self.keys.source_context,
            self.keys.on_id_token,
        )
        self._shared.on_tokens_wanted = self.token_exchange.ask
        self._shared.on_cancel_tokens = self.token_exchange.cancel
        self.uncounted = LimitWarnings(lambda: self.slots, self._report_problems)
        self._shared.on_spans, self._shared.on_uncounted = self.spans.take, self.uncounted.note
        self.slots = [
            WorkerSlot(number, self._shared, settings.stat_rows)
            for number in range(settings.workers)
        ]
        self._shared.on_connections_wanted = partial(request_from_others, self.slots)
        self.drain = Drain(self._shared, self.slots, self.listeners, settings)
        self.drain.sockets_stay = lambda: store.keeps
        self.on_serving: Callable[[], Awaitable[None]] | None = None  # before readiness is told
        self._served: dict[str, ir.Listener] = {}
        self._poisoned, self._told_refused = "", 0
        self._opened = False  # the first table has been tried on all workers
        self.source_problems: tuple[Problem, ...] = ()  # of whoever publishes, for dump and metrics
        self.order_problems: Callable[[], tuple[Problem, ...]] = tuple
        self.objects: Callable[[], Mapping[str, object]] | None = None  # of files, for dump
        self._short: set[Key] = set()
        self._again = asyncio.Event()
        self._acknowledgement = Acknowledgement(
            self._shared, self.slots, lambda: bool(self._poisoned)
        )
        self._unresolved = Unresolved(self.ledger, self.arena, self.slots)

    # --- life -----------------------------------------------------------------------------------

    async def run(self, *parts: Callable[[], Coroutine[None, None, None]]) -> int:
        """Run workers and `parts` (servers, the source of tables) until drained.

        Returns 0 after a drain, 128 + signal after a forced end. An exception of a part ends all.
        """
        RESERVE.hold(_RESERVE)
        try:
            async with asyncio.TaskGroup() as tasks:
                for slot in self.slots:
                    tasks.create_task(slot.run())
                own = (
                    self.ports.run,
                    self.keeper.run,
                    self._limit_count.run,
                    self.tickets.run,
                    self.keys.run,
                    self.token_exchange.run,
                )
                for part in (*own, self._retry_refused, self._forget_rows, *parts):
                    tasks.create_task(part())
                with self.drain.signals():
                    status = await self.drain.ended()
                raise _Ended
        except* _Ended:
            pass
        finally:
            RESERVE.hold(0)
            self.spans.close(_SPANS_LAST)
            self.listeners.close()
            for slot in self.slots:
                slot.segment.close()
            self.limits.close()
            self.health.close()
            self.tickets.close()
            self.arena.close()
        return status

    # --- tables ---------------------------------------------------------------------------------

    async def publish(self, shards: Shards) -> Published:
        """Make `shards` the table of all workers; returns when each live one has swapped to it.

        A worker that is late is not waited for: it gets the table nevertheless. Never raises for
        the table's content: what cannot be had is in `problems`.
        """
        before = self.ledger.current.shards
        try:
            changed = self.ledger.advance(shards)
        except ArenaFull as error:
            problem = Problem(None, "", "TooLong", f"table does not fit: {error}")
            return Published(shards.version, False, False, (*self.problems, problem))
        if changed:
            self._poisoned = ""
            self.tables += 1
            self.table_at = time.time()
            self._rebind()
            self.on_table(before, shards)
        reached = (
            await self._acknowledgement.wait_for(self.ledger.current.epoch) if changed else True
        )
        self._opened = True
        now = self.ledger.current
        taken_back = changed and now.shards is not shards
        return Published(
            shards.version,
            changed,
            reached and not taken_back and not now.refused,
            self.problems,
            served=now.version if taken_back else "",
            refused=len(now.refused) if reached else 0,
        )

    def _rebind(self) -> None:
        """Follow a new table: bind and let go of ports as its listeners ask, wake the workers."""
        table = self.ledger.current
        moved = False
        self._limit_count.follow(table.touched, table.placed)
        self.keys.follow(table.touched, table.placed)
        self.own_zone.follow(table.touched, table.placed)
        for key in table.touched:
            if key[0] != "listener":
                continue
            moved = True
            one = table.placed.get(key)
            if one is None:
                self._served.pop(key[1], None)
            else:
                try:
                    self._served[key[1]] = _LISTENER.decode(self.arena.read(one.block))
                except ValueError as error:
                    # Workers refuse it, which is told, and the one before goes on: so does its port.
                    log.warning("listener %s cannot be read: %s", key[1], error)
        if moved:
            self.spans.use(self.served)
        if moved and not self._shared.stopping:
            self.ports.follow()
            check_descriptors(self.served, self.file_limit)
        self._wake()

    @property
    def served(self) -> list[ir.Listener]:
        """The listeners in force, by name."""
        return [self._served[name] for name in sorted(self._served)]

    # --- what went wrong ------------------------------------------------------------------------

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that keeps the newest table from being served whole, and its limits from counting."""
        found = [*self.listeners.problems.values()]
        found += [describe_refusal(one) for one in self.ledger.current.refused.values()]
        if self._poisoned:
            message = f"workers ended while they applied table {self._poisoned}; the previous table is in use"
            found.append(Problem(None, "", "Invalid", message))
        more = (*self._unresolved.problems, *self.uncounted.problems(), *self.keys.problems)
        return (*found, *more, *self.own_zone.problems, *self.order_problems())

    def _on_refused(self, refused: list[Refusal]) -> None:
        log.debug("%d resources were refused", len(refused))
        self._rebind()
        self._report_problems()

    def _on_short(self, keys: set[Key]) -> None:
        self._short |= keys
        self._again.set()

    def _on_poison(self) -> None:
        self._poisoned = self.ledger.current.version or "(first)"
        log.error(
            "two workers ended while they applied the newest table; the previous table is in use"
        )
        self._rebind()
        self._report_problems()

    def _report_problems(self) -> None:
        """Say what is wrong now. Nobody who listens can hurt the service."""
        self._told_refused = len(self.ledger.current.refused)
        try:
            self.on_problems(self.problems)
        except Exception:
            log.exception("problems could not be reported")

    def _on_progress(self) -> None:
        if len(self.ledger.current.refused) < self._told_refused:
            self._report_problems()
        if self._unresolved.look():
            self._report_problems()
        self.keeper.look()
        self._acknowledgement.look()
        self.drain.on_progress()
        self.on_news()

    def _wake(self) -> None:
        for slot in self.slots:
            slot.wake()

    async def _retry_refused(self) -> None:
        """Try again what was refused for want of descriptors or memory, ever less often."""
        loop = asyncio.get_running_loop()
        delay, tried = _SHORT_FIRST, 0.0
        while True:
            await self._again.wait()
            delay = min(delay * 2, _SHORT_MAX) if loop.time() < tried + delay * 2 else _SHORT_FIRST
            await asyncio.sleep(delay)
            tried = loop.time()
            self._again.clear()
            keys, self._short = self._short, set()
            if not self._shared.stopping and self.ledger.retry(keys):
                self._rebind()

    async def _forget_rows(self) -> None:
        """Make room for the counters of new routes."""
        old = RowReclaim([slot.segment for slot in self.slots])
        while True:
            await asyncio.sleep(_LOOK_FOR_ROWS)
            if old.filling and (labels := await asyncio.to_thread(old.look)):
                log.debug("metrics: %d counters of removed routes were deleted", len(labels))
                for slot in self.slots:
                    slot.forget_rows(labels)

    # --- for the small servers ------------------------------------------------------------------

    @property
    def tls(self) -> str:
        """The TLS library of the workers; "" before one has said it."""
        return next((slot.tls for slot in self.slots if slot.tls), "")

    @property
    def ready(self) -> bool:
        """Whether a port is open, all live workers serve a table and the agent does not drain.

        Where a controller decides what is served, a table without listeners is one to be ready with.
        """
        if self.drain.relieved:
            return True  # who still asks here asks about the address, which the successor serves
        alive = [slot for slot in self.slots if slot.connected]
        needless = self.settings.ready_when_empty and not self._served
        return (
            self._opened
            and self._shared.phase == "serving"
            and (bool(self.bound()) or needless)
            and any(slot.serving for slot in alive)
            and all(slot.serving for slot in alive)
        )

    def bound(self) -> tuple[Place, ...]:
        """The places that are listened on."""
        return self.listeners.places

    @property
    def serving(self) -> bool:
        """Whether there is a port and a worker with a table."""
        return bool(self.bound()) and any(slot.serving for slot in self.slots)

    def outlive(self, handover_socket: int) -> None:
        """Let workers serve on when this process is killed, until a successor finds them there."""
        bounds = self.settings.workers, self.settings.drain_timeout
        self._shared.outlive = handover_socket, messages.Outlive(*bounds)
        self._wake()

    def set_log_level(self, level: str) -> None:
        """Change the level here and in every worker; ValueError names the allowed ones."""
        set_level(level)
        self._shared.log_level = level
        self._wake()

    @property
    def log_level(self) -> str:
        """The level in force."""
        return self._shared.log_level


class _Ended(Exception):
    """Ends the agent's task group."""
