"""Treatments: policies of one backend of a rule hold for the requests that go there, and for no others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from core.backend import Answer, Call
from core.client import Client, make_request
from core.fleets import encode, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.policies import TRAFFIC, traffic
from core.world import World
from edgefast import ir
from edgefast.table.shards import make_resource

OTHER = "traffic/ns/backend"
CLOSED = "traffic/ns/backend#closed"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
ONE, TWO = "service/ns/one/80", "service/ns/two/80"


async def serve(
    world: World, *units: ir.PolicyUnit, shares: tuple[ir.BackendRef, ...], **rule: Any
) -> tuple[Client, list[list[Call]]]:
    """A client of one rule with these shares, of two clusters."""
    told: list[list[Call]] = [[], []]
    backends = [await world.backend(_noting(calls)) for calls in told]
    clusters = [
        make_cluster(one.port, name=name) for one, name in zip(backends, (ONE, TWO), strict=True)
    ]
    made = make_rule(*shares, **rule)
    fleet = make_fleet(make_listener(), make_host(made), *clusters, *units)
    return await world.client_of(fleet), told


def _noting(calls: list[Call]) -> Answer:
    def answer(call: Call) -> bytes:
        calls.append(call)
        return OK

    return answer


def share(cluster: str, *names: str, ceilings: int = 0) -> ir.BackendRef:
    return ir.BackendRef(
        cluster=cluster, treatment=ir.BackendPolicy(traffic=names, ceilings=ceilings)
    )


async def count(client: Client, requests: int = 20) -> Counter[int]:
    return Counter([(await client.get()).status for _ in range(requests)])


async def test_a_bound_of_one_backend_is_not_that_of_the_other(world: World) -> None:
    client, (one, two) = await serve(
        world,
        traffic(OTHER, max_requests=0),
        shares=(share(ONE, OTHER), ir.BackendRef(cluster=TWO)),
    )
    assert await count(client) == {200: 10, 503: 10}
    assert (len(one), len(two)) == (0, 10)


async def test_what_the_rule_says_holds_where_the_backend_is_not_treated_otherwise(
    world: World,
) -> None:
    client, (one, two) = await serve(
        world,
        traffic(max_requests=0),
        traffic(OTHER, max_requests=5),
        shares=(share(ONE, OTHER, TRAFFIC), ir.BackendRef(cluster=TWO)),
        traffic=(TRAFFIC,),
    )
    assert await count(client) == {200: 10, 503: 10}
    assert (len(one), len(two)) == (10, 0)


async def test_an_override_above_is_not_exceeded_by_the_backend(world: World) -> None:
    client, _ = await serve(
        world,
        traffic(max_requests=0),
        traffic(OTHER, max_requests=5),
        shares=(share(ONE, TRAFFIC, OTHER, ceilings=1),),
        traffic=(TRAFFIC,),
        ceilings=1,
    )
    assert await count(client, 2) == {503: 2}


async def test_what_is_replaced_does_not_hold_and_what_is_of_requests_does(world: World) -> None:
    """A treatment without units: the backend's policy drops what routes inherit."""
    client, _ = await serve(
        world,
        traffic(max_requests=0, body_size=10),
        shares=(share(ONE),),
        traffic=(TRAFFIC,),
    )
    assert await count(client, 2) == {200: 2}
    large = make_request(method="POST", body=b"x" * 11)
    assert (await client.ask(large)).status == 413


@pytest.mark.parametrize("known", [True, False])
async def test_a_closed_backend_closes_its_share_alone(world: World, known: bool) -> None:
    units = [ir.PolicyUnit(name=CLOSED, status=500, reason="bad")] if known else []
    client, (one, two) = await serve(
        world, *units, shares=(share(ONE, CLOSED, ceilings=1), ir.BackendRef(cluster=TWO))
    )
    assert await count(client) == {200: 10, 500: 10}
    assert (len(one), len(two)) == (0, 10)
    assert {line["flags"] for line in world.lines() if line["status"] == 500} == {"CFG"}


async def test_a_key_is_asked_for_where_the_backend_says_so(world: World) -> None:
    keyed = ir.LoadBalancer(type="hash", hash=ir.HashPolicy(headers=("x-user",)))
    told: list[list[Call]] = [[], [], []]
    backends = [await world.backend(_noting(one)) for one in told]
    endpoints = tuple(ir.Endpoint("127.0.0.1", one.port) for one in backends)
    clusters = [ir.Cluster(name=name, endpoints=endpoints) for name in (ONE, TWO)]
    units = [
        ir.PolicyUnit(name=OTHER, traffic=ir.Traffic(load_balancer=keyed)),
        ir.PolicyUnit(
            name=TRAFFIC, traffic=ir.Traffic(load_balancer=ir.LoadBalancer("round_robin"))
        ),
    ]
    made = [
        make_rule(share(ONE, OTHER, TRAFFIC), traffic=(TRAFFIC,)),
        make_rule(TWO, traffic=(TRAFFIC,)),
    ]
    for rule, spread in zip(made, ({9}, {3}), strict=True):
        for one in told:
            one.clear()
        fleet = make_fleet(make_listener(), make_host(rule), *clusters, *units)
        client = await world.client_of(fleet)
        for _ in range(9):
            assert (await client.ask(make_request("/", headers=[("x-user", "jane")]))).status == 200
        assert {len(one) for one in told} - {0} == spread


async def test_an_edit_reaches_a_backend_that_is_resolved(world: World) -> None:
    client, _ = await serve(world, traffic(OTHER, max_requests=5), shares=(share(ONE, OTHER),))
    assert await count(client, 2) == {200: 2}
    edited = make_resource("policy", OTHER, encode(traffic(OTHER, max_requests=0)))
    assert world.send([edited], [], "v") == []
    assert await count(client, 2) == {503: 2}
