"""Injected faults: who waits, who is refused, what that holds, in the words of both protocols."""

from __future__ import annotations

from typing import Any

import pytest

from core.backend import make_response
from core.client import make_request
from core.fleets import encode, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.authenticators import make_keys
from core.policy.policies import NAME, TRAFFIC, access, serve
from core.world import World
from edgefast import ir
from edgefast.table.shards import make_resource

ALL = 1_000_000
MOST = 1024  # FAULT_DELAYS
CALL = [("content-type", "application/grpc"), ("te", "trailers")]


def faulty(name: str = TRAFFIC, **fault: Any) -> ir.PolicyUnit:
    """A unit with a fault."""
    return ir.PolicyUnit(name=name, traffic=ir.Traffic(fault=ir.Fault(**fault)))


async def test_all_are_refused(world: World) -> None:
    client = await serve(world, faulty(status=418, abort_share=ALL), rule={"traffic": (TRAFFIC,)})
    answer = await client.ask(make_request())
    assert (answer.status, answer.body) == (418, b"")
    (line,) = world.lines()
    assert (line["flags"], line.get("endpoint")) == ("FI", None)
    assert world.counters["faults_aborted"] == 1 and world.counters["faults_delayed"] == 0


async def test_a_part_is(world: World) -> None:
    unit = faulty(status=503, abort_share=ALL // 4)
    client = await serve(world, unit, rule={"traffic": (TRAFFIC,)}, route_timeout=0)
    statuses = [(await client.ask(make_request())).status for _ in range(800)]
    assert 130 < statuses.count(503) < 270 and statuses.count(200) == 800 - statuses.count(503)
    assert world.counters["faults_aborted"] == statuses.count(503)


async def test_who_is_not_let_in_meets_none(world: World) -> None:
    unit = faulty(delay=50_000, delay_share=ALL, status=503, abort_share=ALL)
    rule = {"traffic": (TRAFFIC,), "policies": (NAME,)}
    client = await serve(world, access(allow=False), unit, rule=rule)
    assert (await client.ask(make_request())).status == 403
    assert world.counters["faults_delayed"] == 0


async def test_a_wait_holds_the_request_and_its_body(world: World) -> None:
    unit = faulty(delay=40, delay_share=ALL)
    client = await serve(world, unit, rule={"traffic": (TRAFFIC,)})
    begin = world.loop.time()
    body = bytes(300_000)
    assert (await client.ask(make_request(method="PUT", body=body))).status == 200
    assert world.loop.time() - begin >= 0.04
    (line,) = world.lines()
    assert line["flags"] == "DI" and line["duration_ms"] >= 40 and line["bytes_received"] == 300_000
    assert world.counters["faults_delayed"] == 1 and world.engine.dump()["delayed"] == 0


async def test_a_wait_may_end_in_a_refusal(world: World) -> None:
    unit = faulty(delay=20, delay_share=ALL, status=504, abort_share=ALL)
    client = await serve(world, unit, rule={"traffic": (TRAFFIC,)})
    assert (await client.ask(make_request())).status == 504
    assert world.lines()[0]["flags"] == "DI,FI"


async def test_a_timeout_counts_the_wait(world: World) -> None:
    unit = ir.PolicyUnit(
        name=TRAFFIC,
        traffic=ir.Traffic(request_timeout=30, fault=ir.Fault(delay=50_000, delay_share=ALL)),
    )
    client = await serve(world, unit, rule={"traffic": (TRAFFIC,)})
    assert (await client.ask(make_request())).status == 504
    assert world.engine.dump()["delayed"] == 0


async def test_who_leaves_waits_no_more(world: World) -> None:
    unit = faulty(delay=50_000, delay_share=ALL)
    client = await serve(world, unit, rule={"traffic": (TRAFFIC,)})
    await client.send(make_request())
    await world.until(lambda: world.engine.dump()["delayed"] == 1)
    client.reset()
    await world.until(lambda: world.engine.dump()["delayed"] == 0)
    assert world.engine.active == 0


async def test_so_many_wait_and_no_more(world: World) -> None:
    unit = faulty(delay=50_000, delay_share=ALL)
    first = await serve(world, unit, rule={"traffic": (TRAFFIC,)})
    port = first.sock.getpeername()[1]
    crowd = [first, *[await world.client(port) for _ in range(MOST - 1)]]
    for client in crowd:
        await client.send(make_request())
    await world.until(lambda: world.engine.dump()["delayed"] == MOST)
    other = await world.client(port)
    assert (await other.ask(make_request())).status == 200
    assert world.counters["faults_delayed"] == MOST


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ({"grpc_status": 14}, "14"),
        ({"status": 401}, "16"),
        ({"status": 503, "grpc_status": 5}, "5"),
    ],
)
async def test_calls_are_refused_in_their_words(
    world: World, fault: dict[str, int], status: str
) -> None:
    unit = faulty(abort_share=ALL, **fault)
    client = await serve(world, unit, rule={"traffic": (TRAFFIC,)})
    answer = await client.ask(make_request("/a.B/C", method="POST", headers=CALL, body=b""))
    assert (answer.status, answer.value("grpc-status")) == (200, status)
    plain = (await client.ask(make_request())).status
    assert plain == fault.get("status", 200)


async def test_which_of_several_holds(world: World) -> None:
    other, third = "traffic/ns/o", "traffic/ns/p"
    units = [
        ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(body_size=1000)),
        faulty(other, status=501, abort_share=ALL),
        faulty(third, status=502, abort_share=ALL),
    ]
    rule = {"traffic": (TRAFFIC, other, third), "ceilings": 1}
    client = await serve(world, *units, rule=rule)
    assert (await client.ask(make_request())).status == 501
    unit = faulty(TRAFFIC, status=500, abort_share=ALL)
    assert world.send([make_resource("policy", TRAFFIC, encode(unit))], [], "v") == []
    assert (await client.ask(make_request())).status == 500


async def test_a_request_that_waits_owns_its_query(world: World) -> None:
    """A key was removed from it: these bytes belonged to the check of the key, which is over."""
    seen: list[bytes] = []
    backend = await world.backend(lambda call: seen.append(call.message.target) or make_response())
    keys = make_keys("param:key", sanitize=True)
    rule = make_rule(policies=(keys.name,), traffic=(TRAFFIC,))
    fleet = make_fleet(
        make_listener(),
        make_host(rule),
        make_cluster(backend.port),
        keys,
        faulty(delay=60, delay_share=ALL),
    )
    client = await world.client_of(fleet)
    query = "a" * 56 + "=1&{}b=2"
    asked = world.loop.create_task(client.ask(make_request("/x?" + query.format("key=k-alice&"))))
    await world.until(lambda: world.engine.dump()["delayed"] == 1)
    others = [bytes([65 + at % 20]) * size for at in range(2000) for size in (55, 60, 63, 65)]
    assert (await asked).status == 200 and others
    assert seen == [b"/x?" + query.format("").encode()]
