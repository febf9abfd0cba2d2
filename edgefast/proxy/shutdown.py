"""Shutdown: delays the end of a container until its proxy has drained (spec 2, gateway-api B1: the preStop contract).

In: the proxy's admin address, timings.
Out: a file that means "ready to end", and a server that delays a hook until the file exists. One
container has two processes: `Holder` is its service, and `drain_proxy` runs in its preStop hook.
The proxy's own preStop hook requests `GET /shutdown/ready`, so SIGTERM reaches the proxy only after
the drain.
Must never: delay the end forever; every wait is bounded, and an unreachable proxy counts as ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from edgefast.httpd.address import Address
from edgefast.httpd.control_socket import send_command
from edgefast.httpd.server import HttpServer, Reply, Request

__all__ = ["READY_FILE", "Holder", "drain_proxy", "write_ready"]

log = logging.getLogger(__name__)

READY_FILE = Path("/tmp/shutdown-ready")
#: Seconds between two looks at the connections, and at the file.
POLL = 1.0
_LOOK = 0.1
#: Seconds for one question to the admin server.
_ASK_DEADLINE = 5.0
#: Seconds between SIGTERM and the end of the holder: those who wait are answered first.
_LAST_WORDS = 2.0
_SENDING = 0.2
#: Hooks that wait at the same time: of all addresses, and of one. A pod has at most one for each container, and all come from its node. The
#: port is open to the pod network: if all places are taken, the address with the most loses one to an address with fewer.
_HOOKS = 64
_HOOKS_EACH = 16
#: Requests at work beyond that: those that are refused, and those that lose their place.
_REFUSALS = 16


class _Connections(msgspec.Struct):
    active: int


#: The place of a hook that waits: True when the proxy may end, False when another address gets the place.
_Place = asyncio.Future[bool]


class _Gone(Exception):
    """Nobody listens where the admin server was."""


def drain_proxy(
    admin: Address,
    *,
    min_drain: float,
    drain_timeout: float,
    exit_at_connections: int,
    say: Callable[[str], None],
    poll: float = POLL,
) -> bool:
    """Order a drain and wait: for `min_drain` s, then until few connections are left, at most `drain_timeout` s.

    Returns whether no more than `exit_at_connections` are left, as far as is known. A proxy that ends itself
    meanwhile is one that has drained.
    """
    start = time.monotonic()
    end = start + max(min_drain, drain_timeout)
    try:
        _order(admin, end)
        say("the proxy drains")
        while True:
            left = _count(admin)
            now = time.monotonic()
            if left is not None and left <= exit_at_connections and now >= start + min_drain:
                say(f"drained: {left} connections are left after {now - start:.1f} s")
                return True
            if now >= end:
                many = "an unknown number of" if left is None else left
                say(f"not drained: {many} connections are left after {now - start:.1f} s")
                return False
            time.sleep(max(0.0, min(poll, end - now)))
    except _Gone:
        say(f"the proxy ended after {time.monotonic() - start:.1f} s")
        return True


def write_ready(path: Path) -> None:
    """Say that the proxy may end. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    os.close(os.open(path, flags, 0o600))


def _order(admin: Address, end: float) -> None:
    """Begin the drain; a server that is too busy to answer is asked again."""
    while True:
        try:
            status, _ = send_command(admin, "/healthcheck/fail", _ASK_DEADLINE)
        except (OSError, http.client.HTTPException):
            status = 0
            _ask(admin, "GET", "/connections")  # raises _Gone where no proxy is
        if status in (200, 202) or time.monotonic() >= end:
            return
        time.sleep(_LOOK)


def _count(admin: Address) -> int | None:
    """Return how many connections of clients are open; None when the server does not say."""
    status, body = _ask(admin, "GET", "/connections")
    if status != 200:
        return None
    try:
        return msgspec.json.decode(body, type=_Connections).active
    except msgspec.MsgspecError:
        return None


