"""Servers that are no good, on this process's loop: one that says nothing, one that is late, one that says what it is told.

In: what to do. Out: an address, for the time of a block; every connection is closed at its end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import hiredis

from edgefast.rate_limit.script import SHA
from rate_limit.answers import pack_reply

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[str]:
    """Serve each connection with a coroutine function; yields "host:port"."""
    tasks: set[asyncio.Task[Any]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError):
                await serve(reader, writer)
        except asyncio.CancelledError:
            pass  # the end of the block; asyncio.streams would report it
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


class Late:
    """Relays to a real server; what comes back is late, each piece by itself and none before another."""

    def __init__(self, port: int, seconds: float) -> None:
        self.port = port
        self.seconds = seconds

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up, down = await asyncio.open_connection("127.0.0.1", self.port)
        now = asyncio.get_running_loop().time
        coming: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def there() -> None:
            while data := await reader.read(65536):
                down.write(data)
            down.close()

        async def back() -> None:
            while True:
                due, data = await coming.get()
                await asyncio.sleep(max(0.0, due - now()))
                writer.write(data)

        tasks = [asyncio.create_task(there()), asyncio.create_task(back())]
        try:
            while data := await up.read(65536):
                coming.put_nowait((now() + self.seconds, data))
        finally:
            for task in tasks:
                task.cancel()
            down.close()


class Told:
    """Knows the script and counts the probes; every other call gets the next of the answers, None: the line is cut."""

    def __init__(self, *answers: bytes | None) -> None:
        self._answers = list(answers)
        self.calls: list[tuple[int, int]] = []  # (connection, keys) of each call that is no probe
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        for_calls = hiredis.Reader()
        while data := await reader.read(65536):
            for_calls.feed(data)
            for words in _commands(for_calls):
                answer = self._answer(number, words)
                if answer is None:
                    return
                writer.write(answer)

    def _answer(self, number: int, words: list[bytes]) -> bytes | None:
        if words[0] == b"CLIENT":
            return b"+OK\r\n"
        if words[0] == b"SCRIPT":
            return b"$40\r\n" + SHA + b"\r\n"
        if words[0] in (b"CONFIG", b"INFO"):
            return b"-NOPERM no\r\n"
        assert words[0] == b"EVALSHA"
        if words[3].endswith(b":probe"):
            return pack_reply(1, 1, 1, 1)
        self.calls.append((number, int(words[2])))
        return self._answers.pop(0)


def _commands(reader: hiredis.Reader) -> Iterator[list[bytes]]:
    while (words := reader.gets()) is not False:
        yield words
