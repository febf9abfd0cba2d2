"""Sessions, bounds of endpoints, checks, zones and policies of backends meet in one choice: what holds for each holds beside the others."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from core.backend import Answer, make_response, say
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_rule
from core.h2.backend import H2Backend
from core.policy.policies import TRAFFIC
from core.policy.sessions import BY_COOKIE, NAME, get, keeping, numbered, write
from core.world import World
from edgefast import ir


def cookie(port: int) -> list[tuple[str, str]]:
    return [("cookie", f"{NAME}={write(port)}")]


def unit(name: str = TRAFFIC, **said: Any) -> ir.PolicyUnit:
    return ir.PolicyUnit(name=name, traffic=ir.Traffic(**said))


def check_at(path: str) -> ir.HealthCheck:
    """One that finds out at once."""
    return ir.HealthCheck(kind="http", path=path, interval=50, unhealthy=1)


CHECK = check_at("/healthz")


async def ill_at(world: World, path: str, count: int, *ill: int) -> list[int]:
    """Ports of backends that answer with their number, these with 500 at this path."""

    def answer(at: int) -> Answer:
        return lambda call: make_response(
            b"%d" % at, 500 if at in ill and call.path == path else 200
        )

    return [(await world.backend(answer(at))).port for at in range(count)]


async def h2_numbered(world: World, count: int) -> list[int]:
    """Ports of backends of HTTP/2 that answer with their number."""
    backends = [
        await H2Backend(lambda ask, at=at: ask.reply(b"%d" % at)).start() for at in range(count)
    ]
    for one in backends:
        world.keep(one)
    return [one.port for one in backends]


def treated(ports: list[int]) -> ir.Cluster:
    return make_cluster(*ports, treatments=((0, (TRAFFIC,)),))


def fleet_of(cluster: ir.Cluster, *units: ir.PolicyUnit) -> ir.Fleet:
    return make_fleet(make_host(make_rule(traffic=(TRAFFIC,))), cluster, *units)


async def test_a_full_endpoint_of_a_session(world: World) -> None:
    """It is served elsewhere for once, on what is idle there; its session stays."""
    backends = await numbered(world, 2)
    ports = [one.port for one in backends]
    fleet = fleet_of(make_cluster(*ports), unit(session=BY_COOKIE, max_endpoint_connections=1))
    port = await world.serve(fleet)
    a, b, c = [await world.client(port) for _ in range(3)]
    backends[0].answer = None
    await a.send(make_request(headers=cookie(ports[0])))
    held = await backends[0].call()
    assert (await get(b, write(ports[1]))).body == b"1"
    for _ in range(5):
        answer = await asyncio.wait_for(get(c, write(ports[0])), 5)
        assert (answer.body, answer.value("set-cookie")) == (b"1", None)
    assert len(backends[1].links) == 1
    held.reply(b"0")
    await a.response()


@pytest.mark.parametrize("panic", [None, 50])
async def test_sessions_while_all_are_ill(world: World, panic: int | None) -> None:
    """When all are out nobody is, whether a threshold says so or not: a session stays."""
    ports = await ill_at(world, "/healthz", 4, 0, 1, 2, 3)
    fleet = fleet_of(treated(ports), unit(session=BY_COOKIE, check=CHECK, panic=panic))
    client = await world.client_of(fleet)
    await world.until(lambda: world.counters["health_checks_ill"] >= 4)
    for port, body in zip(ports, (b"0", b"1", b"2", b"3"), strict=True):
        assert (await get(client, write(port))).body == body


async def test_sessions_where_panic(world: World) -> None:
    """So many are out that all are used: the session of one that is ill stays, and does not where fewer are asked for."""
    ports = await ill_at(world, "/healthz", 4, 2, 3)
    for panic, body in ((60, {b"2"}), (50, {b"0", b"1"})):
        fleet = fleet_of(treated(ports), unit(session=BY_COOKIE, check=CHECK, panic=panic))
        client = await world.client_of(fleet)
        await world.until(lambda: world.counters["health_checks_ill"] >= 2)
        assert {(await get(client, write(ports[2]))).body for _ in range(20)} == body


BACK = "traffic/ns/back"


async def test_session_read_with_shares_check(world: World) -> None:
    """Check at the Service alone: a value whose first endpoint is ill and second is well."""
    ports = await ill_at(world, "/healthz", 4, 1)
    cluster = make_cluster(*ports, treatments=((0, (TRAFFIC, BACK)),))
    share = ir.BackendRef(cluster=CLUSTER, treatment=ir.BackendPolicy(traffic=(TRAFFIC, BACK)))
    fleet = make_fleet(
        make_host(make_rule(share, traffic=(TRAFFIC,))),
        cluster,
        keeping(BY_COOKIE),
        unit(BACK, check=CHECK),
    )
    client = await world.client_of(fleet)
    await world.until(
        lambda: world.counters["health_checks_ill"] >= 1 and world.counters["health_checks"] >= 4
    )
    await world.settle()
    got = [(await get(client, f"{write(ports[1])}.{write(ports[2])}")).body for _ in range(10)]
    assert set(got) == {b"2"}, got


async def test_session_lost_by_rules_check_that_share_has_not(world: World) -> None:
    """The rule's unit is overridden at the share (another check): the session of a well endpoint stays."""
    ports = await ill_at(world, "/bad", 4, 2)
    # /free uses the cluster by the rule's own check, so it is made
    cluster = make_cluster(*ports, treatments=((0, (TRAFFIC,)), (1, (BACK, TRAFFIC))))
    share = ir.BackendRef(
        cluster=CLUSTER, treatment=ir.BackendPolicy(traffic=(BACK, TRAFFIC), ceilings=1)
    )
    fleet = make_fleet(
        make_host(make_rule(share, traffic=(TRAFFIC,)), ("/free", make_rule(traffic=(TRAFFIC,)))),
        cluster,
        unit(session=BY_COOKIE, check=check_at("/bad")),
        unit(BACK, check=check_at("/good")),
    )
    client = await world.client_of(fleet)
    await world.until(
        lambda: world.counters["health_checks_ill"] >= 1 and world.counters["health_checks"] >= 8
    )
    await world.settle()
    got = [(await get(client, write(ports[2]))).body for _ in range(10)]
    assert set(got) == {b"2"}, got


