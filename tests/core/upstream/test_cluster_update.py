"""Clusters change in place: pools and health of what stays survive, what goes is let go of gently."""

from __future__ import annotations

from core.backend import Backend, say
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_rule
from core.world import World
from edgefast import ir


def address(backend: Backend) -> str:
    return f"127.0.0.1:{backend.port}"


def endpoint(world: World, backend: Backend, name: str = CLUSTER) -> dict[str, object]:
    (found,) = [
        one for one in world.cluster(name)["endpoints"] if one["address"] == address(backend)
    ]
    assert isinstance(found, dict)
    return found


async def test_pools_survive(world: World) -> None:
    one, two = await world.backend(say("one")), await world.backend(say("two"))
    client = await world.client_of(make_fleet(make_cluster(one.port)))
    await client.get()
    world.apply(make_fleet(make_cluster(one.port, two.port)))
    assert endpoint(world, one)["idle"] == 1
    world.apply(make_fleet(make_cluster(two.port, one.port)))
    assert endpoint(world, one)["idle"] == 1
    for _ in range(20):
        await client.get()
    assert len(one.links) == len(two.links) == 1
    assert one.count + two.count == 21
    assert min(one.count, two.count) >= 1


async def test_health_survives(world: World) -> None:
    bad, good = world.refusing_port(), await world.backend(say("good"))
    others = [world.refusing_port()]
    client = await world.client_of(make_fleet(make_cluster(bad, good.port)))
    while world.counters["endpoint_ejections"] == 0:
        assert (await client.get()).status == 200
    world.apply(make_fleet(make_cluster(*others, good.port, bad)))
    found = {one["address"]: one for one in world.cluster(CLUSTER)["endpoints"]}
    assert found[f"127.0.0.1:{bad}"]["healthy"] is False
    assert found[f"127.0.0.1:{bad}"]["ejections"] == 1
    assert found[f"127.0.0.1:{others[0]}"]["healthy"] is True
    world.apply(make_fleet(make_cluster(good.port)))
    world.apply(make_fleet(make_cluster(good.port, bad)))  # gone and back: a new endpoint
    found = {one["address"]: one for one in world.cluster(CLUSTER)["endpoints"]}
    assert found[f"127.0.0.1:{bad}"]["healthy"] is True


async def test_idle_connections_of_a_removed_endpoint_are_closed(world: World) -> None:
    one, two = await world.backend(say("one")), await world.backend(say("two"))
    client = await world.client_of(make_fleet(make_cluster(one.port)))
    await client.get()
    await world.until(lambda: endpoint(world, one)["idle"] == 1)
    world.apply(make_fleet(make_cluster(two.port)))
    await world.until(lambda: one.open == [], "the idle connection is closed")
    assert not one.links[0].reset
    assert (await client.get()).body == b"two"
    assert world.cluster(CLUSTER)["connections"] == 1


async def test_requests_on_a_removed_endpoint_are_finished(world: World) -> None:
    old, new = await world.backend(), await world.backend(say("new"))
    port = await world.serve(make_fleet(make_cluster(old.port)))
    client, other = await world.client(port), await world.client(port)
    await client.send(make_request())
    call = await old.call()
    world.apply(make_fleet(make_cluster(new.port)))
    assert (await other.get()).body == b"new"
    call.reply(b"late")
    assert (await client.response()).body == b"late"
    await world.until(lambda: old.open == [], "its connection is not kept")
    assert (await client.get()).body == b"new"


async def test_an_endpoint_that_went_and_came_back_does_not_get_old_connections(
    world: World,
) -> None:
    backend, other = await world.backend(), await world.backend(say("other"))
    client = await world.client_of(make_fleet(make_cluster(backend.port)))
    await client.send(make_request())
    call = await backend.call()
    world.apply(make_fleet(make_cluster(other.port)))
    world.apply(make_fleet(make_cluster(backend.port)))
    call.reply(b"late")
    assert (await client.response()).body == b"late"
    await world.until(lambda: backend.open == [])
    assert world.cluster(CLUSTER)["endpoints"][0]["active"] == 0


async def test_a_removed_cluster_answers_503_and_comes_back(world: World) -> None:
    backend = await world.backend(say("yes"))
    rule, cluster = make_rule(), make_cluster(backend.port)
    client = await world.client_of(make_fleet(rule, cluster))
    assert (await client.get()).status == 200
    world.apply(make_fleet(rule))
    await world.until(lambda: backend.open == [])
    assert (await client.get()).status == 503
    world.apply(make_fleet(rule, cluster))
    assert (await client.get()).body == b"yes"


async def test_a_cluster_without_endpoints_answers_503(world: World) -> None:
    client = await world.client_of(make_fleet(make_cluster()))
    answer = await client.get()
    assert (answer.status, answer.body) == (503, b"no healthy endpoint\n")
    assert world.lines()[0]["flags"] == "NE"


async def test_fallback_is_used_only_while_there_is_nothing_else(world: World) -> None:
    old, new = await world.backend(say("old")), await world.backend(say("new"))
    fallback = (ir.Endpoint(address="127.0.0.1", port=old.port),)
    client = await world.client_of(make_fleet(make_cluster(fallback=fallback)))
    assert (await client.get()).body == b"old"
    world.apply(make_fleet(make_cluster(new.port, fallback=fallback)))
    assert [(await client.get()).body for _ in range(10)] == [b"new"] * 10


async def test_clusters_that_are_gone_are_forgotten(world: World) -> None:
    backend, client = await world.pair(say("x"))
    for number in range(5):
        name = f"service/ns/web-{number}/80"
        world.apply(make_fleet(make_rule(name), make_cluster(backend.port, name=name)))
        assert (await client.get()).status == 200
    await world.settle()
    names = [one["name"] for one in world.engine.dump()["clusters"]]
    assert names == ["service/ns/web-4/80"]
