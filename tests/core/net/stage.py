"""The stage of the socket layer's tests: a real uvloop, the compiled driver, real sockets on loopback.

A test is a plain function and lets the loop run with `stage.until`. Afterwards nothing may be left: no watched descriptor, no armed
timer, no fault that the test has not asked for.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from core.net.build import load
from core.world import Faults

driver: Any = load()

uvloop.new_event_loop().close()  # what the first loop of a process opens stays open

SECONDS = 30.0  # a ceiling against hangs


class Stage:
    """A real uvloop, the compiled driver and loopback sockets for tests of the socket layer."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        self.net = driver.Net(self.loop)
        self.errors: list[str] = []  # of the loop
        self.faults = 0  # that the test expects
        self._listening: list[Any] = []
        self._open: list[socket.socket] = []
        self.loop.set_exception_handler(lambda _, context: self.errors.append(repr(context)))

    # --- time -------------------------------------------------------------------------------------

    def until(self, holds: Callable[[], object], what: str = "") -> None:
        """Let the loop run until something holds."""

        async def poll() -> None:
            end = self.loop.time() + SECONDS
            while not holds():
                assert self.loop.time() < end, f"never came true: {what or holds}"
                await asyncio.sleep(0.001)

        self.loop.run_until_complete(poll())

    def turns(self, count: int = 10) -> None:
        """Let the loop go round."""

        async def go() -> None:
            for _ in range(count):
                await asyncio.sleep(0)

        self.loop.run_until_complete(go())

    def rest(self, seconds: float) -> None:
        """Let time pass in which something must not happen, or timers must."""
        self.loop.run_until_complete(asyncio.sleep(seconds))

    # --- who is there -----------------------------------------------------------------------------

    def own(self, sock: socket.socket) -> socket.socket:
        """Close a socket at the end."""
        self._open.append(sock)
        return sock

    def listener(self, backlog: int = 4096, path: Path | None = None) -> socket.socket:
        """A listening socket that nobody accepts on yet."""
        family = socket.AF_INET if path is None else socket.AF_UNIX
        sock = self.own(socket.socket(family))
        sock.bind(("127.0.0.1", 0) if path is None else str(path))
        sock.listen(backlog)
        sock.setblocking(False)
        return sock

    def accept(self, sock: socket.socket, serve: Any = None, **settings: Any) -> Any:
        """Accept on it; serve(peer) makes sessions, Probes unless told otherwise."""
        listening = driver.Listening(
            self.net, sock.fileno(), serve or (lambda peer: driver.Probe()), **settings
        )
        self._listening.append(listening)
        return listening

    def peer(self, sock: socket.socket, *, receive: int = 0) -> socket.socket:
        """Connect to a listening socket. receive: bytes of the receive buffer."""
        made = self.own(socket.socket(sock.family))
        if receive:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        made.connect(sock.getsockname())
        made.setblocking(False)
        return made

    def pair(self, session: Any = None, *, receive: int = 0, small: bool = False) -> Any:
        """A peer, and the session that serves it. small: as little as possible fits into the kernel."""
        sock = self.listener()
        if small:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            receive = receive or 4096
        session = session or driver.Probe()
        listening = self.accept(sock, lambda _: session)
        made = self.peer(sock, receive=receive)
        self.until(lambda: listening.accepted == 1 and session.fd >= 0)
        listening.stop_now()
        return made, session

    # --- what peers do ----------------------------------------------------------------------------

    def read(self, sock: socket.socket, size: int) -> bytes:
        """So many bytes."""
        data = bytearray()

        def enough() -> bool:
            try:
                while len(data) < size:
                    part = sock.recv(size - len(data))
                    assert part, f"ended after {len(data)} of {size} bytes"
                    data.extend(part)
            except BlockingIOError:
                return False
            return True

        self.until(enough)
        return bytes(data)

    def drain(self, sock: socket.socket) -> bytes:
        """Everything until the end."""
        data = bytearray()

        def ended() -> bool:
            try:
                while part := sock.recv(1 << 16):
                    data.extend(part)
            except BlockingIOError:
                return False
            return True

        self.until(ended)
        return bytes(data)

    def write(self, sock: socket.socket, data: bytes) -> None:
        """All of it."""
        view = memoryview(data)

        def sent() -> bool:
            nonlocal view
            try:
                while view:
                    view = view[sock.send(view) :]
            except BlockingIOError:
                return False
            return True

        self.until(sent)

    # --- what is seen -----------------------------------------------------------------------------

    def count(self, name: str) -> int:
        """turns, events, stale or faults since the beginning."""
        return int(self.net.count(name))

    # --- the end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Nothing is left behind."""
        for listening in self._listening:
            listening.stop_now()
        for sock in self._open:
            sock.close()
        for listening in self._listening:  # a Probe only tells that its peer has ended
            for session in listening.sessions:
                session.shut()
        self.until(lambda: self.net.watching == 0, f"{self.net.watching} descriptors are watched")
        self.turns()
        assert self.net.armed == 0
        assert self.errors == []
        assert self.count("faults") == self.faults

    def close(self) -> None:
        """Let go, whatever happened."""
        for sock in self._open:
            sock.close()
        self.net.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()


def reset(sock: socket.socket) -> None:
    """Close with a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def descriptors() -> int:
    """How many this process has open, without those of other tests' garbage."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@contextmanager
def set_up() -> Iterator[Stage]:
    """A stage of a test's own."""
    before = descriptors()
    made = Stage()
    told = Faults()
    log = logging.getLogger("edgefast.engine")
    log.addHandler(told)
    try:
        yield made
        made.finish()
        assert len(told.found) == made.faults, told.found
    finally:
        log.removeHandler(told)
        made.close()
    assert descriptors() == before