async def test_h2_draining_holds_no_place(world: World) -> None:
    ports = await h2_numbered(world, 2)
    cluster = msgspec.structs.replace(
        make_cluster(ports[0], protocol="h2", max_connections=1),
        fallback=make_cluster(ports[1]).endpoints,
    )
    client = await world.client_of(fleet_of(cluster, keeping(BY_COOKIE)))
    for _ in range(3):
        assert (await get(client, write(ports[1]))).body == b"1"
        answer = await asyncio.wait_for(get(client), 3)
        assert answer.body == b"0"


async def test_h2_bound_makes_place(world: World) -> None:
    ports = await h2_numbered(world, 2)
    cluster = make_cluster(*ports, protocol="h2", max_connections=1)
    client = await world.client_of(fleet_of(cluster, keeping(BY_COOKIE)))
    for at in (0, 1, 0, 1):
        assert (await get(client, write(ports[at]))).body == b"%d" % at


async def test_ill_then_draining(world: World) -> None:
    ports = await ill_at(world, "/healthz", 2, 1)
    cluster, u = treated(ports), unit(session=BY_COOKIE, check=CHECK)
    client = await world.client_of(fleet_of(cluster, u))
    await world.until(lambda: world.counters["health_checks_ill"] >= 1)
    await world.settle()
    assert (await get(client, write(ports[1]))).body == b"0"
    going = msgspec.structs.replace(
        cluster, endpoints=cluster.endpoints[:1], fallback=cluster.endpoints[1:]
    )
    world.apply(fleet_of(going, u))
    answer = await get(client, write(ports[1]))
    assert (answer.status, answer.body) == (200, b"0")


async def test_zone_counts_once(world: World) -> None:
    """Slow start draws again; a choice is counted once."""
    world.engine.zones.settle("a", {})
    backends = [await world.backend(say("x")) for _ in range(3)]
    ports = [one.port for one in backends]

    balancer = ir.LoadBalancer(
        type="least_request", zones=ir.ZoneAware(min_endpoints=1, force=1), slow_start=60_000
    )

    def fleet(count: int) -> ir.Fleet:
        endpoints = tuple(
            ir.Endpoint(address="127.0.0.1", port=port, zone=zone)
            for port, zone in zip(ports[:count], "bba"[:count], strict=True)
        )
        return fleet_of(ir.Cluster(name=CLUSTER, endpoints=endpoints), unit(load_balancer=balancer))

    client = await world.client_of(fleet(2))
    await client.get()
    world.apply(fleet(3))
    before = world.counters["zone_own"] + world.counters["zone_other"]
    for _ in range(20):
        await client.get()
    assert world.counters["zone_own"] + world.counters["zone_other"] - before == 20
