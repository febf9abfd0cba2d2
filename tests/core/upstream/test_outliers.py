"""Outlier detection: what counts as a failure, who is left out, for how long, and that it is so for all workers and routes."""

from __future__ import annotations

from typing import Any

import pytest

from core.backend import make_response, say
from core.client import Client
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.policies import TRAFFIC
from core.upstream.test_ejection import ask_and_leave
from core.upstream.workers import Workers
from core.world import World
from edgefast import ir

FAILS = b"HTTP/1.1 %d Oh\r\ncontent-length: 0\r\n\r\n"


def detecting(**parts: Any) -> ir.PolicyUnit:
    return ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(outlier=ir.OutlierDetection(**parts)))


def fleet_of(unit: ir.PolicyUnit, *ports: int) -> ir.Fleet:
    """A rule that detects, and one on /free that says nothing."""
    host = make_host(make_rule(traffic=(TRAFFIC,)), ("/free", make_rule()))
    return make_fleet(make_listener(), host, make_cluster(*ports), unit)


def out(world: World) -> list[bool]:
    clusters = world.engine.dump()["clusters"]
    return [not one["healthy"] for cluster in clusters for one in cluster["endpoints"]]


async def until_out(world: World, client: Client, most: int = 60, path: str = "/") -> None:
    for _ in range(most):
        if any(out(world)):
            return
        await client.get(path)


async def test_answers_of_5xx_leave_an_endpoint_out(world: World) -> None:
    bad, good = await world.backend(lambda call: FAILS % 500), await world.backend(say("good"))
    client = await world.client_of(fleet_of(detecting(), bad.port, good.port))
    await until_out(world, client)
    assert out(world) == [True, False]
    assert bad.count == 5
    for _ in range(20):
        assert (await client.get()).status == 200
    assert world.counters["endpoint_ejections"] == 1


@pytest.mark.parametrize(
    ("status", "counts"), [(502, True), (503, True), (504, True), (500, False)]
)
async def test_gateway_errors(world: World, status: int, counts: bool) -> None:
    bad, good = await world.backend(lambda call: FAILS % status), await world.backend(say("good"))
    unit = detecting(server=0, gateway=2)
    client = await world.client_of(fleet_of(unit, bad.port, good.port))
    for _ in range(40):
        await client.get()
    assert out(world) == [counts, False]
    assert (bad.count == 2) == counts


async def test_a_good_answer_begins_the_row_again(world: World) -> None:
    turn = 0

    def answer(call: object) -> bytes:
        nonlocal turn
        turn += 1
        return FAILS % 500 if turn % 3 else make_response(b"ok")

    one, two = await world.backend(answer), await world.backend(answer)
    unit = detecting(server=3)
    client = await world.client_of(fleet_of(unit, one.port, two.port))
    two.answer = say("fine")
    for _ in range(60):
        await client.get()
    assert out(world) == [False, False]
    assert one.count > 6


@pytest.mark.parametrize("local", [None, 0, 2])
async def test_connects_that_fail(world: World, local: int | None) -> None:
    """They count as an answer of 502, or for themselves."""
    good = await world.backend(say("good"))
    unit = detecting(server=3, local=local)
    port = world.refusing_port()
    client = await world.client_of(fleet_of(unit, port, good.port))
    for _ in range(40):
        assert (await client.get()).status == 200
    assert out(world) == [local != 0, False]
    many = world.counters["upstream_connect_failures"]
    assert many == {None: 3, 2: 2}[local] if local != 0 else many > 5


async def test_it_is_out_for_all_routes_and_workers(workers: Workers) -> None:
    bad, good = await workers.backend(lambda call: FAILS % 500), await workers.backend(say("good"))
    one, two = await workers.serve_both(fleet_of(detecting(server=4), bad.port, good.port))
    first, second = await workers.client(one), await workers.client(two)
    for _ in range(30):
        await first.get()
        await second.get()
    assert out(workers) == out(workers.other) == [True, False]
    assert bad.count == 4  # of both together
    for path in ("/", "/free"):
        assert (await second.get(path)).status == 200
    assert (
        workers.counters["endpoint_ejections"] + workers.other.counters["endpoint_ejections"] == 1
    )


async def test_what_other_rules_found_counts(world: World) -> None:
    bad, good = await world.backend(lambda call: FAILS % 500), await world.backend(say("good"))
    client = await world.client_of(fleet_of(detecting(server=3), bad.port, good.port))
    for _ in range(30):
        await client.get("/free")
    assert out(world) == [False, False]
    before = bad.count
    while bad.count == before:
        await client.get()
    assert out(world) == [True, False]


async def test_no_more_than_is_said_are_out(world: World) -> None:
    ports = [(await world.backend(lambda call: FAILS % 500)).port for _ in range(5)]
    for percent, always, most in ((0, False, 0), (19, False, 0), (0, True, 1), (40, False, 2)):
        unit = detecting(server=1, percent=percent, always_one=always)
        world.apply(fleet_of(unit, *ports))
        client = await world.client(await world.listen())
        for _ in range(30):
            assert (await client.get()).status == 500
        assert sum(out(world)) == most


async def test_it_comes_back(world: World) -> None:
    broken = True
    bad = await world.backend(lambda call: FAILS % 500 if broken else make_response(b"bad"))
    good = await world.backend(say("good"))
    unit = detecting(server=1, base=60)
    client = await world.client_of(fleet_of(unit, bad.port, good.port))
    await until_out(world, client)
    broken = False
    await world.until(lambda: not any(out(world)))
    before = bad.count
    for _ in range(40):
        assert (await client.get()).status == 200
    assert bad.count > before


async def test_an_answer_that_is_cut_ends_no_row(world: World) -> None:
    """However well it begins; and one that begins badly counts once."""

    def cut(status: int) -> Any:
        def answer(call: Any) -> None:
            call.link.transport.write(b"HTTP/1.1 %d X\r\ncontent-length: 9\r\n\r\n12" % status)
            call.link.close()

        return answer

    for status, many in ((200, 3), (503, 3)):
        bad, good = await world.backend(), await world.backend(say("good"))
        bad.answer = cut(status)
        world.apply(fleet_of(detecting(server=3), bad.port, good.port))
        port = await world.listen()
        for _ in range(40):
            if any(out(world)):
                break
            await ask_and_leave(world, port)
        await world.settle()
        assert out(world) == [True, False]
        assert bad.count == many
