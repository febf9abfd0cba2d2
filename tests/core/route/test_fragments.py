"""Very large hosts: fragments change, come and go without their root."""

from __future__ import annotations

import pytest

from core.apart import apart
from core.backend import Backend, say
from core.client import make_request
from core.fleets import LISTENER, all_resources, make_cluster, make_fleet, make_host, make_rule
from core.world import World
from edgefast import ir
from edgefast.table import Resource, compile_fleet, decode_blob, diff

HOST = f"{LISTENER}/*"
ROUTES = 500


def large(port: int, routes: int = ROUTES, other: int = -1) -> ir.Fleet:
    """A host of many routes to one cluster; route `other` answers 418 instead."""
    rules = [
        (f"/team-{i}/service", make_rule(route=f"team-{i}/web", status=418 if i == other else 0))
        for i in range(routes)
    ]
    return make_fleet(make_host(*rules), make_cluster(port))


async def ask(world: World, port: int, routes: list[int]) -> list[int]:
    """The statuses of some routes, each on the path of its own."""
    client = await world.client(port)
    return [(await client.get(f"/team-{i}/service/x")).status for i in routes]


SOME = [0, 1, 2, 7, 77, 123, 250, 251, 333, 420, ROUTES - 1]


def parts(fleet: ir.Fleet) -> list[Resource]:
    found = [one for key, one in compile_fleet(fleet).resources.items() if key[0] == "fragment"]
    assert len(found) >= 4
    return found


def holder(fleet: ir.Fleet, route: int) -> Resource:
    """The fragment that has a route."""
    text = f"team-{route}/web"
    (found,) = [one for one in parts(fleet) if text in repr(decode_blob(one.data))]
    return found


@pytest.fixture
def backend(world: World) -> Backend:
    return world.loop.run_until_complete(world.backend(say("x")))


async def test_all_of_it_is_served(world: World, backend: Backend) -> None:
    port = await world.serve(large(backend.port))
    assert await ask(world, port, [*SOME, ROUTES]) == [200] * len(SOME) + [404]
    (host,) = world.engine.dump()["listeners"][0]["virtual_hosts"]
    assert host["fragments"] == len(parts(large(backend.port)))


async def test_one_route_changes_without_the_root(world: World, backend: Backend) -> None:
    port = await world.serve(large(backend.port))
    assert await ask(world, port, SOME) == [200] * len(SOME)  # rules are resolved
    for changed in (7, 123, 420):
        before, after = compile_fleet(large(backend.port)), large(backend.port, other=changed)
        sent = {one.type for one in diff(before, compile_fleet(after, before)).put}
        assert sent == {"fragment"}
        world.apply(after)
        expected = [418 if i == changed else 200 for i in SOME]
        assert await ask(world, port, SOME) == expected


async def test_a_fragment_is_missing_until_it_comes(world: World, backend: Backend) -> None:
    fleet = large(backend.port)
    late = holder(fleet, 7)
    rest = [one for one in all_resources(fleet) if one.name != late.name]
    assert world.send(rest, [], "1") == []
    port = await world.listen()
    statuses = await ask(world, port, SOME)
    assert statuses[SOME.index(7)] == 404
    assert set(statuses) == {200, 404}
    assert world.send([late], [], "2") == []
    assert await ask(world, port, SOME) == [200] * len(SOME)
    assert world.send([], [("fragment", late.name)], "3") == []
    assert await ask(world, port, SOME) == statuses


async def test_a_damaged_fragment_keeps_the_old_one(world: World, backend: Backend) -> None:
    port = await world.serve(large(backend.port))
    good = holder(large(backend.port, other=7), 7)
    data = bytearray(good.data)
    data[len(data) // 2] ^= 1
    ((type_, name, _),) = world.send([Resource("fragment", good.name, "", bytes(data))], [], "2")
    assert (type_, name) == ("fragment", good.name)
    assert await ask(world, port, SOME) == [200] * len(SOME)
    assert world.send([good], [], "3") == []
    assert (await ask(world, port, [7, 8])) == [418, 200]


async def test_a_host_grows_and_shrinks_over_all_cuts(world: World, backend: Backend) -> None:
    port = await world.serve(large(backend.port, 3))
    cuts = set()
    for routes in (3, 400, 3000, 400, 3, 1500):
        world.apply(large(backend.port, routes))
        (host,) = world.engine.dump()["listeners"][0]["virtual_hosts"]
        cuts.add(host["fragments"])
        asked = [0, 1, routes // 2, routes - 1, routes]
        assert await ask(world, port, asked) == [200, 200, 200, 200, 404]
    assert len(cuts) >= 3


async def test_a_request_in_flight_survives_the_removal_of_its_fragment(world: World) -> None:
    slow = await world.backend()
    fleet = large(slow.port)
    client = await world.client_of(fleet)
    await client.send(make_request("/team-7/service"))
    call = await slow.call()
    assert world.send([], [("fragment", holder(fleet, 7).name)], "2") == []
    call.reply(b"late")
    assert (await client.response()).body == b"late"
    assert (await client.get("/team-7/service")).status == 404


@apart()
async def test_a_fragment_of_another_cut_is_never_read_half(world: World) -> None:
    """The root that does not fit it is refused, the fragment is not: what it replaced may be gone all the same."""
    backend = await world.backend(say("x"))
    port = await world.serve(large(backend.port))
    assert await ask(world, port, SOME) == [200] * len(SOME)
    other = parts(large(backend.port, 3000))
    refused = world.send(other[:1], [], "2")
    assert {one[:2] for one in refused} <= {("virtual_host", HOST), ("fragment", other[0].name)}
    assert refused != []
    statuses = await ask(world, port, SOME)
    assert set(statuses) <= {200, 404, 500}
    world.places.clear()
    assert world.send(all_resources(large(backend.port)), [], "3") == []
    assert await ask(world, port, SOME) == [200] * len(SOME)


@apart()
async def test_a_new_cut_with_a_damaged_fragment_is_never_read_half(world: World) -> None:
    backend = await world.backend(say("x"))
    port = await world.serve(large(backend.port))
    assert await ask(world, port, SOME) == [200] * len(SOME)
    new = all_resources(large(backend.port, 3000))
    worst = max(i for i, one in enumerate(new) if one.type == "fragment")
    new[worst] = Resource("fragment", new[worst].name, "", new[worst].data[:-8])
    refused = {one[:2] for one in world.send(new, [], "2")}
    assert ("fragment", new[worst].name) in refused
    statuses = await ask(world, port, SOME)
    assert set(statuses) <= {200, 404, 500}
    world.places.clear()
    assert world.send(all_resources(large(backend.port, 3000)), [], "3") == []
    assert await ask(world, port, SOME) == [200] * len(SOME)
