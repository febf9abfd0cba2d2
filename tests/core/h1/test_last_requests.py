"""A client's last request on a connection, and what its end costs."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import pytest

from core.backend import say
from core.client import Client, make_request
from core.fleets import make_cluster, make_fleet
from core.world import World
from edgefast.core import fastpath

LAST = make_request(headers=[("connection", "close")])


def tcp_info(client: Client) -> tuple[int, int]:
    """Segments that are not acknowledged yet, and segments that came (struct tcp_info of linux/tcp.h)."""
    info = client.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 144)
    unacked, came = struct.unpack_from("I", info, 24), struct.unpack_from("I", info, 140)
    return unacked[0], came[0]


async def test_the_end_comes_with_the_answer(world: World) -> None:
    """In one segment: a segment more is most of what the end of a connection costs."""
    backend, client = await world.pair()
    await client.send(LAST)
    call = await backend.call()
    await world.until(lambda: tcp_info(client)[0] == 0)
    before = tcp_info(client)[1]
    call.reply(b"x")
    assert (await client.response()).value("connection") == "close"
    assert await client.ending() == "closed"
    assert tcp_info(client)[1] == before + 1


async def test_the_end_comes_with_an_answer_of_the_proxy(world: World) -> None:
    client = await world.client_of(make_fleet())
    await client.send(LAST[:20])
    await world.until(lambda: tcp_info(client)[0] == 0)
    before = tcp_info(client)[1]
    await client.send(LAST[20:])
    assert (await client.response()).status == 404
    assert await client.ending() == "closed"
    assert tcp_info(client)[1] <= before + 2  # the other one: that the rest of the request came


async def test_one_that_takes_no_answer_at_once_has_all_of_it(world: World) -> None:
    """What the socket does not take waits, and its end with it."""
    body = bytes(4 << 20)
    backend = await world.backend()
    client = await world.client_of(make_fleet(make_cluster(backend.port)), receive_buffer=4096)
    await client.send(LAST)
    call = await backend.call()
    call.reply(body)
    assert (await client.response()).body == body
    assert await client.ending() == "closed"
    client.close()
    await world.until(lambda: world.engine.open_connections == 0)


def is_ended(client: Client) -> bool:
    """Our end of the connection has sent its FIN, or has it queued (FIN_WAIT1 of /proc/net/tcp)."""
    port = f":{client.sock.getsockname()[1]:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[2].endswith(port) and row[3] == "04" for row in rows)


async def test_bytes_in_front_of_the_clients_end_cost_it_no_answer(world: World) -> None:
    """Closed with bytes that nobody has read the kernel resets: what it still has to send is lost."""
    body = bytes(100_000)
    backend = await world.backend()
    world.apply(make_fleet(make_cluster(backend.port)))
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)  # all of it is the kernel's
    port = await world.listen(sock=sock)
    client = await world.client(port, receive_buffer=4096)
    await client.send(LAST)
    call = await backend.call()
    call.reply(body)
    await world.until(lambda: is_ended(client))
    client.sock.send(b"\r\n")
    client.shut_writing()  # the engine finds both at once: nothing else ran between them
    await world.until(lambda: world.engine.open_connections == 0)
    assert (await client.response()).body == body
    assert await client.ending() == "closed"


async def test_the_second_parser_is_used_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def count(kind: str) -> None:
        parser = getattr(fastpath, kind)

        def make(owner: object) -> object:
            made.append(kind)
            return parser(owner)

        monkeypatch.setattr(fastpath, kind, make)

    count("HttpRequestParser")
    count("HttpResponseParser")
    backend = await world.backend(say("x"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    body = make_request(method="POST", headers=[("connection", "close")], body=b"abc")
    for message in (LAST, body, LAST, make_request()):
        client = await world.client(port)
        await client.send(message)
        assert (await client.response()).body == b"x"
        client.close()
    assert sorted(made) == ["HttpRequestParser", "HttpResponseParser"]
