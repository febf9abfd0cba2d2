"""Sessions, bounds of endpoints, checks, zones and policies of backends meet in one choice: what holds for each holds beside the others."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from core.backend import make_response, say
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_rule
from core.guard.policies import TRAFFIC
from core.guard.sessions import BY_COOKIE, NAME, get, keeping, numbered, write
from core.h2.backend import H2Backend
from core.world import World
from edgefast import ir


def cookie(port: int) -> list[tuple[str, str]]:
    return [("cookie", f"{NAME}={write(port)}")]


def unit(name: str = TRAFFIC, **said: Any) -> ir.PolicyUnit:
    return ir.PolicyUnit(name=name, traffic=ir.Traffic(**said))


def pending(world: World) -> int:
    return int(world.cluster(CLUSTER)["pending"])


async def test_a_full_endpoint_of_a_session(world: World) -> None:
    """It is served elsewhere for once, on what is idle there; its session stays."""
    backends = await numbered(world, 2)
    ports = [one.port for one in backends]
    fleet = make_fleet(
        make_host(make_rule(traffic=(TRAFFIC,))),
        make_cluster(*ports),
        unit(session=BY_COOKIE, max_endpoint_connections=1),
    )
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


async def test_sessions_while_all_are_ill(world: World) -> None:
    """When all are out nobody is: a session stays."""
    backends = [
        await world.backend(
            lambda call, at=at: make_response(b"%d" % at, 500 if call.path == "/healthz" else 200)
        )
        for at in range(4)
    ]
    ports = [one.port for one in backends]
    check = ir.HealthCheck(kind="http", path="/healthz", interval=50, unhealthy=1)
    u = unit(session=BY_COOKIE, check=check)
    cluster = make_cluster(*ports, treatments=((0, (TRAFFIC,)),))
    client = await world.client(
        await world.serve(make_fleet(make_host(make_rule(traffic=(TRAFFIC,))), cluster, u))
    )
    await world.until(lambda: world.counters["health_checks_ill"] >= 4)
    await world.settle()
    got = [(await get(client, write(ports[2]))).body for _ in range(10)]
    assert set(got) == {b"2"}, got


async def test_sessions_where_panic(world: World) -> None:
    backends = [
        await world.backend(
            lambda call, at=at: make_response(b"%d" % at, 500 if call.path == "/healthz" else 200)
        )
        for at in range(4)
    ]
    ports = [one.port for one in backends]
    check = ir.HealthCheck(kind="http", path="/healthz", interval=50, unhealthy=1)
    u = unit(session=BY_COOKIE, check=check, panic=50)
    cluster = make_cluster(*ports, treatments=((0, (TRAFFIC,)),))
    client = await world.client(
        await world.serve(make_fleet(make_host(make_rule(traffic=(TRAFFIC,))), cluster, u))
    )
    await world.until(lambda: world.counters["health_checks_ill"] >= 4)
    await world.settle()
    got = [(await get(client, write(ports[2]))).body for _ in range(10)]
    assert set(got) == {b"2"}, got


BACK = "traffic/ns/back"


async def test_session_read_with_shares_check(world: World) -> None:
    """Check at the Service alone: a value whose first endpoint is ill and second is well."""
    ill = [False] * 4
    backends = [
        await world.backend(
            lambda call, at=at: make_response(
                b"%d" % at, 500 if call.path == "/healthz" and ill[at] else 200
            )
        )
        for at in range(4)
    ]
    ports = [one.port for one in backends]
    check = ir.HealthCheck(kind="http", path="/healthz", interval=50, unhealthy=1)
    cluster = make_cluster(*ports, treatments=((0, (TRAFFIC, BACK)),))
    share = ir.BackendRef(cluster=CLUSTER, treatment=ir.Treatment(traffic=(TRAFFIC, BACK)))
    fleet = make_fleet(
        make_host(make_rule(share, traffic=(TRAFFIC,))),
        cluster,
        keeping(BY_COOKIE),
        unit(BACK, check=check),
    )
    ill[1] = True
    client = await world.client(await world.serve(fleet))
    await world.until(
        lambda: world.counters["health_checks_ill"] >= 1 and world.counters["health_checks"] >= 4
    )
    await world.settle()
    got = [(await get(client, f"{write(ports[1])}.{write(ports[2])}")).body for _ in range(10)]
    assert set(got) == {b"2"}, got


async def test_session_lost_by_rules_check_that_share_has_not(world: World) -> None:
    """The rule's unit is overridden at the share (another check): the session of a well endpoint stays."""
    backends = [
        await world.backend(
            lambda call, at=at: make_response(
                b"%d" % at, 500 if call.path == "/bad" and at == 2 else 200
            )
        )
        for at in range(4)
    ]
    ports = [one.port for one in backends]
    bad = ir.HealthCheck(kind="http", path="/bad", interval=50, unhealthy=1)
    good = ir.HealthCheck(kind="http", path="/good", interval=50, unhealthy=1)
    # /free uses the cluster by the rule's own check, so it is made
    cluster = make_cluster(*ports, treatments=((0, (TRAFFIC,)), (1, (BACK, TRAFFIC))))
    share = ir.BackendRef(
        cluster=CLUSTER, treatment=ir.Treatment(traffic=(BACK, TRAFFIC), ceilings=1)
    )
    fleet = make_fleet(
        make_host(make_rule(share, traffic=(TRAFFIC,)), ("/free", make_rule(traffic=(TRAFFIC,)))),
        cluster,
        unit(session=BY_COOKIE, check=bad),
        unit(BACK, check=good),
    )
    client = await world.client(await world.serve(fleet))
    await world.until(
        lambda: world.counters["health_checks_ill"] >= 1 and world.counters["health_checks"] >= 8
    )
    await world.settle()
    got = [(await get(client, write(ports[2]))).body for _ in range(10)]
    assert set(got) == {b"2"}, got


