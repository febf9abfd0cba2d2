"""Requests that wait for a connection: they are served in turn, or refused, or let go of, and nothing of them stays."""

from __future__ import annotations

from core.apart import apart, shift
from core.backend import say
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_listener
from core.world import World


async def test_some_wait_in_turn_and_the_rest_is_refused(world: World) -> None:
    backend = await world.backend()
    cluster = make_cluster(backend.port, max_connections=2, max_pending=3)
    port = await world.serve(make_fleet(cluster))
    clients = [await world.client(port) for _ in range(7)]
    for number, client in enumerate(clients[:5]):
        await client.send(make_request(f"/{number}"))
        await world.until(lambda n=number: world.engine.active == n + 1)  # type: ignore[misc]
    assert world.cluster(CLUSTER)["pending"] == 3
    for client in clients[5:]:
        answer = await client.get()
        assert answer.status == 503
        assert answer.body == b"too many connections and requests wait for this backend\n"
    assert world.counters["pending_refused"] == 2
    order = []
    for _ in range(5):
        call = await backend.call()
        order.append(call.path)
        call.reply(call.message.target)
    assert order == ["/0", "/1", "/2", "/3", "/4"]
    for number, client in enumerate(clients[:5]):
        assert (await client.response()).body == b"/%d" % number
    assert len(backend.links) == 2
    assert world.counters["upstream_connects"] == 2
    flags = [line["flags"] for line in world.lines()]
    assert flags.count("UO") == 2


async def test_those_that_left_make_room(world: World) -> None:
    backend = await world.backend()
    cluster = make_cluster(backend.port, max_connections=1, max_pending=2)
    port = await world.serve(make_fleet(cluster))
    first, left, other, later = [await world.client(port) for _ in range(4)]
    await first.send(make_request("/first"))
    call = await backend.call()
    for client in (left, other):
        await client.send(make_request("/left"))
    await world.until(lambda: world.engine.active == 3)
    left.reset()
    other.reset()
    await world.until(lambda: world.engine.active == 1)
    await later.send(make_request("/later"))
    await world.until(lambda: world.engine.active == 2)
    call.reply()
    assert (await first.response()).status == 200
    call = await backend.call()
    assert call.path == "/later"
    call.reply()
    assert (await later.response()).status == 200
    assert world.counters["pending_refused"] == 0


async def test_nothing_may_wait(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(
        make_fleet(make_cluster(backend.port, max_connections=1, max_pending=0))
    )
    one, two = await world.client(port), await world.client(port)
    await one.send(make_request())
    call = await backend.call()
    assert (await two.get()).status == 503
    call.reply()
    assert (await one.response()).status == 200


@apart(clock=True)
async def test_waiting_has_a_deadline(world: World) -> None:
    backend = await world.backend()
    cluster = make_cluster(backend.port, max_connections=1)
    port = await world.serve(make_fleet(make_listener(route_timeout=15_000), cluster))
    one, two = await world.client(port), await world.client(port)
    await one.send(make_request())
    call = await backend.call()
    call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n")
    await world.until(lambda: world.counters["downstream_bytes_sent"] > 0)
    await two.send(make_request())
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    shift(16)
    assert (await two.response()).status == 504
    call.send(b"slow")
    assert (await one.response()).body == b"slow"
    assert world.cluster(CLUSTER)["endpoints"][0]["failures"] == 0


async def test_a_lost_connection_makes_room_for_the_next(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(make_fleet(make_cluster(backend.port, max_connections=1)))
    one, two = await world.client(port), await world.client(port)
    await one.send(make_request("/1"))
    call = await backend.call()
    await two.send(make_request("/2"))
    await world.until(lambda: world.engine.active == 2)
    call.link.abort()
    assert (await one.response()).status == 502
    (await backend.call()).reply(b"2")
    assert (await two.response()).body == b"2"


async def test_a_connection_that_must_close_makes_room_too(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(make_fleet(make_cluster(backend.port, max_connections=1)))
    clients = [await world.client(port) for _ in range(4)]
    for client in clients:
        await client.send(make_request())
    for _ in clients:
        (await backend.call()).reply(b"x", headers=(("connection", "close"),))
    for client in clients:
        assert (await client.response()).body == b"x"
    assert len(backend.links) == 4


async def test_waiting_ends_when_connecting_fails(world: World) -> None:
    bad = world.refusing_port()
    port = await world.serve(make_fleet(make_cluster(bad, max_connections=1)))
    clients = [await world.client(port) for _ in range(6)]
    for client in clients:
        await client.send(make_request())
    assert [(await client.response()).status for client in clients] == [503] * 6
    assert world.cluster(CLUSTER)["connections"] == 0


async def test_idle_connections_of_one_endpoint_do_not_starve_another(world: World) -> None:
    """All connections that the cluster may have are idle, none at the endpoint that was picked."""
    one, two, three = [await world.backend(say("x")) for _ in range(3)]
    cluster = make_cluster(one.port, two.port, three.port, max_connections=1)
    client = await world.client_of(make_fleet(make_listener(route_timeout=10_000), cluster))
    assert [(await client.get()).status for _ in range(20)] == [200] * 20


async def test_a_removed_cluster_lets_go_of_those_that_wait(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(make_fleet(make_cluster(backend.port, max_connections=1)))
    one, two = await world.client(port), await world.client(port)
    await one.send(make_request())
    call = await backend.call()
    await two.send(make_request())
    await world.until(lambda: world.engine.active == 2)
    world.send([], [("cluster", CLUSTER)], "2")
    assert (await two.response()).status == 503
    call.reply(b"x")
    assert (await one.response()).body == b"x"


async def test_a_larger_cluster_serves_those_that_wait_at_once(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(make_fleet(make_cluster(backend.port, max_connections=1)))
    clients = [await world.client(port) for _ in range(3)]
    for client in clients:
        await client.send(make_request())
    await world.until(lambda: world.engine.active == 3)
    first = await backend.call()
    world.apply(make_fleet(make_cluster(backend.port, max_connections=3)))
    for call in [first, *await backend.calls(2)]:
        call.reply()
    assert [(await client.response()).status for client in clients] == [200] * 3
    assert len(backend.links) == 3
