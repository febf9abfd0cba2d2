"""Connections of clients and to backends: how many, how long, and how they end."""

from __future__ import annotations

import socket

import pytest

from core.apart import apart, shift
from core.backend import make_response, say
from core.client import Gone, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_listener
from core.world import World


async def test_the_connection_cap(world: World) -> None:
    backend = await world.backend(say("x"))
    listener = make_listener(max_connections=3)
    port = await world.serve(make_fleet(listener, make_cluster(backend.port)))
    clients = [await world.client(port) for _ in range(3)]
    for client in clients:
        assert (await client.get()).status == 200
    extra = [await world.client(port) for _ in range(5)]
    for client in extra:
        await client.ending()
    assert world.counters["connections_refused"] == 5
    assert world.counters["connections_total"] == 8
    await world.until(lambda: world.counters["connections_active"] == 3)
    for client in clients:
        assert (await client.get()).status == 200
    clients[0].close()
    await world.until(lambda: world.engine.open_connections == 2)
    assert (await (await world.client(port)).get()).status == 200


@pytest.mark.parametrize("most", [1, 3])
async def test_requests_per_connection(world: World, most: int) -> None:
    backend = await world.backend(say("x"))
    listener = make_listener(max_requests_per_connection=most)
    client = await world.client_of(make_fleet(listener, make_cluster(backend.port)))
    await client.send(make_request() * (most + 2))
    answers = [await client.response() for _ in range(most)]
    assert [one.value("connection") for one in answers] == [None] * (most - 1) + ["close"]
    assert await client.ending() == "closed"
    assert backend.count == most


async def test_bytes_between_requests(world: World) -> None:
    """A blank line is skipped; anything else is the start of a request."""
    _, client = await world.pair(say("x"))
    assert (await client.get()).status == 200
    await client.send(b"\r\n")
    assert (await client.get()).status == 200
    await client.send(b"\x00")
    await client.send(b"\r\n\r\n")
    assert (await client.response()).status == 400
    assert await client.ending() == "closed"


