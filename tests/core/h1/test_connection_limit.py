"""Places of a port's connections: one address holds all it can, and another address is still served."""

from __future__ import annotations

import select
import socket

import pytest

from core.apart import apart, shift
from core.backend import Backend, Call, make_response, say
from core.client import Client, make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.asking import Asker
from core.world import World
from edgefast import ir

MOST = 8
OTHER = "127.0.0.2"
LATE = 100_000  # ms: longer than any test
PIPELINED = 200  # answers of this size are more than the kernel holds
LARGE = 30_000
BUSY = 72
GET = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"test"), (b":path", b"/")]


async def serve(world: World, backend: Backend, **http: object) -> int:
    http = {"max_connections": MOST, "idle_timeout": LATE, "head_timeout": LATE, **http}
    return await world.serve(make_fleet(make_listener(**http), make_cluster(backend.port)))


def gave_way(world: World) -> int:
    return world.counters["connections_gave_way"]


async def hold(world: World, port: int, what: str, source: str = "127.0.0.1") -> Client:
    """A connection that stays and costs its client nothing."""
    client = await world.client(port, source=source)
    if what == "half":
        await client.send(b"GET / HT")
    elif what == "h2":
        assert (await Asker(client).ask(GET)).status == 200
    elif what == "used":
        assert (await client.get()).status == 200
    return client


def closed(clients: list[Client]) -> int:
    """How many of them are readable, which means that they ended."""
    return len(select.select([client.sock for client in clients], [], [], 0)[0])


