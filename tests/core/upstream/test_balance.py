"""Shares between backends are exact; endpoints are chosen by least request."""

from __future__ import annotations

from collections import Counter

import pytest

from core.backend import make_response, say
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_rule
from core.world import World
from edgefast import ir


def ref(cluster: str, weight: int) -> ir.BackendRef:
    return ir.BackendRef(cluster=cluster, weight=weight)


@pytest.mark.parametrize("weights", [(70, 30, 0), (1, 1, 1), (1, 0, 0), (3, 2, 1), (1000, 1, 0)])
async def test_500_requests_are_shared_by_weight(world: World, weights: tuple[int, ...]) -> None:
    backend = await world.backend(lambda call: make_response(call.message.value(b"x-share") or b""))
    clusters, refs = [], []
    for number, weight in enumerate(weights):
        clusters.append(make_cluster(backend.port, name=str(number)))
        ops = ir.HeaderOps(set=(("x-share", str(number)),))
        refs.append(ir.BackendRef(cluster=str(number), weight=weight, request_headers=ops))
    client = await world.client_of(make_fleet(make_rule(*refs), *clusters))
    found = Counter([int((await client.get()).body) for _ in range(500)])
    for number, weight in enumerate(weights):
        assert abs(found[number] - 500 * weight / sum(weights)) <= 1, found
        assert weight or not found[number]


@pytest.mark.parametrize("weights", [(0,), (0, 0)])
async def test_no_weight_at_all_is_500(world: World, weights: tuple[int, ...]) -> None:
    backend = await world.backend(say("never"))
    rule = make_rule(*(ref(CLUSTER, weight) for weight in weights))
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    assert [(await client.get()).status for _ in range(3)] == [500] * 3
    assert backend.count == 0


async def test_the_share_of_an_invalid_backend_gets_its_status(world: World) -> None:
    backend = await world.backend(say("x"))
    broken = ir.BackendRef(status=500, reason="no such Service", weight=30)
    rule = make_rule(ref(CLUSTER, 70), broken)
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    found = Counter([(await client.get()).status for _ in range(100)])
    assert found == {200: 70, 500: 30}


async def test_busy_endpoints_get_less(world: World) -> None:
    """One of two endpoints holds its requests: of two choices the idle one is taken, always."""
    slow, fast = await world.backend(), await world.backend(say("fast"))
    port = await world.serve(make_fleet(make_cluster(slow.port, fast.port)))
    blocked = await world.client(port)
    while slow.count == 0:
        await blocked.send(make_request())
        await world.until(lambda: slow.count or fast.count > 0)
        if slow.count == 0:
            await blocked.response()
            fast.count = 0
    client = await world.client(port)
    for _ in range(50):
        assert (await client.get()).body == b"fast"
    (await slow.call()).reply()
    assert (await blocked.response()).status == 200


async def test_requests_in_flight_are_spread_evenly(world: World) -> None:
    backends = [await world.backend() for _ in range(4)]
    port = await world.serve(make_fleet(make_cluster(*(one.port for one in backends))))
    clients = [await world.client(port) for _ in range(64)]
    for client in clients:
        await client.send(make_request())
    await world.until(lambda: sum(one.count for one in backends) == 64)
    counts = [one.count for one in backends]
    assert max(counts) - min(counts) <= 6, counts  # two random choices: far better than chance
    actives = [one["active"] for one in world.cluster(CLUSTER)["endpoints"]]
    assert sorted(actives) == sorted(counts)
    for one in backends:
        for call in await one.calls(one.count):
            call.reply()
    for client in clients:
        await client.response()


async def test_weights_of_endpoints_count(world: World) -> None:
    heavy, light = await world.backend(), await world.backend()
    cluster = ir.Cluster(
        name=CLUSTER,
        endpoints=(
            ir.Endpoint(address="127.0.0.1", port=heavy.port, weight=3),
            ir.Endpoint(address="127.0.0.1", port=light.port, weight=1),
        ),
    )
    port = await world.serve(make_fleet(cluster))
    clients = [await world.client(port) for _ in range(40)]
    for client in clients:
        await client.send(make_request())
    await world.until(lambda: heavy.count + light.count == 40)
    assert (heavy.count, light.count) == (30, 10)
    for one in (heavy, light):
        for call in await one.calls(one.count):
            call.reply()
    for client in clients:
        await client.response()


async def test_a_unix_socket_is_an_endpoint(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = str(tmp_path_factory.mktemp("u") / "b")
    backend = await world.backend(say("unix"))
    await backend.start_unix(path)
    cluster = ir.Cluster(name=CLUSTER, endpoints=(ir.Endpoint(address=path),))
    client = await world.client_of(make_fleet(cluster))
    assert (await client.get()).body == b"unix"
    assert (await client.get()).body == b"unix"
    assert len(backend.links) == 1
    assert world.cluster(CLUSTER)["endpoints"][0]["address"] == f"unix:{path}"


async def test_an_ipv6_address_is_an_endpoint(world: World) -> None:
    backend = await world.backend(say("six"))
    await backend.start(host="::1")
    cluster = ir.Cluster(name=CLUSTER, endpoints=(ir.Endpoint(address="::1", port=backend.port),))
    client = await world.client_of(make_fleet(cluster))
    assert (await client.get()).body == b"six"
    assert world.lines()[0]["endpoint"] == f"[::1]:{backend.port}"
