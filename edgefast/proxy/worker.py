"""Worker: one exec'd process with one event loop, one engine and nothing of its own to decide.

In: the agent's messages on the descriptor named by `--fd`. Out: acknowledgements; served requests.
Run as `python -m edgefast.proxy.worker --fd N` by agent.py only. It ignores the terminal's and the
service manager's signals, because the agent orders its end; it dies with the agent (PDEATHSIG, and
the end of the channel). Must never read the user's files, fork, or wait without a deadline.
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

import msgspec
import uvloop

from edgefast.core import Engine
from edgefast.proxy import messages
from edgefast.proxy.acceptors import Acceptors
from edgefast.proxy.accesslog import AccessLogWriter
from edgefast.proxy.arena import map_arena
from edgefast.proxy.channel import Channel, ChannelClosed
from edgefast.proxy.logs import set_level, start_logging
from edgefast.proxy.settings import ACK_DEADLINE, STARTED_DEADLINE
from edgefast.proxy.stats import add_global, map_segment
from edgefast.proxy.workertable import WorkerTable

__all__ = ["main"]

log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1  # prctl(2)
#: How often a draining worker looks whether its last connection is gone, in seconds.
_DRAIN_LOOK = 0.02
_DUMP_PART = 48 * 1024
_LOG_FLUSH = 1.0

_IncomingChannel = Channel[messages.AgentMessage]


class Worker:
    """The life after `Hello`."""

    def __init__(self, channel: _IncomingChannel, hello: messages.Hello, fds: list[int]) -> None:
        arena_fd, stats_fd = fds
        arena, stats = map_arena(arena_fd, hello.arena_bytes), map_segment(stats_fd)
        os.close(arena_fd)
        os.close(stats_fd)
        self._channel = channel
        self._table = WorkerTable(arena)
        self._log = AccessLogWriter(1, lambda lines: add_global(stats, "access_log_dropped", lines))
        self._engine = Engine(
            asyncio.get_running_loop(),
            arena,
            stats,
            worker=hello.worker,
            upstream_ssl=self._table.upstream_ssl,
            access_log=self._log,
        )
        self._acceptors = Acceptors(self._engine.factory)
        self._parts: list[messages.Change] = []
        self._frozen = False

    async def run(self) -> None:
        """Obey until `Exit` or the agent's end."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while await self._obey(await self._channel.receive(), tasks):
                    pass
                raise _Done
        except* (_Done, ChannelClosed) as group:
            if group.subgroup(ChannelClosed):
                log.error("the agent is gone: exiting")
        finally:
            self._log.close(_LOG_FLUSH)

    async def _obey(
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
                for place, descriptor in zip(places, descriptors, strict=True):
                    self._acceptors.add(place, descriptor)
                await self._acceptors.reconcile(self._table.uses)
            case messages.CloseSockets(places):
                tasks.create_task(self._acceptors.close(places))
            case messages.Ping(number):
                await self._say(
                    messages.Pong(number, self._engine.open_connections, self._engine.active)
                )
            case messages.DumpRequest(number):
                await self._dump(number)
            case messages.LogLevel(level):
                set_level(level)
            case messages.Drain():
                self._engine.drain()
            case messages.StopAccepting():
                tasks.create_task(self._drain())
            case messages.Exit(after):
                self._engine.close(after)
                await asyncio.sleep(after)
                return False
            case messages.Hello():
                log.error("second hello ignored")
        return True

    async def _commit(self, epoch: int, version: str) -> None:
        changes, self._parts = self._parts, []
        refused = self._table.apply(self._engine, changes, version)
        await self._acceptors.reconcile(self._table.uses)
        for part in messages.split_refused(refused):
            await self._say(part)
        await self._say(messages.Ack(epoch))
        if not self._frozen:
            # What start-up made lives as long as the process: no collection looks at it again.
            self._frozen = True
            gc.collect()
            gc.freeze()
            # Requests leave no cycles: the collector only has to look now and then.
            gc.set_threshold(50_000, 20, 100)

    async def _drain(self) -> None:
        await self._acceptors.close_all()
        # Looked at, not waited for: a hook per closed connection would be on the request path.
        while True:
            if not self._engine.open_connections:
                break
            await asyncio.sleep(_DRAIN_LOOK)
        await self._say(messages.Drained())

    async def _dump(self, number: int) -> None:
        data = msgspec.msgpack.encode(self._engine.dump(), enc_hook=str)
        for start in range(0, max(1, len(data)), _DUMP_PART):
            part = data[start : start + _DUMP_PART]
            await self._say(messages.DumpPart(number, part, start + _DUMP_PART >= len(data)))

    async def _say(self, message: messages.WorkerMessage) -> None:
        async with asyncio.timeout(ACK_DEADLINE):
            await self._channel.send(message)


class _Done(Exception):
    """Ends the worker's task group."""


async def _serve(sock: socket.socket) -> None:
    channel: _IncomingChannel = Channel(sock, msgspec.msgpack.Decoder(messages.AgentMessage))
    async with asyncio.timeout(STARTED_DEADLINE):
        await channel.send(messages.Started(os.getpid()))
        hello, descriptors = await channel.receive()
    if not isinstance(hello, messages.Hello) or len(descriptors) != 2:
        raise SystemExit("edgefast worker: the agent did not say hello")
    start_logging(hello.log_level)
    await Worker(channel, hello, descriptors).run()


def main() -> None:
    """Entry point of the process."""
    parser = argparse.ArgumentParser(prog="edgefast.proxy.worker")
    parser.add_argument("--fd", type=int, required=True, help="control channel")
    sock = socket.socket(fileno=parser.parse_args().fd)
    sock.set_inheritable(False)
    # The agent blocked these before exec, so that none arrives before this line.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # An agent that died before prctl is noticed by the end of the channel.
    try:
        uvloop.run(_serve(sock))
    except (ChannelClosed, TimeoutError) as error:
        sys.exit(f"edgefast worker: no agent: {error}")


if __name__ == "__main__":
    main()
