"""Endpoints of the own zone come first: how many of the requests stay, who takes over when the zone fails, and that nobody is left without."""

from __future__ import annotations

import collections
import random
from typing import Any

import msgspec
import pytest

from core.backend import Backend, make_response
from core.client import Client
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.policies import TRAFFIC
from core.world import World
from edgefast import ir
from edgefast.core.engine import count_choices

FORCE = ir.ZoneAware(min_endpoints=1, force=1)
SHARE = ir.ZoneAware(min_endpoints=1)
KINDS = ("least_request", "round_robin", "random")


async def make_backends(world: World, zones: str) -> list[Backend]:
    """One for each letter, which answers with it: its zone."""
    return [
        await world.backend(lambda call, zone=zone: make_response(zone.encode())) for zone in zones
    ]


def fleet_of(
    backends: list[Backend],
    zones: str,
    said: ir.ZoneAware | None,
    *,
    service: ir.ZoneAware | None = None,
    **parts: Any,
) -> ir.Fleet:
    """said: by a policy; None: its policy says nothing of zones. A space is no zone."""
    made = make_cluster(*(one.port for one in backends), zones=service)
    placed = tuple(
        msgspec.structs.replace(one, zone=zone.strip())
        for one, zone in zip(made.endpoints, zones, strict=True)
    )
    cluster = msgspec.structs.replace(made, endpoints=placed)
    panic = parts.pop("panic", None)
    traffic = ir.Traffic(
        panic=panic,
        load_balancer=ir.LoadBalancer(type=parts.pop("kind", "least_request"), zones=said, **parts),
    )
    unit = ir.PolicyUnit(name=TRAFFIC, traffic=traffic)
    host = make_host(make_rule(traffic=(TRAFFIC,)), ("/free", make_rule()))
    return make_fleet(make_listener(), host, cluster, unit)


async def count(client: Client, times: int = 100, path: str = "/") -> collections.Counter[str]:
    return collections.Counter([(await client.get(path)).body.decode() for _ in range(times)])


async def begin(
    world: World, zones: str, said: ir.ZoneAware | None, zone: str = "a", **parts: Any
) -> tuple[list[Backend], Client]:
    world.engine.zones.settle(zone, parts.pop("proxies", {}))
    backends = await make_backends(world, zones)
    return backends, await world.client_of(fleet_of(backends, zones, said, **parts))


@pytest.mark.parametrize("kind", KINDS)
async def test_all_stay_in_the_own_zone(world: World, kind: str) -> None:
    backends, client = await begin(world, "babab", FORCE, kind=kind)
    assert (await count(client)).keys() == {"a"}
    assert all(one.count >= 20 for one in (backends[1], backends[3]))  # both of them
    assert (world.counters["zone_own"], world.counters["zone_other"]) == (100, 0)
    assert (await count(client, path="/free")).keys() == {"a", "b"}  # whose rule has no policy
    assert world.counters["zone_own"] == 100


@pytest.mark.parametrize("kind", KINDS)
async def test_each_endpoint_of_the_zone_gets_its_part(world: World, kind: str) -> None:
    backends, client = await begin(world, "aaab", FORCE, kind=kind)
    await count(client, 300)
    assert all(60 <= one.count <= 140 for one in backends[:3])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_zone_that_is_ejected_leaves_nobody_without(world: World, kind: str) -> None:
    backends, client = await begin(world, "aabb", FORCE, kind=kind)
    assert (await count(client, 10)).keys() == {"a"}
    for one in backends[:2]:
        one.close()
    # A request whose try in the own zone failed goes on to another zone, and when all of the zone is out nobody tries it.
    assert (await count(client, 60)).keys() == {"b"}
    assert world.counters["endpoint_ejections"] == 2
    before = world.counters["upstream_connect_failures"]
    assert (await count(client, 20)).keys() == {"b"}
    assert world.counters["upstream_connect_failures"] == before


@pytest.mark.parametrize("kind", KINDS)
async def test_no_endpoint_gets_more_than_any_other(world: World, kind: str) -> None:
    """Half of the proxies are in a zone with a quarter of the endpoints: half of what they have goes elsewhere."""
    backends, client = await begin(world, "abbb", SHARE, kind=kind, proxies={"a": 2, "b": 2})
    found = await count(client, 400)
    assert 150 < found["a"] < 250
    # A proxy of the other zone keeps all of its requests; together each endpoint has as many.
    world.engine.zones.settle("b", {"a": 2, "b": 2})
    found += await count(client, 400)
    assert all(130 < one.count < 270 for one in backends)
    assert 150 < found["a"] < 250


