"""An agent living in this process, with real workers, for as long as a conversation with it lasts.

In: a coroutine function that gets the agent. Out: the agent's exit status. Everything is awaited
with a deadline; nothing sleeps for a fixed time to let something happen.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import uvloop

from edgefast.httpd.address import Address
from edgefast.proxy.agent.agent import WORKER_COMMAND, Agent
from edgefast.proxy.settings import ProxySettings
from wire.harness.ports import free_port

ROOT = Path(__file__).parents[2]
FAULTY = (sys.executable, str(Path(__file__).with_name("faulty_worker.py")))
DEADLINE = 100.0
BEFORE: set[int] = set()  # child processes from before the test, such as a session fixture's
_ARENA = 64 * 1024 * 1024


def with_agent(
    talk: Callable[[Agent], Awaitable[None]],
    *,
    faulty: bool = False,
    command: tuple[str, ...] = WORKER_COMMAND,
    **settings: Any,
) -> int:
    """Run an agent, talk, then drain it (unless the conversation did); returns its exit status."""
    chosen = {
        "binds": ("127.0.0.1",),
        "binds_required": True,
        "workers": 2,
        "min_drain": 0.0,
        "drain_timeout": 5.0,
        "arena_bytes": _ARENA,
        "stat_rows": 64,
        "log_level": "error",
        **settings,
    }

    async def main() -> int:
        agent = Agent(ProxySettings(**chosen), FAULTY if faulty else command)

        async def part() -> None:
            await talk(agent)
            agent.drain.order("the end of the test", min_drain=0.0)

        return await asyncio.wait_for(agent.run(part), DEADLINE)

    with patch.dict(os.environ, PYTHONPATH=str(ROOT)):
        return uvloop.run(main())


def agent_test(
    **settings: Any,
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Run the test's coroutine with a living agent; it exits with 0 and leaves no child process."""

    def wrap(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            assert with_agent(lambda agent: test(agent, **fixtures), **settings) == 0
            assert children() == set()

        signature = inspect.signature(test)
        fixtures = list(signature.parameters.values())[1:]  # the first is the agent
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return wrap


async def until(check: Callable[[], Any], what: str, deadline: float = 60.0) -> None:
    """Wait for a condition."""
    loop = asyncio.get_running_loop()
    end = loop.time() + deadline
    while not check():
        assert loop.time() < end, f"no {what} within {deadline} s"
        await asyncio.sleep(0.005)


async def ask(port: int, path: str = "/", host: str = "x.test", bind: str = "127.0.0.1") -> bytes:
    """One request on a new connection; the answer's head (a redirect has nothing else)."""
    reader, writer = await asyncio.open_connection(bind, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    finally:
        writer.close()


async def mark_of(port: int) -> str:
    """Which table answers: the host that `make_fleet` redirects to."""
    answer = await ask(port)
    for line in answer.split(b"\r\n"):
        if line.lower().startswith(b"location:"):
            return line.split(b"//")[1].split(b".test")[0].decode()
    return answer[:60].decode()


def children() -> set[int]:
    """Child processes of this process that the test began, zombies included."""
    return all_children() - BEFORE


def all_children() -> set[int]:
    """Child processes of this process, those of session fixtures and zombies included."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has ended since
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def descriptors() -> dict[str, str]:
    """Open descriptors of this process and what they are."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            pass
    return found


def taken(host: str = "127.0.0.1") -> tuple[socket.socket, int]:
    """A port that somebody else listens on; when it is let go, no other test takes it."""
    sock = socket.create_server((host, free_port()))
    return sock, sock.getsockname()[1]


def loopback(port: int = 0) -> Address:
    """127.0.0.1 with a port of the kernel's choice."""
    return Address("127.0.0.1", port)