@pytest.mark.parametrize("what", ["silent", "half", "used", "h2"])
async def test_quiet_connections_of_the_address_with_most_are_closed(
    what: str, world: World
) -> None:
    port = await serve(world, await world.backend(say("x")))
    held = [await hold(world, port, what) for _ in range(MOST)]
    await world.until(lambda: world.counters["connections_active"] == MOST)
    others = []
    for number in range(MOST // 2):
        others.append(await world.client(port, source=OTHER))
        assert (await others[-1].get()).status == 200
        assert gave_way(world) == number + 1
    refused = [await world.client(port, source=one) for one in ("127.0.0.1", OTHER)]
    for client in refused:  # each of both has as many as the other one
        await client.ending()
    assert world.counters["connections_refused"] == 2
    for client in others:
        assert (await client.get()).status == 200
    assert gave_way(world) == MOST // 2
    assert closed(held) == MOST // 2


async def test_an_attack_that_goes_on(world: World) -> None:
    """One address opens connections as fast as it can; all requests of the other address are answered, each on a new connection."""
    port = await serve(world, await world.backend(say("x")))
    for _ in range(20):
        crowd = [await world.client(port) for _ in range(MOST + 2)]
        client = await world.client(port, source=OTHER)
        assert (await client.get()).status == 200
        client.close()
        for one in crowd[MOST // 2 :]:
            one.reset()


async def test_a_request_that_its_backend_keeps_waiting_stays(world: World) -> None:
    backend = await world.backend()
    port = await serve(world, backend, max_connections=3)
    busy = [await world.client(port) for _ in range(3)]
    for client in busy:
        await client.send(make_request())
    calls = await backend.calls(3)
    await (await world.client(port, source=OTHER)).ending()
    assert (gave_way(world), world.counters["connections_refused"]) == (0, 1)
    for call in calls:
        call.reply(b"x")
    assert [(await one.response()).status for one in busy] == [200] * 3


async def stuck(world: World, port: int) -> Client:
    """A client that reads nothing. It has no request in flight: the end of an answer waits to be sent, and more requests wait behind it."""
    client = await world.client(port, receive_buffer=4096)
    await client.send(make_request("/large") * PIPELINED)
    before = -1
    while before != (before := world.counters["downstream_bytes_sent"]):
        await world.turns(100)
    return client


def large(call: Call) -> bytes:
    return make_response(b"y" * LARGE if call.path == "/large" else b"x")


async def test_the_end_of_an_answer_is_sent(world: World) -> None:
    """The connection was quiet first, but the idle ones are closed."""
    backend = await world.backend(large)
    port = await serve(world, backend, max_connections=3)
    busy = await stuck(world, port)
    idle = [await hold(world, port, "used") for _ in range(2)]
    client = await world.client(port, source=OTHER)
    assert (await client.get()).status == 200
    assert (gave_way(world), closed(idle)) == (1, 1)
    for _ in range(PIPELINED):
        assert len((await busy.response()).body) == LARGE


async def test_the_end_of_an_answer_over_http2_is_sent(world: World) -> None:
    """The same when the stream is closed and its last frames wait for the socket."""
    backend = await world.backend(large)
    http = {"max_connections": 3, "idle_timeout": LATE, "head_timeout": LATE}
    world.apply(make_fleet(make_listener(**http), make_cluster(backend.port)))
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    port = await world.listen(sock=sock)
    busy = Asker(await world.client(port, receive_buffer=4096))
    busy.frames.send_headers(1, [*GET[:3], (b":path", b"/large")], end_stream=True)
    await busy.client.send(busy.frames.data_to_send())
    await world.until(lambda: world.counters["downstream_bytes_sent"] > LARGE)
    idle = [await hold(world, port, "used") for _ in range(2)]
    client = await world.client(port, source=OTHER)
    assert (await client.get()).status == 200
    assert (gave_way(world), closed(idle)) == (1, 1)
    assert len((await busy.answer(1)).body) == LARGE


@apart(clock=True)
async def test_clients_that_do_not_read_lock_nobody_out(world: World) -> None:
    """The same after the clients have sent their end: their connections are closing then."""
    port = await serve(world, await world.backend(large), max_connections=3)
    for ends in (False, True):
        before = gave_way(world)
        crowd = [await stuck(world, port) for _ in range(3)]
        for client in crowd:
            if ends:
                client.sock.shutdown(socket.SHUT_WR)
        await world.turns(50)
        shift(1.1)
        other = await world.client(port, source=OTHER)
        assert (await other.get()).status == 200
        assert gave_way(world) == before + 1
        for client in (*crowd, other):
            client.reset()
        await world.until(lambda: world.counters["connections_active"] == 0)


@apart(clock=True)
async def test_busy_addresses_do_not_shield_another_one(world: World) -> None:
    """More addresses than one search covers have most connections, and no quiet one."""
    backend = await world.backend()
    port = await serve(world, backend, max_connections=3 * BUSY + 2)
    for number in range(BUSY):
        for _ in range(3):
            client = await world.client(port, source=f"127.0.1.{number + 1}")
            await client.send(make_request())
    await backend.calls(3 * BUSY)
    for _ in range(2):
        await hold(world, port, "silent", "127.0.2.1")
    await world.until(lambda: world.counters["connections_active"] == 3 * BUSY + 2)
    shift(1.1)
    for number in range(4):
        if gave_way(world) == 0:
            client = await world.client(port, source=OTHER)
            await world.until(
                lambda seen=number: gave_way(world) + world.counters["connections_refused"] > seen
            )
    await client.send(make_request())
    (await backend.call()).reply(b"x")
    assert (await client.response()).body == b"x"
    assert gave_way(world) == 1


@apart(clock=True)
async def test_slow_posts_of_one_address_give_way(world: World) -> None:
    backend = await world.backend(say("x"))
    port = await serve(world, backend)
    crowd = [await world.client(port) for _ in range(MOST)]
    for client in crowd:
        await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 900000\r\n\r\nx")

    def passed_on() -> bool:
        return [link.received[-5:] for link in backend.links] == [b"\r\n\r\nx"] * MOST

    # A body has BODY_GRACE_MS from when its backend connection is ready, not from when the request came.
    await world.until(passed_on)
    shift(6)
    other = await world.client(port, source=OTHER)
    assert (await other.get()).status == 200
    assert gave_way(world) == 1
    for client in crowd:
        client.reset()


@apart(clock=True)
async def test_where_each_address_has_one_the_oldest_quiet_one_gives_way(world: World) -> None:
    port = await serve(world, await world.backend(say("x")), max_connections=3)
    held = []
    for number in (11, 12, 13):
        held.append(await hold(world, port, "used", f"127.0.0.{number}"))
    await (await world.client(port, source=OTHER)).ending()
    shift(0.9)
    assert (await held[0].get()).status == 200
    shift(0.9)
    client = await world.client(port, source=OTHER)
    assert (await client.get()).status == 200
    assert gave_way(world) == 1
    await held[1].ending()
    for one in (held[0], held[2]):
        assert (await one.get()).status == 200


async def test_each_port_has_places_of_its_own(world: World) -> None:
    backend = await world.backend(say("x"))
    listeners = [
        make_listener(name, port=number, max_connections=MOST)
        for name, number in (("ns/gw/one", 80), ("ns/gw/two", 81))
    ]
    hosts = [make_host(make_rule(), listener=one.name) for one in listeners]
    world.apply(make_fleet(*listeners, *hosts, make_cluster(backend.port)))
    one, two = await world.listen(80), await world.listen(81)
    for _ in range(MOST):
        await hold(world, one, "used")
    client = await world.client(two)
    assert (await client.get()).status == 200
    assert gave_way(world) == 0


@pytest.mark.parametrize("trusted", [False, True])
async def test_a_client_is_who_the_proxy_protocol_says(trusted: bool, world: World) -> None:
    cidrs = ("127.0.0.0/8",) if trusted else ()
    address = ir.ClientAddress(
        proxy_protocol="required", trusted_cidrs=cidrs, proxy_senders=("127.0.0.0/8",)
    )
    port = await serve(world, await world.backend(say("x")), client_address=address)

    async def come(source: str) -> Client:
        client = await world.client(port)
        line = f"PROXY TCP4 {source} 127.0.0.1 4711 80\r\n".encode()
        await client.send(line + make_request())
        assert (await client.response()).status == 200
        return client

    held = [await come("192.0.2.1") for _ in range(MOST)]
    for _ in range(2):
        await come("192.0.2.2")
    await world.until(lambda: world.counters["connections_active"] == MOST)
    assert (gave_way(world), closed(held)) == (2, 2)
