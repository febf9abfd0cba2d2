"""Units of policies, live: what a rule meets when one is missing, broken, replaced, removed or comes back."""

from __future__ import annotations

import pytest

from core.fleets import encode, make_cluster, make_fleet, make_host, make_rule
from core.policy.policies import CELLS, NAME, TRAFFIC, access, serve, status, traffic
from core.world import World
from edgefast import ir
from edgefast.table import Resource
from edgefast.table.shards import make_resource

OPEN = access(allow=True)
SHUT = access(allow=False)


def put(unit: ir.PolicyUnit, name: str | None = None) -> list[Resource]:
    """What a worker is sent of a unit."""
    return [make_resource("policy", name or unit.name, encode(unit))]


@pytest.mark.parametrize("name", [NAME, "security/ns/p#extAuth", "security/ns/p#closed"])
async def test_a_unit_that_is_not_here_is_closed(world: World, name: str) -> None:
    client = await serve(world, rule={"policies": (name,)})
    assert await status(client) == 500
    (line,) = world.lines()
    assert (line["flags"], line["policy"]) == ("CFG", name)


async def test_a_broken_unit_answers_with_its_status(world: World) -> None:
    broken = ir.PolicyUnit(name=NAME, status=500, reason="a Secret is missing")
    client = await serve(world, broken, rule={"policies": (NAME,)})
    assert await status(client) == 500
    assert world.counters.policy(CELLS) == {"error": 1}


async def test_rules_that_are_resolved_follow_their_units(world: World) -> None:
    client = await serve(world, OPEN, rule={"policies": (NAME,)})
    assert await status(client) == 200
    for unit, want in ((SHUT, 403), (ir.PolicyUnit(name=NAME, status=500), 500), (OPEN, 200)):
        assert world.send(put(unit), [], "v") == []
        assert await status(client) == want
    assert world.send([], [("policy", NAME)], "v") == []
    assert await status(client) == 500
    assert world.send(put(SHUT), [], "v") == []
    assert await status(client) == 403
    assert world.send([], [("policy", NAME)], "v") == []
    assert world.send(put(OPEN), [], "v") == []
    assert await status(client) == 200


async def test_a_unit_may_come_after_its_rule(world: World) -> None:
    client = await serve(world, rule={"policies": (NAME,)})
    assert await status(client) == 500
    assert world.send(put(OPEN), [], "v") == []
    assert await status(client) == 200


@pytest.mark.parametrize(
    "bad",
    [
        access(ir.AccessRule(allow=True, paths=(("regex", "("),)), allow=True),
        access(ir.AccessRule(allow=True, sources=("10.0.0.0/33",)), allow=True),
        ir.PolicyUnit(name=NAME),
    ],
)
async def test_what_is_refused_leaves_what_was(world: World, bad: ir.PolicyUnit) -> None:
    client = await serve(world, SHUT, rule={"policies": (NAME,)})
    assert await status(client) == 403
    ((type_, name, error),) = world.send(put(bad), [], "v")
    assert (type_, name) == ("policy", NAME)
    assert error
    assert await status(client) == 403


async def test_bytes_that_are_no_unit_leave_what_was(world: World) -> None:
    client = await serve(world, SHUT, rule={"policies": (NAME,)})
    assert len(world.send([make_resource("policy", NAME, b"\xc1" * 8)], [], "v")) == 1
    assert len(world.send(put(access(allow=True, name="security/ns/q#x"), NAME), [], "v")) == 1
    assert await status(client) == 403


async def test_a_first_version_that_is_refused_is_closed(world: World) -> None:
    client = await serve(world, rule={"policies": (NAME,)})
    assert len(world.send(put(ir.PolicyUnit(name=NAME)), [], "v")) == 1
    assert await status(client) == 500
    assert world.send([], [("policy", NAME)], "v") == []
    assert await status(client) == 500


async def test_a_removed_unit_reaches_rules_of_other_hosts_when_it_is_back(world: World) -> None:
    backend = await world.backend(lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    rule = make_rule(policies=(NAME,))
    other = make_rule(route="ns/other", policies=(NAME,))
    hosts = make_host(rule), make_host(other, hostname="other.test")
    client = await world.client_of(make_fleet(*hosts, make_cluster(backend.port), OPEN))
    assert await status(client) == 200
    assert world.send([], [("policy", NAME)], "v") == []
    assert await status(client, host="other.test") == 500  # resolved while it is away
    assert world.send(put(SHUT), [], "v") == []
    assert [await status(client), await status(client, host="other.test")] == [403, 403]


async def test_a_unit_of_traffic_that_is_not_here_closes_its_rules(world: World) -> None:
    client = await serve(world, rule={"traffic": (TRAFFIC,)})
    assert await status(client) == 500
    assert world.lines()[0]["policy"] == TRAFFIC
    assert world.send(put(traffic()), [], "v") == []
    assert await status(client) == 200
    assert world.send(put(ir.PolicyUnit(name=TRAFFIC, status=500)), [], "v") == []
    assert await status(client) == 500
    assert world.counters.policy("traffic/ns/t\ttraffic") == {"error": 2}