async def test_h2_draining_holds_no_place(world: World) -> None:
    backends = [H2Backend(lambda ask, at=at: ask.reply(b"%d" % at)) for at in range(2)]
    for one in backends:
        world.keep(await one.start())
    ports = [one.port for one in backends]
    cluster = msgspec.structs.replace(
        make_cluster(ports[0], protocol="h2", max_connections=1),
        fallback=make_cluster(ports[1]).endpoints,
    )
    client = await world.client(
        await world.serve(
            make_fleet(make_host(make_rule(traffic=(TRAFFIC,))), cluster, keeping(BY_COOKIE))
        )
    )
    for _ in range(3):
        assert (await get(client, write(ports[1]))).body == b"1"
        answer = await asyncio.wait_for(get(client), 3)
        assert answer.body == b"0"


async def test_h2_bound_makes_place(world: World) -> None:
    backends = [H2Backend(lambda ask, at=at: ask.reply(b"%d" % at)) for at in range(2)]
    for one in backends:
        world.keep(await one.start())
    ports = [one.port for one in backends]
    cluster = make_cluster(*ports, protocol="h2", max_connections=1)
    client = await world.client(
        await world.serve(
            make_fleet(make_host(make_rule(traffic=(TRAFFIC,))), cluster, keeping(BY_COOKIE))
        )
    )
    got = []
    for at in (0, 1, 0, 1):
        got.append((await get(client, write(ports[at]))).body)
    assert got == [b"0", b"1", b"0", b"1"], got


async def test_ill_then_draining(world: World) -> None:
    backends = [
        await world.backend(lambda call, at=at: make_response(b"%d" % at, 500 if at == 1 else 200))
        for at in range(2)
    ]
    ports = [one.port for one in backends]
    check = ir.HealthCheck(kind="http", path="/healthz", interval=50, unhealthy=1)
    u = unit(session=BY_COOKIE, check=check)
    cluster = make_cluster(*ports, treatments=((0, (TRAFFIC,)),))
    client = await world.client(
        await world.serve(make_fleet(make_host(make_rule(traffic=(TRAFFIC,))), cluster, u))
    )
    await world.until(lambda: world.counters["health_checks_ill"] >= 1)
    await world.settle()
    assert (await get(client, write(ports[1]))).body == b"0"
    going = msgspec.structs.replace(
        cluster, endpoints=cluster.endpoints[:1], fallback=cluster.endpoints[1:]
    )
    world.apply(make_fleet(make_host(make_rule(traffic=(TRAFFIC,))), going, u))
    answer = await get(client, write(ports[1]))
    assert (answer.status, answer.body) == (200, b"0")


async def test_zone_counts_once(world: World) -> None:
    """Slow start draws again; a choice is counted once."""
    world.engine.zones.settle("a", {})
    backends = [await world.backend(say("x")) for _ in range(3)]
    ports = [one.port for one in backends]

    def fl(n: int) -> ir.Fleet:
        made = make_cluster(*ports[:n])
        made = msgspec.structs.replace(
            made,
            endpoints=tuple(
                msgspec.structs.replace(e, zone=z)
                for e, z in zip(made.endpoints, "bba", strict=False)
            ),
        )
        return make_fleet(
            make_host(make_rule(traffic=(TRAFFIC,))),
            made,
            unit(
                load_balancer=ir.LoadBalancer(
                    type="least_request",
                    zones=ir.ZoneAware(min_endpoints=1, force=1),
                    slow_start=60000,
                )
            ),
        )

    client = await world.client(await world.serve(fl(2)))
    await client.get()
    world.apply(fl(3))
    before = world.counters["zone_own"] + world.counters["zone_other"]
    for _ in range(20):
        await client.get()
    assert world.counters["zone_own"] + world.counters["zone_other"] - before == 20
