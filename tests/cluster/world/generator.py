"""The load generator's process: `python -m cluster.world.generator PLAN` (JSON).

In: a Plan. Out: one JSON line of counts every 50 ms, the last when stdin is closed and every request has ended.
An open loop: request k is due at k / rate, whatever became of the ones before, as long as a connection is free; what a
stall of more than a second has delayed is not caught up, which would be a flood. Like any good client it sends a request again, once, when a kept connection turns out to have been closed before it arrived.
Must never: count a request twice or not at all.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
import uvloop

_TELL_SECONDS = 0.05
_BAD_LIMIT = 200
_CATCH_UP_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is sent where."""

    url: str
    hosts: Sequence[str]  # taken in turn; empty: the URL's own
    rate: float  # requests per second, all connections together
    connections: int  # at most so many requests are under way
    per_connection: int  # requests on one connection, 0 for no limit
    paths: Sequence[str]  # taken in turn; empty: the URL's own
    headers: Mapping[str, str]
    method: str
    body: str
    expected: Sequence[int]
    deadline: float  # seconds for one request
    seconds: float  # of the whole load


@dataclass
class Counts:
    """What came of it."""

    statuses: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    bad: list[dict[str, Any]] = field(default_factory=list)
    told: int = 0
    stale: int = 0
    connections: int = 0
    slowest: float = 0.0

    def line(self) -> str:
        """Return the counts, and the bad answers not told yet, as one line."""
        new, self.told = self.bad[self.told :], len(self.bad)
        return json.dumps(
            {
                "statuses": self.statuses,
                "errors": self.errors,
                "bad": new,
                "stale": self.stale,
                "connections": self.connections,
                "slowest_ms": round(self.slowest * 1000, 3),
            }
        )


class Stale(Exception):
    """The connection was closed before a byte of an answer came."""


class Failed(Exception):
    """No whole answer; the text is the kind of failure."""


class Connection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self) -> None:
        self.used = 0
        self.open = False
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._waiting: asyncio.Future[int] | None = None
        self._begun = False

    async def ask(self, request: bytes) -> int:
        """Send a request and return the status of its whole answer."""
        if not self.open or self._transport is None:
            raise Stale
        self._parser = httptools.HttpResponseParser(self)
        self._waiting = asyncio.get_running_loop().create_future()
        self._begun = False
        self.used += 1
        self._transport.write(request)
        return await self._waiting

    def close(self) -> None:
        """Close it at once."""
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self.open = cast(asyncio.Transport, transport), True

    def data_received(self, data: bytes) -> None:
        if self._parser is None or self._waiting is None or self._waiting.done():
            self._fail(Failed("malformed"))
            return
        self._begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail(Failed("malformed"))

    def on_message_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            return
        if not self._parser.should_keep_alive():
            self.open = False
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(status)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        if not self._begun:
            self._fail(Stale())
        else:
            self._fail(Failed("reset" if exc is not None else "closed"))

    def _fail(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)
        self.close()


class Generator:
    """The load."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.counts = plan, Counts()
        parts = urlsplit(plan.url)
        assert parts.hostname is not None
        self._secure = parts.scheme == "https"
        self._address = parts.hostname
        self._port = parts.port or (443 if self._secure else 80)
        self._hosts = list(plan.hosts) or [parts.netloc]
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._paths = list(plan.paths) or [target]
        extra = "".join(f"{name}: {value}\r\n" for name, value in plan.headers.items())
        if plan.body:
            extra += f"content-length: {len(plan.body.encode())}\r\n"
        self._tail = f"{extra}\r\n{plan.body}"
        self._next = 0
        self._begin = self._end = 0.0
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Send until stdin is closed or time is up."""
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._on_stdin)
        self._begin = time.monotonic()
        self._end = self._begin + self.plan.seconds
        workers = asyncio.gather(*(self._work(n) for n in range(self.plan.connections)))
        while not workers.done():
            await asyncio.wait([workers], timeout=_TELL_SECONDS)
            sys.stdout.write(self.counts.line() + "\n")
            sys.stdout.flush()
        workers.result()

    def _on_stdin(self) -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._stopped.set()

    async def _work(self, number: int) -> None:
        plan, connection = self.plan, None
        while not self._stopped.is_set():
            turn = self._next
            self._next += 1
            due = self._begin + turn / plan.rate
            if due > self._end:
                break
            wait = due - time.monotonic()
            if wait < -_CATCH_UP_SECONDS:
                self._begin -= wait + _CATCH_UP_SECONDS
            if wait > 0:
                try:
                    async with asyncio.timeout(wait):
                        await self._stopped.wait()
                    break
                except TimeoutError:
                    pass
            # A TLS connection is for the name of its handshake alone.
            host = self._hosts[(number if self._secure else turn) % len(self._hosts)]
            path = self._paths[turn % len(self._paths)]
            if connection is not None and 0 < plan.per_connection <= connection.used:
                connection.close()
            connection = await self._one(connection, host, path)
        if connection is not None:
            connection.close()

    async def _one(self, connection: Connection | None, host: str, path: str) -> Connection | None:
        """Send one request and count what came of it; return the connection if it can be used again."""
        counts, began = self.counts, time.monotonic()
        request = f"{self.plan.method} {path} HTTP/1.1\r\nhost: {host}\r\n{self._tail}".encode()
        what: object
        try:
            async with asyncio.timeout(self.plan.deadline):
                status = 0
                if connection is not None and connection.open:
                    try:
                        status = await connection.ask(request)
                    except Stale:
                        counts.stale += 1
                if not status:
                    connection = await self._connect(host)
                    status = await connection.ask(request)
            counts.statuses[status] += 1
            what = status
        except TimeoutError:
            what = "timeout"
        except Stale:
            what = "closed"
        except Failed as error:
            what = str(error)
        except ConnectionRefusedError:
            what = "refused"
        except ConnectionResetError:
            what = "reset"
        except OSError as error:
            what = f"unreachable: {error}"
        taken = time.monotonic() - began
        counts.slowest = max(counts.slowest, taken)
        if isinstance(what, str):
            counts.errors[what] += 1
            if connection is not None:
                connection.close()
        if what not in self.plan.expected and len(counts.bad) < _BAD_LIMIT:
            counts.bad.append(
                {
                    "at": round(time.time(), 3),
                    "after_ms": round(taken * 1000, 1),
                    "host": host,
                    "path": path,
                    "what": what,
                }
            )
        if connection is None or not connection.open:
            if connection is not None:
                connection.close()
            return None
        return connection

    async def _connect(self, host: str) -> Connection:
        self.counts.connections += 1
        loop = asyncio.get_running_loop()
        tls = _unverified() if self._secure else None
        name = host.rsplit(":", 1)[0] if self._secure else None
        _, connection = await loop.create_connection(
            Connection, self._address, self._port, ssl=tls, server_hostname=name
        )
        return connection


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def main() -> None:
    """Entry point."""
    uvloop.run(Generator(Plan(**json.loads(sys.argv[1]))).run())


if __name__ == "__main__":
    main()
