"""Rows of counters: one per route rule, a bounded number of them whatever is configured."""

from __future__ import annotations

import re
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
    client = await world.client_of(make_fleet(make_host(*rules), make_cluster(backend.port)))
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
    client = await world.client_of(make_fleet(make_rule(), cluster))
    for change in range(5):
        ops = ir.HeaderOps(set=(("x-change", str(change)),))
        world.apply(make_fleet(make_rule(response_headers=ops), cluster))
        assert (await client.get()).value("x-change") == str(change)
    assert world.counters.rows().keys() == {"", "-\t-", "ns/web\t0"}
    assert world.counters.row("ns/web\t0")["requests_2xx"] == 5


async def test_long_names_are_cut_at_a_character_and_told_apart(world: World) -> None:
    """Names that are alike for longer than a label have rows of their own, and their rule is seen."""
    backend = await world.backend(say("x"))
    rules = [(f"/{i}", make_rule(route="ns/" + "\u00e9" * 200 + str(i))) for i in range(2)]
    client = await world.client_of(make_fleet(make_host(*rules), make_cluster(backend.port)))
    for path in ("/0", "/1", "/1"):
        await client.get(path)
    rows = {
        label: row["requests_2xx"]
        for label, row in world.counters.rows().items()
        if label not in ("", "-\t-")
    }
    assert sorted(rows.values()) == [1, 2]
    for label in rows:
        assert re.fullmatch("ns/\u00e9{80}~[0-9a-f]{16}\t0", label)


async def test_rows_of_rules_that_are_gone_can_be_given_away(small: World) -> None:
    """As many names as ever: two fit at a time, and each has its own row while its rule lives."""
    backend = await small.backend(say("x"))
    cluster = make_cluster(backend.port)
    port = None
    for generation in range(6):
        rules = [(f"/{i}", make_rule(route=f"ns/g{generation}-{i}")) for i in range(2)]
        fleet = make_fleet(make_host(*rules), cluster)
        if port is None:
            port = await small.serve(fleet)
        else:
            small.apply(fleet)
        client = await small.client(port)
        for i in range(2):
            assert (await client.get(f"/{i}")).status == 200
        labels = [f"ns/g{generation}-{i}\t0" for i in range(2)]
        assert small.counters.rows().keys() == {"", "-\t-", *labels}
        names = [label.encode() for label in labels]
        assert small.engine.forget_rows([*names, b"-\t-", b"", b"none"]) == 0  # held
        small.apply(make_fleet(make_host(), cluster))
        assert small.engine.forget_rows(names) == 2
    assert small.counters.rows().keys() == {"", "-\t-"}
    assert small.counters.row("")["requests_2xx"] == 0
