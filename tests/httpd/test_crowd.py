"""The operators' HTTP server among many who only hold it up: probes are answered, and whoever asks at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvloop

from edgefast.httpd import connection_limit, connections
from edgefast.httpd.address import Address
from edgefast.httpd.server import HttpServer, Reply, Request, bind_server

HEAD = b"Host: 127.0.0.1\r\nConnection: close\r\n\r\n"
PROBE = b"GET /ready HTTP/1.1\r\n" + HEAD
CROWD = 300  # more than there are places
PLACES = 128


@pytest.fixture(autouse=True)
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limit, "_MOST", PLACES)
    monkeypatch.setattr(connections, "READ_DEADLINE", 3600.0)  # however slow the machine is
    monkeypatch.setattr(connections, "KEPT", 3600.0)


class Served:
    """A server with a probe, and answers that come when they are told to."""

    running: asyncio.Future[None]

    def __init__(self, at_once: int = 2) -> None:
        self.sock = bind_server(Address("127.0.0.1", 0))
        routes = {("GET", "/ready"): self._ready, ("GET", "/slow"): self._slow}
        self.server = HttpServer(self.sock, routes, probes={"/ready"}, at_once=at_once)
        self.port = self.server.address.port
        self.at_work = 0
        self.most_at_work = 0
        self.go_on = asyncio.Event()

    async def _ready(self, _: Request) -> Reply:
        return Reply(200, b"ready")

    async def _slow(self, _: Request) -> Reply:
        self.at_work += 1
        self.most_at_work = max(self.at_work, self.most_at_work)
        await self.go_on.wait()
        self.at_work -= 1
        return Reply(200, b"slow")

    async def ask(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            return await reader.read()
        finally:
            writer.close()


def serve(talk: Callable[[Served], Awaitable[Any]], **options: Any) -> Any:
    async def main() -> Any:
        served = Served(**options)
        served.running = asyncio.ensure_future(served.server.run())
        try:
            async with asyncio.timeout(60):
                return await talk(served)
        finally:
            served.running.cancel()
            await asyncio.wait([served.running])

    return uvloop.run(main())


@contextlib.contextmanager
def crowd(port: int, send: bytes = b"", count: int = CROWD) -> Iterator[list[socket.socket]]:
    held = []
    try:
        for _ in range(count):
            held.append(socket.create_connection(("127.0.0.1", port)))
            held[-1].sendall(send)
            held[-1].setblocking(False)
        yield held
    finally:
        for sock in held:
            sock.close()


async def ended(sock: socket.socket) -> bool:
    """Whether the server has ended a connection; what it had to say is read."""
    while True:
        try:
            if not sock.recv(65536):
                return True
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True


KEPT = b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET /re", KEPT, KEPT * 5 + b"G"])
def test_probes_are_answered_while_others_hold_all_the_connections(sent: bytes) -> None:
    """Silent ones, slow ones and kept ones; those that have waited the longest go."""

    async def talk(served: Served) -> None:
        with crowd(served.port, sent) as held:
            for _ in range(20):
                assert b"200 OK" in await served.ask(PROBE)
            gone = [await ended(sock) for sock in held]
            assert 100 < sum(gone) < CROWD, "some go, nobody who need not"
            # Those that asked have waited since their last answer, and these come in about the order of arrival.
            middle = CROWD // 2
            assert sum(gone[:middle]) > sum(gone[middle:]) and not gone[-1], "the first ones"

    serve(talk)


def test_a_request_has_one_deadline_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often something of it comes."""
    monkeypatch.setattr(connections, "READ_DEADLINE", 0.3)

    async def talk(served: Served) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        sent = 0
        end = asyncio.ensure_future(reader.read())
        while not end.done():
            with contextlib.suppress(ConnectionError):
                writer.write(b"GET /"[sent : sent + 1] or b"x")
                await writer.drain()
            sent += 1
            await asyncio.sleep(0.01)
        writer.close()
        with contextlib.suppress(ConnectionError):
            assert await end == b""
        assert sent > 1

    serve(talk)


def test_answers_that_take_long_are_made_a_few_at_a_time_and_probes_beside_them() -> None:
    async def talk(served: Served) -> None:
        slow = [
            asyncio.ensure_future(served.ask(b"GET /slow HTTP/1.1\r\n" + HEAD)) for _ in range(40)
        ]
        done: set[Any] = set()
        while len(done) < 40 - 2 - 16:  # two at work, sixteen in line
            assert b"200 OK" in await served.ask(PROBE)
            done = {one for one in slow if one.done()}
        assert all(b" 503 " in one.result() for one in done)
        with crowd(served.port):
            assert b"200 OK" in await served.ask(PROBE)
            served.go_on.set()
            answers = await asyncio.gather(*slow)
        # Those in line wait for nothing but their turn: no crowd takes their place.
        assert sum(b"200 OK" in one for one in answers) == 2 + 16
        assert served.most_at_work == 2

    serve(talk)


def test_a_process_without_descriptors_still_answers() -> None:
    async def talk(served: Served) -> None:
        assert b"200 OK" in await served.ask(PROBE)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with socket.socket() as probe:
            probe.setblocking(False)
            lowest = os.dup(0)
            os.close(lowest)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 50, hard))
            taken = []
            try:
                with contextlib.suppress(OSError):
                    while True:
                        taken.append(os.dup(0))
                loop = asyncio.get_running_loop()
                await loop.sock_connect(probe, ("127.0.0.1", served.port))
                await loop.sock_sendall(probe, PROBE)
                assert b"200 OK" in await loop.sock_recv(probe, 4096)
            finally:
                for descriptor in taken:
                    os.close(descriptor)
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert b"200 OK" in await served.ask(PROBE)

    serve(talk)


def test_who_asks_while_the_server_ends_is_let_go(caplog: pytest.LogCaptureFixture) -> None:
    async def talk(served: Served) -> None:
        slow = asyncio.ensure_future(served.ask(b"GET /slow HTTP/1.1\r\n" + HEAD))
        while not served.at_work:
            assert b"200 OK" in await served.ask(PROBE)
        with crowd(served.port, count=50) as held:
            assert b"200 OK" in await served.ask(PROBE)  # all of them are in
            served.running.cancel()
            for sock in held:  # a few in each turn that it takes
                sock.send(KEPT)
                await asyncio.sleep(0)
            await asyncio.wait([served.running])
            await slow
            assert all([await ended(sock) for sock in held])

    serve(talk)
    assert not caplog.records
