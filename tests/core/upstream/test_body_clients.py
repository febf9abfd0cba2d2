"""Whose bodies hold a cluster's connections: clients have turns, and who has much gives way to who has little."""

from __future__ import annotations

import pytest

from core.client import Client
from core.fleets import CLUSTER
from core.upstream.slow import HEAD, give, held, open_site, post
from core.world import World
from edgefast import ir

BEGUN = HEAD % 100_000 + b"x" * 5000
OTHER = "127.0.0.2"
PLACES = {"body_start": 1000, "body_rate": 1000, "body_buffer": 0}


async def test_one_client_alone_may_have_all_of_it(world: World) -> None:
    backend = await world.backend()
    port = await open_site(world, backend, 8, body_share=50, **PLACES)
    clients = [await post(world, port, BEGUN) for _ in range(4)]
    assert held(world) == 4
    waiting = await post(world, port, BEGUN)
    assert world.cluster(CLUSTER)["bodies_waiting"] == 1
    assert world.counters["bodies_gave_way"] == 0
    for client in (*clients, waiting):
        client.reset()


async def test_who_has_too_much_gives_way_to_another(world: World) -> None:
    """Also to one that has just come, though all of them keep the rate; and only what is too much."""
    backend = await world.backend()
    port = await open_site(world, backend, 8, body_share=50, **PLACES)
    greedy = [await post(world, port, BEGUN) for _ in range(4)]
    await world.until(lambda: len(backend.links) == 4)
    await give(world, greedy[0], b"x" * 5000)
    for number in range(2):
        before = held(world)
        other = await post(world, port, BEGUN, source=OTHER)
        await world.until(lambda n=number: world.counters["bodies_gave_way"] == n + 1)  # type: ignore[misc]
        await world.until(lambda b=before: held(world) == b)  # type: ignore[misc]
        assert world.cluster(CLUSTER)["bodies_waiting"] == 0
    waiting = await post(world, port, BEGUN, source=OTHER)
    assert world.cluster(CLUSTER)["bodies_waiting"] == 1
    assert world.counters["bodies_gave_way"] == 2, "each has its half"
    again = await post(world, port, BEGUN)
    assert world.cluster(CLUSTER)["bodies_waiting"] == 2
    assert [line["status"] for line in world.lines()] == [408, 408]
    for client in (*greedy, other, waiting, again):
        client.reset()


async def test_who_came_first_does_not_stand_before_another_client(world: World) -> None:
    """A full queue of one client is no queue for others: they have turns, and make room there."""
    backend = await world.backend()
    port = await open_site(world, backend, 4, body_share=25, body_client_share=100, **PLACES)
    holder = await post(world, port, BEGUN)
    await world.until(lambda: len(backend.links) == 1)
    crowd = [await post(world, port, BEGUN) for _ in range(4)]
    assert world.cluster(CLUSTER)["bodies_waiting"] == 4
    other = await post(world, port, BEGUN.replace(b"slow", b"othr"), source=OTHER)
    assert (await crowd.pop().response()).status == 503, "the last one of those who are many"
    assert world.cluster(CLUSTER)["bodies_waiting"] == 4
    refused = await world.client(port)
    assert (await refused.ask(BEGUN)).status == 503, "its own are as many as before"
    holder.reset()
    await world.until(lambda: len(backend.links) == 2, "the first of the crowd")
    crowd.pop(0).reset()
    await world.until(lambda: any(b"POST /othr " in link.received for link in backend.links))
    assert world.cluster(CLUSTER)["bodies_waiting"] == 2
    for client in (*crowd, other):
        client.reset()


def told(address: str) -> bytes:
    return BEGUN.replace(b"\r\n\r\n", b"\r\nx-forwarded-for: %b\r\n\r\n" % address.encode())


@pytest.mark.parametrize(
    ("first", "second", "gives_way"),
    [
        ("192.0.2.1", "::ffff:192.0.2.1", 0),
        ("192.0.2.1", "192.0.2.2", 1),
        ("2001:db8::1", "2001:db8::ffff:1:2:3", 0),
        ("2001:db8::1", "2001:db8:0:1::1", 1),
        ("10.1.1.1", "192.0.2.1", 0),
    ],
)
async def test_whose_body_it_is(first: str, second: str, gives_way: int, world: World) -> None:
    """The client's that trusted proxies name: of IPv6 all of a /64. A proxy that names none has no bound of its own."""
    backend = await world.backend()
    address = ir.ClientAddress(trusted_cidrs=("127.0.0.0/8", "10.0.0.0/8"))
    port = await open_site(world, backend, 8, body_share=50, client_address=address, **PLACES)
    clients: list[Client] = [await post(world, port, told(first)) for _ in range(4)]
    await world.until(lambda: len(backend.links) == 4)
    clients.append(await post(world, port, told(second)))
    assert world.counters["bodies_gave_way"] == gives_way
    assert world.cluster(CLUSTER)["bodies_waiting"] == 1 - gives_way
    for client in clients:
        client.reset()
