"""Steady load: clients in a closed loop that count everything that is not an answer.

In: a port, how many clients, whether they keep their connections and speak TLS. Out: how many requests were
answered, which marks the answers had, and every failure, in words. Nothing is ever sent twice: a client's own
retry would hide what is counted here. A connection is left only when the answer said so.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from weakref import WeakSet

_DEADLINE = 60.0  # of one request: far more than anybody may wait


class Steady:
    """Load from a thread of its own: `start`, watch `served`, `stop`."""

    def __init__(
        self, port: int, *, clients: int = 16, tls: bool = False, path: str = "/", pace: float = 0.0
    ) -> None:
        self._port = port
        self._clients = clients
        self._tls = _context() if tls else None
        self._request = f"GET {path} HTTP/1.1\r\nHost: x.test\r\n".encode()
        self._pace = pace
        self._stop = threading.Event()
        self._transports: WeakSet[asyncio.WriteTransport] = WeakSet()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self.served = 0
        self.marks: Counter[str] = Counter()
        self.failures: list[str] = []
        self.longest = 0.0

    def __enter__(self) -> Steady:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(90)

    def until(self, check: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + 90
        while not check():
            assert time.monotonic() < end, f"no {what}: {self.served} served, {self.failures[:5]}"
            time.sleep(0.005)

    def more(self, count: int) -> None:
        """Wait for so many more answers."""
        goal = self.served + count
        self.until(lambda: self.served >= goal, f"{count} more answers")

    async def _main(self) -> None:
        # Every second one opens a connection for each request: those meet closing sockets.
        try:
            clients = (self._client(number % 2 == 0) for number in range(self._clients))
            await asyncio.gather(*clients)
        finally:
            # One of TLS that was closed waits for the other side's last word: longer than this loop lives.
            for transport in self._transports:
                transport.abort()
            await asyncio.sleep(0)  # they end

    async def _client(self, keeps: bool) -> None:
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                async with asyncio.timeout(_DEADLINE):
                    if streams is None:
                        streams = await asyncio.open_connection(
                            "127.0.0.1", self._port, ssl=self._tls
                        )
                        self._transports.add(streams[1].transport)
                    head = await self._ask(*streams, keeps=keeps)
            except (OSError, EOFError, TimeoutError) as error:
                self.failures.append(f"{type(error).__name__} {error} (keeps={keeps})")
                if streams is not None:
                    streams[1].close()
                streams = None
                continue
            self.longest = max(self.longest, time.monotonic() - began)
            self.served += 1
            self.marks[_mark(head)] += 1
            if not keeps or b"connection: close" in head.lower():
                streams[1].close()
                streams = None
            if self._pace:
                await asyncio.sleep(self._pace)
        if streams is not None:
            streams[1].close()

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, keeps: bool
    ) -> bytes:
        writer.write(self._request + (b"\r\n" if keeps else b"Connection: close\r\n\r\n"))
        return await reader.readuntil(b"\r\n\r\n")


def _mark(head: bytes) -> str:
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"location:"):
            return line.split(b"//")[1].split(b".test")[0].decode()
    return head[:40].decode()


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