async def test_backend_connections_are_used_again(world: World) -> None:
    backend = await world.backend(say("x"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    for _ in range(10):
        client = await world.client(port)
        assert (await client.get()).status == 200
        client.close()
    assert len(backend.links) == 1
    assert world.counters["upstream_connects"] == 1
    assert world.counters["upstream_reuses"] == 9


async def test_the_most_recently_used_connection_is_taken(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    clients = [await world.client(port) for _ in range(3)]
    for client in clients:
        await client.send(make_request())
    calls = await backend.calls(3)
    for call in calls:
        call.reply()
        await world.until(lambda: world.counters["requests_active"] == world.engine.active)
    for client in clients:
        await client.response()
    for _ in range(5):
        await clients[0].send(make_request())
        again = await backend.call()
        assert again.link is calls[2].link
        again.reply()
        await clients[0].response()


async def test_an_idle_backend_connection_expires(world: World) -> None:
    backend = await world.backend(say("x"))
    listener = make_listener(upstream_idle=60)
    client = await world.client_of(make_fleet(listener, make_cluster(backend.port)))
    await client.get()
    await world.until(lambda: backend.open == [], "it is closed")
    assert not backend.links[0].reset
    await world.until(lambda: world.cluster(CLUSTER)["connections"] == 0)
    assert (await client.get()).status == 200
    assert len(backend.links) == 2


@apart(clock=True)
async def test_an_idle_backend_connection_lives_for_20_seconds(world: World) -> None:
    backend, client = await world.pair(say("x"))
    for _ in range(4):
        assert (await client.get()).status == 200
        shift(15)
    assert len(backend.links) == 1
    shift(6)
    await world.until(lambda: backend.open == [])


@apart(clock=True)
async def test_the_end_of_a_pooled_connection_is_seen_at_checkout(world: World) -> None:
    """The backend's FIN is in the socket but not yet read: a POST could not be sent again, so it must not be sent at all."""
    backend, client = await world.pair(say("x"))
    assert (await client.get()).status == 200
    await world.settle()
    shift(1)
    # The request is ready before the FIN, and both before the loop looks.
    client.sock.send(make_request(method="POST", body=b"once"))
    backend.links[0].shut_now()
    assert (await client.response()).status == 200
    assert backend.count == 2
    assert len(backend.links) == 2
    assert world.counters["retries"] == 0


async def test_bytes_that_nobody_asked_for_poison_a_connection(world: World) -> None:
    backend, client = await world.pair(say("x"))
    await client.get()
    await world.settle()
    backend.links[0].transport.write(make_response(b"evil"))
    await world.until(lambda: backend.open == [])
    assert (await client.get()).body == b"x"


@pytest.mark.parametrize(
    "answer",
    [
        make_response(b"1") + b"x",
        make_response(b"1") + make_response(b"2"),
        make_response(b"1", headers=(("connection", "close"),)),
    ],
    ids=["a byte too many", "two answers", "close"],
)
async def test_connections_that_are_not_clean_are_thrown_away(world: World, answer: bytes) -> None:
    backend, client = await world.pair(lambda call: answer)
    for _ in range(3):
        assert (await client.get()).body == b"1"
    assert len(backend.links) == 3
    await world.until(lambda: backend.open == [])


async def test_an_answer_before_the_end_of_the_request_costs_the_connection(world: World) -> None:
    backend, client = await world.pair()
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 1000\r\n\r\n123")
    await world.until(lambda: backend.links and backend.links[0].bytes_in)
    backend.links[0].transport.write(make_response(b"enough"))
    assert (await client.response()).body == b"enough"
    await world.until(lambda: backend.open == [])
    await client.send(b"x" * 997 + make_request("/next"))
    (await backend.call()).reply(b"next")
    assert (await client.response()).body == b"next"


async def test_an_early_answer_leaves_no_backend_connection_behind(world: World) -> None:
    """The backend answers and then reads nothing: what was not sent must not keep the connection."""
    backend = await world.backend()
    backend.on_link = lambda link: link.pause()
    client = await world.client_of(make_fleet(make_cluster(backend.port)))
    total = 40 << 20
    await client.send(f"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: {total}\r\n\r\n".encode())
    await world.until(lambda: backend.links)
    sent = -1
    while world.counters["upstream_bytes_sent"] != sent:  # until nothing more fits
        sent = world.counters["upstream_bytes_sent"]
        client.sock.send(b"x" * 65536)
        await world.turns()
    assert sent < total // 2
    backend.links[0].transport.write(make_response(b"enough"))
    assert (await client.response()).body == b"enough"
    client.reset()
    await world.until(lambda: world.cluster(CLUSTER)["connections"] == 0, "it is gone")


async def test_drain_closes_gently(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    busy, begun, idle = [await world.client(port) for _ in range(3)]
    await idle.send(make_request())
    (await backend.call()).reply()
    assert (await idle.response()).value("connection") is None
    await busy.send(make_request("/busy"))
    call = await backend.call()
    await begun.send(make_request("/begun"))
    half = await backend.call()
    half.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n1")
    await world.until(lambda: world.engine.active == 2)
    world.engine.drain()
    call.reply(b"last")
    answer = await busy.response()
    assert (answer.body, answer.value("connection")) == (b"last", "close")
    assert await busy.ending() == "closed"
    half.send(b"2")
    assert (await begun.response()).body == b"12"
    assert await begun.ending() == "closed"
    await idle.send(make_request("/one more"[:4]))
    (await backend.call()).reply(b"more")
    answer = await idle.response()
    assert (answer.body, answer.value("connection")) == (b"more", "close")
    assert await idle.ending() == "closed"
    new = await world.client(port)
    await new.send(make_request())
    (await backend.call()).reply(b"new")
    assert (await new.response()).value("connection") == "close"
    assert await new.ending() == "closed"


@apart(clock=True)
async def test_drain_closes_idle_connections_after_a_grace(world: World) -> None:
    backend = await world.backend(say("x"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    idle = await world.client(port)
    await idle.get()
    world.engine.drain()
    other = await world.client(port)
    assert (await other.get()).status == 200
    assert world.engine.open_connections >= 1
    shift(3.1)
    assert await idle.ending() == "closed"
    await world.until(lambda: world.engine.open_connections == 0)
    assert world.counters["head_timeouts"] == 0


async def test_close_ends_idle_connections_and_lets_the_others_finish(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    busy, idle, fresh = [await world.client(port) for _ in range(3)]
    await idle.send(make_request())
    (await backend.call()).reply()
    await idle.response()
    await busy.send(make_request())
    call = await backend.call()
    await world.until(lambda: world.engine.open_connections == 3)
    world.engine.close(30.0)
    assert await idle.ending() == "closed"
    assert await fresh.ending() == "closed"
    call.reply(b"done")
    answer = await busy.response()
    assert (answer.body, answer.value("connection")) == (b"done", "close")
    assert await busy.ending() == "closed"


async def test_close_aborts_what_is_left(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    clients = [await world.client(port) for _ in range(3)]
    for client in clients:
        await client.send(make_request())
    await backend.calls(3)
    world.engine.close(0.05)
    for client in clients:
        with pytest.raises(Gone):
            await client.response()
    await world.until(lambda: world.engine.open_connections == 0)
    await world.until(lambda: backend.open == [])
    assert {line["flags"] for line in world.lines()} == {"DC"}


async def test_close_ends_requests_that_are_connecting(world: World) -> None:
    client = await world.client_of(make_fleet(make_cluster(await world.silent_port())))
    await client.send(make_request())
    await world.until(lambda: world.engine.active == 1)
    world.engine.close(0)
    with pytest.raises(Gone):
        await client.response()
    await world.until(lambda: world.engine.active == 0)
    assert world.cluster(CLUSTER)["connections"] == 0


async def test_a_client_that_does_not_read_stops_the_backend(world: World) -> None:
    backend = await world.backend()
    client = await world.client_of(make_fleet(make_cluster(backend.port)), receive_buffer=65536)
    await client.send(make_request())
    call = await backend.call()
    size = 24 << 20
    call.send(f"HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n".encode() + b"x" * size)
    seen = -1
    while world.counters["upstream_bytes_received"] != seen:
        seen = world.counters["upstream_bytes_received"]
        await world.turns()
    assert seen < size // 2  # the kernel's buffers and ours, not all of it
    answer = await client.response()
    assert len(answer.body) == size


@apart(clock=True)
async def test_a_client_that_never_reads_is_let_go_of(world: World) -> None:
    backend = await world.backend(lambda call: make_response(b"x" * (16 << 20)))
    listener = make_listener(idle_timeout=30_000, stream_idle_timeout=30_000)
    client = await world.client_of(
        make_fleet(listener, make_cluster(backend.port)), receive_buffer=4096
    )
    await client.send(make_request())
    await world.until(lambda: world.counters["upstream_bytes_received"] > 1 << 16)
    for _ in range(8):
        shift(40)
        await world.turns()
        if world.engine.open_connections == 0:
            break
    assert world.engine.open_connections == 0


async def test_a_reset_is_seen_while_the_client_is_not_read(world: World) -> None:
    """The backend takes no more of the body, so nobody reads what the client sends; that it has gone must still end its request."""
    deaf = socket.create_server(("127.0.0.1", 0))
    world.hold(deaf)
    client = await world.client_of(make_fleet(make_cluster(deaf.getsockname()[1])))
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 1000000000\r\n\r\n")
    blocked = 0
    while blocked < 50:  # until everything between here and there is full
        try:
            client.sock.send(bytes(65536))
            blocked = 0
        except BlockingIOError:
            blocked += 1
            await world.turns(2)
    assert world.engine.active == 1
    client.reset()
    await world.until(lambda: world.engine.active == 0, "its request ends")
    assert world.engine.open_connections == 0