async def test_a_zone_with_room_keeps_all(world: World) -> None:
    _, client = await begin(world, "aab", SHARE, proxies={"a": 1, "b": 1})
    assert (await count(client)).keys() == {"a"}


async def test_what_is_over_goes_where_there_is_room(world: World) -> None:
    """Zone c has as many endpoints as it needs for itself; b has what a has not."""
    zones = "abbbc"
    proxies = {"a": 2, "b": 2, "c": 1}  # of 5: needs 0.4, 0.4, 0.2; has 0.2, 0.6, 0.2
    _, client = await begin(world, zones, SHARE, proxies=proxies)
    found = await count(client, 200)
    assert found.keys() == {"a", "b"} and 65 < found["a"] < 135


async def test_one_proxy_alone_spreads_its_requests(world: World) -> None:
    """All requests are its own: its zone has a quarter of the endpoints and gets a quarter of them."""
    _, client = await begin(world, "abbb", SHARE)
    found = await count(client, 400)
    assert 60 < found["a"] < 140


@pytest.mark.parametrize(
    ("zones", "said", "zone"),
    [
        ("aab", ir.ZoneAware(min_endpoints=4, force=1), "a"),  # too few in all
        ("abb", FORCE, ""),  # nobody knows where it is
        ("abb", FORCE, "c"),  # nobody is where it is
        ("abb", ir.ZoneAware(percent=0, min_endpoints=1, force=1), "a"),
        ("abb", ir.ZoneAware(min_endpoints=1, force=2), "a"),  # too few in the zone: its share
        ("a  ", ir.ZoneAware(min_endpoints=1), "a"),  # others say nothing
    ],
)
async def test_endpoints_of_all_zones(world: World, zones: str, said: Any, zone: str) -> None:
    backends, client = await begin(world, zones, said, zone=zone)
    await count(client, 200)
    assert all(one.count > 30 for one in backends)


async def test_a_part_of_the_requests(world: World) -> None:
    _, client = await begin(world, "ab", ir.ZoneAware(percent=50, min_endpoints=1, force=1))
    found = await count(client, 400)
    assert 60 < found["b"] < 140  # a quarter


async def test_zones_by_weight(world: World) -> None:
    """Whichever zone a proxy is in, or none; a zone that nobody speaks of weighs 1."""
    said = ir.ZoneAware(min_endpoints=1, weights=(("a", 3), ("b", 0)))
    backends, client = await begin(world, "aabbc", said, zone="")
    found = await count(client, 400)
    assert found.keys() == {"a", "c"} and 260 < found["a"] < 340
    backends[4].close()
    found = await count(client, 100)
    assert found.keys() == {"a"}  # what c had, too


async def test_half_of_a_zone_is_out(world: World) -> None:
    said = ir.ZoneAware(min_endpoints=1, weights=(("a", 1), ("b", 1)))
    backends, client = await begin(world, "aaaabbbb", said, zone="")
    for one in backends[:3]:
        one.close()
    while world.counters["endpoint_ejections"] < 3:
        await count(client, 10)
    found = await count(client, 400)
    assert 65 < found["a"] < 150  # 0.35 of 1.35


async def test_a_service_may_want_it_and_a_policy_comes_first(world: World) -> None:
    backends = await make_backends(world, "aabb")
    world.engine.zones.settle("b", {})
    client = await world.client_of(fleet_of(backends, "aabb", None, service=FORCE))
    assert (await count(client)).keys() == {"b"}
    assert (await count(client, path="/free")).keys() == {"b"}
    world.apply(fleet_of(backends, "aabb", ir.ZoneAware(percent=0), service=FORCE))
    assert (await count(client)).keys() == {"a", "b"}
    assert (await count(client, path="/free")).keys() == {"b"}


async def test_a_key_has_its_endpoint_in_whichever_zone(world: World) -> None:
    backends = await make_backends(world, "aabb")
    world.engine.zones.settle("b", {})
    by_user = ir.HashPolicy(headers=("x-user",))
    fleet = fleet_of(backends, "aabb", None, service=FORCE, kind="hash", hash=by_user)
    client = await world.client_of(fleet)
    found = {(await client.get("/", headers=[("x-user", f"u{at}")])).body for at in range(40)}
    assert found == {b"a", b"b"}


