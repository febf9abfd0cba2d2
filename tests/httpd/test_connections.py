"""The hall: what is enough of a request, and what those who wait cost."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest
import uvloop

from edgefast.httpd import connections
from edgefast.httpd.connections import ClientConnection
from edgefast.httpd.message import HEAD

from .test_crowd import CROWD, KEPT, PROBE, Served, crowd, ended, serve


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, nobody goes for that."""
    monkeypatch.setattr(connections, "READ_DEADLINE", 3600.0)
    monkeypatch.setattr(connections, "KEPT", 3600.0)


async def until(true: Callable[[], bool]) -> None:
    """Wait until something holds; `serve` has a deadline."""
    while True:
        if true():
            return
        await asyncio.sleep(0.01)


def guest() -> ClientConnection:
    ours, theirs = socket.socketpair()
    theirs.close()
    ours.close()
    return ClientConnection(ours)


@pytest.mark.parametrize(
    "head", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.0\n\n", b"GET / HTTP/1.0\r\n\n"]
)
def test_a_head_is_whole_with_its_last_byte_however_it_comes(head: bytes) -> None:
    one = guest()
    assert [one.take(head[at : at + 1]) for at in range(len(head))] == [False] * (len(head) - 1) + [
        True
    ]
    for cut in range(1, len(head)):
        one = guest()
        assert not one.take(head[:cut])
        assert one.take(head[cut:] + b"the next one")


def test_what_will_never_be_a_head_is_looked_at_too() -> None:
    assert guest().take(b"\x16\x03\x01"), "TLS"
    assert guest().take(b"\r\n")
    long = guest()
    assert not long.take(b"x" * (HEAD - 1))
    assert long.take(b"x")
    assert not guest().take(b"")


def test_those_who_wait_for_their_clients_have_no_tasks() -> None:
    async def talk(served: Served) -> None:
        loop = asyncio.get_running_loop()
        assert b"200 OK" in await served.ask(PROBE)
        alone = len(asyncio.all_tasks(loop))
        for sent in (b"", b"GET /re", KEPT):
            with crowd(served.port, sent, count=100) as held:
                assert b"200 OK" in await served.ask(PROBE)  # all those before it are in
                if sent == KEPT:
                    for sock in held:
                        assert b"200 OK" in await loop.sock_recv(sock, 4096)
                await until(lambda: len(asyncio.all_tasks(loop)) <= alone)
                assert not any([await ended(sock) for sock in held])

    serve(talk)


def test_a_crowd_that_finds_places_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to come again, which would be what others wait behind."""
    monkeypatch.setattr("edgefast.httpd.server.count_connections", lambda _: 2 * CROWD)

    async def talk(served: Served) -> None:
        with crowd(served.port) as held:
            assert b"200 OK" in await served.ask(PROBE)
            assert not any([await ended(sock) for sock in held])

    serve(talk)


@pytest.mark.parametrize("sent", [b"", b"GET /re"])
def test_who_sends_no_request_goes_in_the_end(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(connections, "READ_DEADLINE", 0.1)

    async def talk(served: Served) -> None:
        with crowd(served.port, sent, count=3) as held:
            loop = asyncio.get_running_loop()
            assert [await loop.sock_recv(sock, 1) for sock in held] == [b""] * 3

    serve(talk)


def test_who_was_answered_goes_when_nothing_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "KEPT", 0.1)

    async def talk(served: Served) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(KEPT * 2)
        assert (await reader.read()).count(b"200 OK") == 2, "also what came with the first one"
        writer.close()

    serve(talk)


async def say(port: int, pieces: list[bytes], *, half: bool = False) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(0)
    if half:
        writer.write_eof()
    said = await reader.read()
    writer.close()
    return said


def test_a_request_may_come_byte_by_byte_and_rubbish_is_refused_at_once() -> None:
    async def talk(served: Served) -> None:
        pieces = [PROBE[at : at + 1] for at in range(len(PROBE))]
        assert b"200 OK" in await say(served.port, pieces)
        assert b" 400 " in await say(served.port, [b"\x16\x03\x01\x02\x00"])
        assert b" 400 " in await say(served.port, [b"GET / HTTP/1.1\r\n"], half=True)
        assert await say(served.port, [], half=True) == b""

    serve(talk)


def test_the_end_of_a_server_ends_those_who_wait() -> None:
    async def main() -> None:
        served = Served()
        running = asyncio.ensure_future(served.server.run())
        with crowd(served.port, KEPT, count=20) as held:
            assert b"200 OK" in await served.ask(PROBE)
            running.cancel()
            await asyncio.wait([running])
            assert all([await ended(sock) for sock in held])

    uvloop.run(main())
