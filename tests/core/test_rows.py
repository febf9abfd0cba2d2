"""Rows of counters: one per route rule, a bounded number of them whatever is configured."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.backend import say
from core.conftest import check
from core.fleets import make_cluster, make_fleet, make_host, make_rule
from core.world import World
from edgefast import ir


@pytest.fixture
def small() -> Iterator[World]:
    """A world with four rows: the overflow, the one without a route, and two more."""
    yield from check(World(rows=4))


async def test_what_is_too_much_shares_the_overflow_row(small: World) -> None:
    backend = await small.backend(say("x"))
    rules = [(f"/{i}", make_rule(route=f"ns/route-{i}")) for i in range(6)]
    client = await small.client(
        await small.serve(make_fleet(make_host(*rules), make_cluster(backend.port)))
    )
    for i in range(6):
        for _ in range(i + 1):
            assert (await client.get(f"/{i}")).status == 200
    counts = {label: row["requests_2xx"] for label, row in small.counters.rows().items()}
    assert counts == {"": 3 + 4 + 5 + 6, "-\t-": 0, "ns/route-0\t0": 1, "ns/route-1\t0": 2}


async def test_rules_are_named_or_numbered(world: World) -> None:
    backend = await world.backend(say("x"))
    ref = make_rule().backends
    rules = (
        ("/0", ir.Rule(route="ns/web", index=0, backends=ref)),
        ("/1", ir.Rule(route="ns/web", index=1, name="first", backends=ref)),
        ("/2", ir.Rule(route="ns/w\u00e9b", index=2, backends=ref)),
    )
    client = await world.client(
        await world.serve(make_fleet(make_host(*rules), make_cluster(backend.port)))
    )
    for path in ("/0", "/1", "/2"):
        await client.get(path)
    assert world.counters.rows().keys() == {
        "",
        "-\t-",
        "ns/web\t0",
        "ns/web\tfirst",
        "ns/w\u00e9b\t2",
    }


async def test_a_rule_keeps_its_row_over_table_changes(world: World) -> None:
    backend = await world.backend(say("x"))
    cluster = make_cluster(backend.port)
    port = await world.serve(make_fleet(make_rule(), cluster))
    client = await world.client(port)
    for change in range(5):
        ops = ir.HeaderOps(set=(("x-change", str(change)),))
        world.apply(make_fleet(make_rule(response_headers=ops), cluster))
        assert (await client.get()).value("x-change") == str(change)
    assert world.counters.rows().keys() == {"", "-\t-", "ns/web\t0"}
    assert world.counters.row("ns/web\t0")["requests_2xx"] == 5


async def test_long_names_are_cut_at_a_character(world: World) -> None:
    backend = await world.backend(say("x"))
    rule = make_rule(route="ns/" + "\u00e9" * 200)
    client = await world.client(await world.serve(make_fleet(rule, make_cluster(backend.port))))
    await client.get()
    (label,) = world.counters.rows().keys() - {"", "-\t-"}
    assert label == "ns/" + "\u00e9" * 90
