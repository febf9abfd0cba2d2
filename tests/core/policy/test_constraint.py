"""Repeats of an interval: past what a policy lets a backend have, the request is answered 503, and no route has more."""

from __future__ import annotations

import pytest

from core.backend import Call, make_response
from core.client import Client
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir

BUDGET = "xtraffic/ns/b"
BOUND = "traffic/ns/bound"
TRIED = ir.Retry(codes=(500,), attempts=3, backoff=1)


async def serve(
    world: World, *units: ir.PolicyUnit, status: int = 500, retry: ir.Retry | None = TRIED
) -> tuple[Client, list[Call]]:
    """A client of a rule that repeats, of a backend that fails, and what the backend was asked."""
    asked: list[Call] = []

    def answer(call: Call) -> bytes:
        asked.append(call)
        return make_response(status=status)

    backend = await world.backend(answer)
    names = tuple(one.name for one in units)
    fleet = make_fleet(
        make_listener(),
        make_host(make_rule(retry=retry, traffic=names)),
        make_cluster(backend.port),
        *units,
    )
    return await world.client_of(fleet), asked


def budget(percent: int, interval: int = 3_600_000, count: int = 1, count_interval: int = 3_600_000) -> ir.PolicyUnit:  # fmt: skip
    """By default nothing of the window passes while a test lasts."""
    said = ir.RetryConstraint(percent, interval, count, count_interval)
    return ir.PolicyUnit(name=BUDGET, traffic=ir.Traffic(retry_constraint=said))


async def ask(client: Client, requests: int) -> list[int]:
    return [(await client.get()).status for _ in range(requests)]


async def test_a_floor_holds_whatever_there_was_and_past_it_the_answer_is_503(world: World) -> None:
    client, asked = await serve(world, budget(0, count=4))
    # The first request has three repeats, of the second one the second one is refused; the third has none.
    assert await ask(client, 3) == [500, 503, 503]
    assert len(asked) == 3 + 4
    assert [line["flags"] for line in world.lines()] == ["RT", "UO,RT", "UO"]


async def test_a_part_of_all_that_went_there(world: World) -> None:
    client, asked = await serve(world, budget(50, count=1))
    statuses = await ask(client, 40)
    repeats = len(asked) - 40
    assert statuses.count(503) >= 1
    assert 38 <= repeats <= 41  # as many as there were requests, and the floor


async def test_what_says_no_repeats_has_none_and_who_succeeds_needs_none(world: World) -> None:
    client, asked = await serve(world, budget(0, count=1), status=200)
    assert await ask(client, 5) == [200] * 5 and len(asked) == 5


async def test_a_rule_without_retries_answers_what_the_backend_says(world: World) -> None:
    client, asked = await serve(world, budget(0, count=1), retry=None)
    assert await ask(client, 3) == [500] * 3 and len(asked) == 3


@pytest.mark.parametrize(("parallel", "status"), [(0, 500), (5, 503)])
async def test_a_bound_of_repeats_under_way_holds_as_well(
    world: World, parallel: int, status: int
) -> None:
    bound = ir.PolicyUnit(name=BOUND, traffic=ir.Traffic(max_retries=parallel))
    client, asked = await serve(world, budget(0, count=1), bound)
    assert await ask(client, 2) == [status, status]
    assert len(asked) == (2 if parallel == 0 else 3)