def _ask(admin: Address, method: str, path: str) -> tuple[int, bytes]:
    """Return the answer's status and body, 0 for none in time; raises _Gone."""
    connection = http.client.HTTPConnection(admin.host, admin.port, timeout=_ASK_DEADLINE)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except ConnectionRefusedError:
        raise _Gone from None
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


class Holder:
    """Serves `GET /healthz` and `GET /shutdown/ready` on a bound socket until SIGTERM or SIGINT."""

    def __init__(self, sock: socket.socket, path: Path, ready_timeout: float) -> None:
        """`path`: the file that `write_ready` writes; one from a life before is removed."""
        self._path = path
        self._ready_timeout = ready_timeout
        self._waiting: dict[str, list[_Place]] = {}  # by address; no list is empty
        self._answered = asyncio.Event()  # nobody waits
        self._answered.set()
        self._released = asyncio.Event()  # nobody needs to wait: the file is there, or the end is
        self._ending = asyncio.Event()
        routes = {
            ("GET", "/healthz"): self._on_healthz,
            ("GET", "/shutdown/ready"): self._on_shutdown_ready,
        }
        self._server = HttpServer(
            sock, routes, probes={"/healthz"}, any_host=True, at_once=_HOOKS + _REFUSALS
        )
        with contextlib.suppress(FileNotFoundError):
            path.unlink()

    @property
    def address(self) -> Address:
        """Where it listens."""
        return self._server.address

    async def run(self) -> None:
        """Serve until a signal; then answer those who wait."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ending.set)
        async with asyncio.TaskGroup() as tasks:
            parts = [tasks.create_task(self._server.run()), tasks.create_task(self._look())]
            await self._ending.wait()
            self._release()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS):
                    await self._answered.wait()
            # The last answers are on their way.
            await asyncio.sleep(_SENDING)
            for part in parts:
                part.cancel()

    async def _look(self) -> None:
        """Release those who wait when the file is there."""
        while not self._released.is_set():
            if self._path.exists():
                self._release()
            await asyncio.sleep(_LOOK)

    def _release(self) -> None:
        self._released.set()
        for place in [one for places in self._waiting.values() for one in places]:
            if not place.done():
                place.set_result(True)

    async def _on_healthz(self, _: Request) -> Reply:
        return Reply(200, b"ok\n")

    async def _on_shutdown_ready(self, request: Request) -> Reply:
        """Wait for the file. The container that asks ends whatever the answer is."""
        if not self._released.is_set():
            place = self._enter(request.peer)
            if place is None:
                return Reply(503, b"too many hooks of this address wait\n")
            try:
                async with asyncio.timeout(self._ready_timeout):
                    if not await place:
                        return Reply(503, b"too many hooks wait: another address got this place\n")
            except TimeoutError:
                pass
            finally:
                self._leave(request.peer, place)
        if self._path.exists():
            return Reply(200, b"ready\n")
        log.warning("shutdown-manager: the hook timed out before the proxy was drained")
        return Reply(503, b"not drained\n")

    def _enter(self, address: str) -> _Place | None:
        """Return a new place; None if the address has its share, or if all are taken and no address has more."""
        own = len(self._waiting.get(address, ()))
        if own >= _HOOKS_EACH:
            return None
        if sum(map(len, self._waiting.values())) >= _HOOKS:
            most = max(self._waiting, key=lambda one: len(self._waiting[one]))
            newest = self._waiting[most][-1]
            if len(self._waiting[most]) <= own:
                return None
            if not newest.done():
                newest.set_result(False)
            self._leave(most, newest)
        place: _Place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(address, []).append(place)
        self._answered.clear()
        return place

    def _leave(self, address: str, place: _Place) -> None:
        """Free a place; one that another address got is free already."""
        places = self._waiting.get(address, [])
        if place in places:
            places.remove(place)
        if not places:
            self._waiting.pop(address, None)
        if not self._waiting:
            self._answered.set()