async def test_a_rollout_moves_endpoints_between_zones(world: World) -> None:
    backends, client = await begin(world, "aabb", FORCE)
    assert (await count(client, 20)).keys() == {"a"}
    for zones in ("bbaa", "abab", "bbbb"):
        world.apply(fleet_of(backends, zones, FORCE))
        before = [one.count for one in backends]
        await count(client, 40)
        chosen = {zones[at] for at, one in enumerate(backends) if one.count > before[at]}
        assert chosen == ({"a"} if "a" in zones else {"b"})
    world.engine.zones.settle("", {})
    world.apply(fleet_of(backends, "aabb", FORCE))
    assert (await count(client)).keys() == {"a", "b"}


async def test_a_zone_that_becomes_known(world: World) -> None:
    _, client = await begin(world, "aabb", FORCE, zone="")
    assert (await count(client)).keys() == {"a", "b"}
    world.engine.zones.settle("b", {"a": 3})
    assert (await count(client)).keys() == {"b"}
    assert world.engine.dump()["zone"] == "b"
    (cluster,) = world.engine.dump()["clusters"]
    assert [one["zone"] for one in cluster["endpoints"]] == ["a", "a", "b", "b"]


async def test_a_new_endpoint_of_the_zone_starts_slowly(world: World) -> None:
    """Others of the zone take what it does not get yet."""
    backends = await make_backends(world, "aaabb")
    world.engine.zones.settle("a", {})

    def fleet(first: int) -> ir.Fleet:
        return fleet_of(backends[first:], "aaabb"[first:], FORCE, slow_start=3_600_000)

    client = await world.client_of(fleet(1))
    await count(client, 20)
    world.apply(fleet(0))
    assert (await count(client, 300)).keys() == {"a"}
    assert 1 <= backends[0].count <= 40


async def test_panic_knows_no_zones(world: World) -> None:
    """So many are out that all are used, of all zones: requests are tried where nobody is, and repeated."""
    backends, client = await begin(world, "aabb", FORCE)
    for one in backends[2:]:
        one.close()
    while world.counters["endpoint_ejections"] < 2:
        await count(client, 10, "/free")

    async def failures(panic: int) -> int:
        world.apply(fleet_of(backends, "aabb", FORCE, panic=panic))
        before = world.counters["upstream_connect_failures"]
        assert (await count(client, 60)).keys() == {"a"}
        return int(world.counters["upstream_connect_failures"] - before)

    assert await failures(50) == 0
    assert await failures(60) > 0


# --- shares, by many choices ----------------------------------------------------------------------------------------------------------


def test_every_endpoint_is_as_busy_as_any_other(world: World) -> None:
    """Of any spread of proxies and endpoints over zones: what all proxies send to a zone together is its part of the endpoints."""
    chance = random.Random(7)
    times = 20_000
    for case in range(12):
        ends = {zone: chance.randint(1, 9) for zone in "abcd"[: chance.randint(2, 4)]}
        proxies = {zone: chance.randint(1, 5) for zone in chance.sample("abcd", 3)}
        weights = {zone: chance.choice((1, 1, 3)) for zone in ends}
        cluster = ir.Cluster(
            name="service/ns/web/80",
            endpoints=tuple(
                ir.Endpoint(
                    address=f"10.{ord(zone)}.0.{at}", port=1, zone=zone, weight=weights[zone]
                )
                for zone in sorted(ends)
                for at in range(ends[zone])
            ),
            zones=SHARE,
        )
        sent: collections.Counter[str] = collections.Counter()
        for zone, count in proxies.items():
            world.engine.zones.settle(zone, proxies)
            found = iter(count_choices(world.engine, cluster, "random", 0, times))
            for one in cluster.endpoints:
                sent[one.zone] += next(found) * count
        total = sum(ends[zone] * weights[zone] for zone in ends)
        for zone, number in ends.items():
            part = sent[zone] / (times * sum(proxies.values()))
            assert part == pytest.approx(number * weights[zone] / total, abs=0.015), (case, zone)


def test_near_ones_come_before_any_that_need_not_be_used(world: World) -> None:
    """A zone never sends more away than it must: where it has room for all of its own, it keeps them."""
    cluster = ir.Cluster(
        name="service/ns/web/80",
        endpoints=tuple(
            ir.Endpoint(address=f"10.0.0.{at}", port=1, zone="ab"[at > 5]) for at in range(10)
        ),
        zones=SHARE,
    )
    world.engine.zones.settle("a", {"a": 3, "b": 2})
    assert sum(count_choices(world.engine, cluster, "least_request", 0, 5000)[6:]) == 0
    world.engine.zones.settle("a", {"a": 4, "b": 1})
    away = sum(count_choices(world.engine, cluster, "least_request", 0, 20_000)[6:])
    assert away / 20_000 == pytest.approx(0.25, abs=0.015)
