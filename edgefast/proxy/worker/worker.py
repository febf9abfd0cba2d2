"""Worker: one exec'd process with one event loop and one engine; the agent makes all decisions.

In: the agent's messages on the descriptor named by `--fd`.
Out: acknowledgements; served requests.
Only the agent runs it, as `python -P -m edgefast.proxy.worker --fd N`. It ignores signals of the
terminal and the service manager, because the agent commands its end. It dies with the agent
(PDEATHSIG, and the end of the channel), unless the agent allowed it to outlive it (orphan.py).
Must never: read the user's files, fork, or wait without a deadline.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import uvloop

from edgefast.core import Engine, use_tickets
from edgefast.core.engine import tls_library
from edgefast.core.policy.login_services import LoginServices
from edgefast.daemon.logs import set_level, start_logging
from edgefast.daemon.process import WORKER_INTERVAL, keep_all, look_seldom, share_interpreter
from edgefast.proxy.access_log.log_file import LogFile, Standard
from edgefast.proxy.access_log.writer import AccessLogWriter
from edgefast.proxy.control import messages
from edgefast.proxy.control.channel import Channel, ChannelClosed
from edgefast.proxy.limits.store import StoreInUse
from edgefast.proxy.metrics.stats import add_global, map_segment, reset_global
from edgefast.proxy.process.reserved_descriptors import RESERVE, is_shortage
from edgefast.proxy.process.watchdog import start_heartbeat
from edgefast.proxy.settings import ACK_DEADLINE, EXIT_SHORTAGE, STARTED_DEADLINE
from edgefast.proxy.sockets.inherited import MEMORY, TICKETS
from edgefast.proxy.tables.arena import map_arena
from edgefast.proxy.tls.ticket_memory import map_ticket_memory
from edgefast.proxy.traces.agent_sender import SpanSender
from edgefast.proxy.worker.acceptors import Acceptors, BindKey, PortUse
from edgefast.proxy.worker.agent_requests import AgentRequests
from edgefast.proxy.worker.cookie_ring import CookieRing
from edgefast.proxy.worker.orphan import OrphanedWorker
from edgefast.proxy.worker.table import WorkerTable
from edgefast.proxy.worker.token_calls import TokenCalls
from edgefast.proxy.worker.token_keys import TokenKeys
from edgefast.proxy.worker.zone import WorkerZone

__all__ = ["main"]

log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1  # prctl(2)
#: How often a draining worker looks whether its last connection is gone, in seconds.
_DRAIN_LOOK = 0.02
_DUMP_PART = 48 * 1024
_LOG_FLUSH = 1.0
#: Seconds that a new worker or table waits for its store of rate limits, so that no request is let through uncounted.
_FIRST_ANSWER = 0.5
#: Descriptors kept back for sockets, certificates and servers (the agent sends 8 sockets at once).
_RESERVE = 16
#: Seconds until a port that could not be served for want of descriptors is tried again.
_STARVED = 0.5
#: Names of backends without an address that the agent is told of; each is at most 253 bytes.
_UNRESOLVED = 16
#: Seconds between two signs of life while a commit is prepared.
_SIGN = 1.0

_IncomingChannel = Channel[messages.AgentMessage]


class Worker:
    """The life after `Hello`."""

    def __init__(self, channel: _IncomingChannel, hello: messages.Hello, fds: list[int]) -> None:
        arena_fd, stats_fd, limits_fd, tickets_fd, health_fd = fds
        arena, stats = map_arena(arena_fd, hello.arena_bytes), map_segment(stats_fd)
        limits, health = map_segment(limits_fd), map_segment(health_fd)
        secrets = map_ticket_memory(tickets_fd)
        use_tickets(secrets)
        for fd in (arena_fd, stats_fd, health_fd):
            os.close(fd)
        self._memories = {
            MEMORY: limits_fd,
            TICKETS: tickets_fd,
        }  # for a successor, if the agent dies
        reset_global(stats, "limit_stores_down_active")  # of a predecessor
        self._channel = channel
        self._number = hello.worker
        self._outlive: tuple[socket.socket, messages.Outlive] | None = None
        self._alone = False
        self._order = (
            asyncio.Event()
        )  # to end, by a signal that came after the agent's last message
        self._table = WorkerTable(arena)
        target = LogFile(Path(hello.access_log)) if hello.access_log else Standard()
        self._log = AccessLogWriter(
            target, lambda lines: add_global(stats, "access_log_dropped", lines)
        )
        self._spans = SpanSender(
            self._write_message, lambda count: add_global(stats, "spans_dropped", count)
        )
        self._token_keys = TokenKeys(self._write_message)
        self._token_calls = TokenCalls(self._write_message)
        self._requests_to_agent: AgentRequests[str] = AgentRequests(
            lambda cluster: self._write_message(messages.ConnectionsWanted(cluster))
        )
        self._engine = Engine(
            asyncio.get_running_loop(),
            arena,
            stats,
            worker=hello.worker,
            upstream_tls=self._table.upstream_tls,
            access_log=self._log,
            limits=limits,
            health=health,
            ask_others=self._requests_to_agent.ask,
            spans=self._spans,
            make_token_verifier=self._token_keys.token_verifier,
            login_services=LoginServices(CookieRing(secrets), self._token_calls),
        )
        self._limit_store = StoreInUse(
            self._engine.limiter, lambda name, count: add_global(stats, name, count)
        )
        self._table.adopt_limit_store = self._limit_store.adopt
        self._table.adopt_proxies = WorkerZone(self._engine, hello.zone, hello.node).adopt
        engine = self._engine
        self._acceptors = Acceptors(engine.listen, engine.listen_stream, engine.listen_datagrams)
        self._own_ports = frozenset(hello.own_ports)
        self._guards_listeners = bool(hello.node)  # tenants choose the backends
        self._table.retire = self._on_ports
        self._parts: list[messages.Change] = []
        self._sign_due = 0.0
        self._frozen = False
        self._draining = False

    def _on_ports(
        self, uses: Mapping[BindKey, PortUse], datagrams: Mapping[BindKey, PortUse]
    ) -> None:
        """Take the new settings of the served ports: none of these ports may be a backend."""
        tcp, udp = (uses, datagrams) if self._guards_listeners else ((), ())
        numbers = [frozenset(port for port, _ in one) for one in (tcp, udp)]
        self._engine.own(self._own_ports | numbers[0], numbers[1])
        self._acceptors.retire(uses, datagrams)

    async def run(self) -> None:
        """Obey until `Exit` or the agent's end."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._serve_starved())
                tasks.create_task(self._spans.run())
                tasks.create_task(self._token_keys.run())
                tasks.create_task(self._token_calls.run())
                tasks.create_task(self._requests_to_agent.run())
                tasks.create_task(self._limit_store.tell(self._write_message))
                try:
                    while await self._handle_message(await self._receive(), tasks):
                        pass
                except ChannelClosed:
                    if self._outlive is None or not self._frozen or self._draining:
                        raise
                    await self._serve_alone(*self._outlive)
                raise _Done
        except* (_Done, ChannelClosed) as group:
            if group.subgroup(ChannelClosed):
                log.error("the agent ended; exiting")
        finally:
            self._limit_store.close()
            self._token_keys.close()
            self._log.close(_LOG_FLUSH)

    async def _receive(self) -> tuple[messages.AgentMessage, list[int]]:
        received = await self._channel.receive()
        if self._order.is_set() and self._channel.has_peer():
            self._order.clear()  # the agent lives, and whoever wants the end tells it
        return received

    async def _handle_message(
        self, received: tuple[messages.AgentMessage, list[int]], tasks: asyncio.TaskGroup
    ) -> bool:
        """Do what one message says; False after the last one."""
        message, descriptors = received
        match message:
            case messages.Changes(items):
                self._parts += items
            case messages.Commit(epoch, version):
                await self._commit(epoch, version)
            case messages.Sockets(places):
                for place, descriptor in zip(places, descriptors, strict=False):
                    self._acceptors.add(place, descriptor)
                if len(descriptors) < len(places):
                    await self._write_message(messages.SocketsLost(places[len(descriptors) :]))
                await self._acceptors.reconcile(self._table.uses, self._table.datagrams)
            case messages.CloseSockets(places):
                tasks.create_task(self._acceptors.close(places))
            case messages.Ping(number):
                RESERVE.fill()
                await self._write_message(
                    messages.Pong(
                        number,
                        self._engine.open_connections,
                        self._engine.active,
                        self._engine.resolver.unresolved(_UNRESOLVED),
                    )
                )
            case messages.DumpRequest(number):
                await self._dump(number)
            case messages.LogLevel(level):
                set_level(level)
            case messages.ForgetRows(labels):
                self._engine.forget_rows(labels)
            case messages.Lend(cluster, to):
                self._engine.release_connections(cluster, to)
            case messages.Keys() | messages.KeysGone():
                self._token_keys.take(message)
            case messages.Tokens():
                self._token_calls.take(message)
            case messages.Drain():
                self._draining = True
                if self._outlive is not None:
                    _die_with_agent(wanted=True)
                    self._outlive[0].close()
                    self._outlive = None
                self._engine.drain()
                tasks.create_task(self._report_old_generation_gone())
            case messages.StopAccepting():
                tasks.create_task(self._drain())
            case messages.Leave(patient):
                tasks.create_task(self._leave(patient=patient))
            case messages.Outlive():
                self._prepare_to_outlive(message, descriptors)
            case messages.Exit():
                self._engine.close()
                await asyncio.sleep(0)  # a turn in which what was aborted is closed
                self._engine.log_flush()  # with the lines and spans of that
                await self._spans.finish(_LOG_FLUSH)
                return False
            case messages.Hello():
                log.error("second Hello ignored")
        return True

    async def _commit(self, epoch: int, version: str) -> None:
        changes, self._parts = self._parts, []
        self._sign_due = asyncio.get_running_loop().time() + _SIGN
        refused = await self._table.apply(self._engine, changes, version, self._rest)
        await self._limit_store.connected(_FIRST_ANSWER)
        await self._acceptors.reconcile(self._table.uses, self._table.datagrams)
        for part in messages.split_refused(refused):
            await self._write_message(part)
        await self._write_message(messages.Ack(epoch, self._table.short))
        if not self._frozen:
            # What start-up made lives as long as the process: no collection looks at it again.
            self._frozen = True
            keep_all()
            # Requests leave no cycles: the collector only has to look now and then.
            gc.set_threshold(50_000, 20, 100)

    async def _rest(self) -> None:
        """Serve everybody before the next piece of a commit, and tell the agent that it goes on."""
        await asyncio.sleep(0)
        now = asyncio.get_running_loop().time()
        if now >= self._sign_due:
            self._sign_due = now + _SIGN
            await self._write_message(messages.Taking())

    async def _serve_starved(self) -> None:
        """Try again what could not be served for want of memory."""
        while True:
            await self._acceptors.starved.wait()
            await asyncio.sleep(_STARVED)
            RESERVE.fill()
            await self._acceptors.reconcile(self._table.uses, self._table.datagrams)

    async def _drain(self) -> None:
        await self._acceptors.close_all()
        await self._until(lambda: not self._engine.open_connections)
        await self._write_message(messages.Drained())

    async def _leave(self, *, patient: bool) -> None:
        """Stop accepting, on sockets that others serve: what waits in their queues is not lost."""
        await self._acceptors.leave()
        engine = self._engine
        await self._until(
            lambda: self._engine.open_connections <= (0 if patient else engine.old_connections)
        )
        await self._write_message(messages.Drained())

    async def _report_old_generation_gone(self) -> None:
        await self._until(lambda: not self._engine.old_connections)
        await self._write_message(messages.OldGone())

    async def _until(self, done: Callable[[], bool]) -> None:
        # Looked at, not waited for: a hook per closed connection would be on the request path.
        while True:
            if done():
                return
            await asyncio.sleep(_DRAIN_LOOK)

    def _prepare_to_outlive(self, words: messages.Outlive, descriptors: list[int]) -> None:
        if not descriptors:  # lost for want of room: this worker ends with the agent
            return
        self._outlive = socket.socket(fileno=descriptors[0]), words
        _die_with_agent(wanted=False)
        # Whoever ends the agent and then its workers must not have to wait until these have noticed.
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._order.set)

    async def _serve_alone(self, handover_socket: socket.socket, words: messages.Outlive) -> None:
        """Go on without agent, for a while."""
        self._alone = True

        async def ended() -> None:
            await self._until(lambda: not self._engine.open_connections)

        orphan = OrphanedWorker(
            self._number,
            words.workers,
            self._acceptors,
            self._engine.drain,
            ended,
            self._memories,
            self._order,
        )
        await orphan.run(handover_socket, words.drain_timeout)
        self._engine.close()
        await asyncio.sleep(0)  # a turn in which what was aborted is closed
        self._engine.log_flush()

    async def _dump(self, number: int) -> None:
        # The agent knows the hosts: it has the table.
        data = msgspec.msgpack.encode(self._engine.dump(hosts=False), enc_hook=str)
        for start in range(0, max(1, len(data)), _DUMP_PART):
            part = data[start : start + _DUMP_PART]
            await self._write_message(
                messages.DumpPart(number, part, start + _DUMP_PART >= len(data))
            )
            await asyncio.sleep(0)  # everybody is served between two parts

    async def _write_message(self, message: messages.WorkerMessage) -> None:
        if self._alone:
            return
        try:
            async with asyncio.timeout(ACK_DEADLINE):
                await self._channel.send(message)
        except ChannelClosed:
            if self._outlive is None:
                raise  # else whoever receives finds out, and decides


