"""Who of those that wait for a connection is served next, and who is refused: client addresses have turns."""

from __future__ import annotations

from core.backend import Backend, Call
from core.client import Client, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet
from core.world import World

OTHER, THIRD = "127.0.0.2", "127.0.0.3"


async def wait(world: World, port: int, path: str, source: str = "127.0.0.1") -> Client:
    """A client whose request waits for a connection."""
    client = await world.client(port, source=source)
    before = world.counters["downstream_bytes_received"]
    data = make_request(path)
    await client.send(data)
    await world.until(lambda: world.counters["downstream_bytes_received"] >= before + len(data))
    return client


async def order(backend: Backend, call: Call, number: int) -> list[str]:
    """The paths of those that wait, as they come to the backend."""
    paths = []
    for _ in range(number):
        call.reply()
        call = await backend.call()
        paths.append(call.path)
    call.reply()
    return paths


async def test_each_address_has_a_turn_before_any_has_two(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(make_fleet(make_cluster(backend.port, max_connections=1)))
    holder = await wait(world, port, "/holder")
    call = await backend.call()
    crowd = [await wait(world, port, f"/{number}") for number in range(4)]
    crowd += [await wait(world, port, f"/other{number}", OTHER) for number in range(2)]
    crowd.append(await wait(world, port, "/third", THIRD))
    assert world.cluster(CLUSTER)["pending"] == 7
    assert await order(backend, call, 7) == [
        "/0", "/other0", "/third", "/1", "/other1", "/2", "/3",
    ]  # fmt: skip
    for client in (holder, *crowd):
        assert (await client.response()).status == 200


async def test_the_address_with_most_in_a_full_queue_gives_way(world: World) -> None:
    """Its last one is told 503, whoever else comes; its own are refused as they come."""
    backend = await world.backend()
    cluster = make_cluster(backend.port, max_connections=1, max_pending=4)
    port = await world.serve(make_fleet(cluster))
    holder = await wait(world, port, "/holder")
    call = await backend.call()
    crowd = [await wait(world, port, f"/{number}") for number in range(4)]
    others = [await wait(world, port, "/other0", OTHER)]
    assert (await crowd.pop().response()).status == 503
    assert (await (await wait(world, port, "/more")).response()).status == 503
    others.append(await wait(world, port, "/other1", OTHER))
    assert (await crowd.pop().response()).status == 503
    refused = await wait(world, port, "/other2", OTHER)
    assert (await refused.response()).status == 503, "both have two now"
    assert world.cluster(CLUSTER)["pending"] == 4
    assert world.counters["pending_refused"] == 4
    assert world.counters["pending_gave_way"] == 2
    assert await order(backend, call, 4) == ["/0", "/other0", "/1", "/other1"]
    for client in (holder, *crowd, *others):
        assert (await client.response()).status == 200


async def test_who_left_is_not_counted(world: World) -> None:
    backend = await world.backend()
    cluster = make_cluster(backend.port, max_connections=1, max_pending=4)
    port = await world.serve(make_fleet(cluster))
    holder = await wait(world, port, "/holder")
    call = await backend.call()
    gone = [await wait(world, port, "/gone") for _ in range(4)]
    for client in gone:
        client.reset()
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 0)
    others = [await wait(world, port, f"/other{number}", OTHER) for number in range(3)]
    one = await wait(world, port, "/one")
    two = await wait(world, port, "/two")
    assert (await others.pop().response()).status == 503, "three are more than one"
    assert await order(backend, call, 4) == ["/other0", "/one", "/other1", "/two"]
    for client in (holder, *others, one, two):
        assert (await client.response()).status == 200
