"""Explained sessions: whose they are, and that the endpoint which explain names is the one that a worker chooses."""

from __future__ import annotations

import random

import pytest

from core.client import make_request
from core.fleets import CLUSTER, PORT, make_cluster, make_fleet, make_host, make_rule
from core.policy.policies import TRAFFIC
from core.policy.sessions import BY_COOKIE, BY_HEADER, NAME, keeping, now_ms, numbered, write
from core.world import World
from edgefast import ir
from edgefast.explain import RequestSpec, Served
from edgefast.explain.describe import describe_unit
from edgefast.explain.explain import explain
from edgefast.explain.outcome import find_outcome
from edgefast.explain.session_persistence import describe_session

OTHER = "traffic/ns/other"


@pytest.mark.parametrize("seed", range(6))
async def test_explain_names_the_endpoint_that_serves(world: World, seed: int) -> None:
    """Of values at random, good and bad, in any order and number."""
    draw = random.Random(seed)
    backends = await numbered(world, 4)
    ports = [one.port for one in backends]
    one = ir.SessionPersistence(
        name=draw.choice([NAME, "x-sid"]),
        header=draw.random() < 0.5,
        absolute=draw.choice([0, 60_000]),
        idle=draw.choice([0, 60_000]),
    )
    going = make_cluster(*ports[3:]).endpoints
    cluster = ir.Cluster(name=CLUSTER, endpoints=make_cluster(*ports[:3]).endpoints, fallback=going)
    fleet = make_fleet(make_host(make_rule(traffic=(TRAFFIC,))), cluster, keeping(one))
    client, served = await world.client_of(fleet), Served(fleet)
    times = (0, now_ms(30), now_ms(-30), now_ms(90), now_ms(1000))
    named = 0
    for _ in range(60):
        tokens = [
            draw.choice(
                [
                    write(draw.choice(ports), until=draw.choice(times), idle=draw.choice(times)),
                    write(draw.choice(ports)),
                    write(1),
                    "x" * draw.choice([1, 41, 83]),
                ]
            )
            for _ in range(draw.choice([1, 1, 2, 20]))
        ]
        values = [draw.choice([".", ".", ","]).join(tokens)] if draw.random() < 0.5 else tokens
        name = one.name if one.header else "cookie"
        lines = [(name, each if one.header else f"a=b; {one.name}={each}") for each in values]
        told = explain(
            served, RequestSpec(port=PORT, host="test", headers=tuple(lines), now=now_ms() / 1000)
        )
        answer = await client.ask(make_request(headers=lines))
        chosen = told.backends[0].chosen
        named += bool(chosen)
        if chosen:
            assert chosen == f"127.0.0.1:{ports[int(answer.body)]}", lines
        else:  # a new one is told: no value names an endpoint that may be used
            told_by = answer.value(one.name if one.header else "set-cookie") or ""
            assert write(ports[int(answer.body)])[:17] in told_by, lines
    assert 0 < named < 60


async def test_whose_it_is(world: World) -> None:
    own = ir.SessionPersistence(absolute=1000, idle=500)
    units = (keeping(BY_COOKIE), keeping(BY_HEADER, OTHER))
    for ceilings, session, said in (
        (0, None, f"{TRAFFIC}: clients stay with their endpoint by cookie sid"),
        (1, own, f"{TRAFFIC}: clients stay with their endpoint by cookie sid"),
        (
            0,
            own,
            f"the route: clients stay with their endpoint by cookie {ir.name_session('ns/web', 0)}, "
            "for 1 s, until a client is idle for 500 ms",
        ),
    ):
        rule = make_rule(traffic=(TRAFFIC, OTHER), ceilings=ceilings, session=session)
        served = Served(make_fleet(make_host(rule), make_cluster(1), *units))
        assert said in explain(served, RequestSpec(port=PORT, host="test")).notes
        kept = dict(find_outcome(served, RequestSpec(port=PORT, host="test")).settings)["session"]
        assert isinstance(kept, ir.SessionPersistence)
        assert said.endswith(describe_session(kept))
    assert describe_unit(units[1]) == "clients stay with their endpoint by header x-sid"


async def test_a_rule_without_policies_has_its_own(world: World) -> None:
    served = Served(make_fleet(make_host(make_rule(session=BY_COOKIE)), make_cluster(1)))
    plain = Served(make_fleet(make_host(make_rule()), make_cluster(1)))
    ask = RequestSpec(port=PORT, host="test")
    assert find_outcome(served, ask) != find_outcome(plain, ask)
    assert dict(find_outcome(served, ask).settings) == {"session": BY_COOKIE}