class _Done(Exception):
    """Ends the worker's task group."""


async def _serve(sock: socket.socket) -> None:
    channel: _IncomingChannel = Channel(sock, msgspec.msgpack.Decoder(messages.AgentMessage))
    async with asyncio.timeout(STARTED_DEADLINE):
        await channel.send(messages.Started(os.getpid(), tls_library()))
        hello, descriptors = await channel.receive()
    if not isinstance(hello, messages.Hello) or len(descriptors) != 5:
        log.error("the first message of the agent was not Hello")
        raise SystemExit(1)
    set_level(hello.log_level)
    RESERVE.hold(_RESERVE)
    start_heartbeat(asyncio.get_running_loop())
    await Worker(channel, hello, descriptors).run()


def _die_with_agent(*, wanted: bool) -> None:
    number = signal.SIGKILL if wanted else 0
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def main() -> None:
    """Entry point of the process."""
    parser = argparse.ArgumentParser(prog="edgefast.proxy.worker")
    parser.add_argument("--fd", type=int, required=True, help="control channel")
    start_logging("info")  # until the agent says which level
    look_seldom()
    share_interpreter(WORKER_INTERVAL)
    sock = socket.socket(fileno=parser.parse_args().fd)
    sock.set_inheritable(False)
    # The agent blocked these before exec, so that none arrives before this line.
    ours = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
    for number in ours:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ours)
    _die_with_agent(wanted=True)
    # An agent that died before prctl is noticed by the end of the channel.
    try:
        uvloop.run(_serve(sock))
    except (ChannelClosed, TimeoutError) as error:
        log.error("no agent: %s", error or "no message in time")
        sys.exit(1)
    except Exception as error:
        if not is_shortage(error):
            raise
        # Not the table's fault: the agent must be able to tell.
        log.error("out of descriptors or memory: %s", error)
        sys.exit(EXIT_SHORTAGE)
