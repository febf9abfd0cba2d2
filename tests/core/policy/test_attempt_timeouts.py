"""Timeouts of attempts by policy: a connection to an endpoint, and the time in which another attempt may begin."""

from __future__ import annotations

import pytest

from core.apart import apart, shift
from core.backend import make_response
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_listener, make_rule
from core.policy.policies import TRAFFIC, traffic
from core.world import World
from edgefast import ir

SHORT = 60  # milliseconds


@pytest.mark.parametrize(
    ("of_port", "of_rule"), [(30_000, SHORT), (SHORT, None)], ids=["policy", "port"]
)
async def test_a_connection(world: World, of_port: int, of_rule: int | None) -> None:
    units = () if of_rule is None else (traffic(connect_timeout=of_rule),)
    rule = make_rule(traffic=(TRAFFIC,) if units else ())
    cluster = make_cluster(await world.silent_port())
    client = await world.client_of(
        make_fleet(make_listener(connect_timeout=of_port), rule, cluster, *units)
    )
    answer = await client.get()
    assert (answer.status, answer.body) == (503, b"the backend could not be reached\n")


async def test_a_policy_may_allow_more_than_the_port(world: World) -> None:
    """0 is without end: the time of the whole answer comes first."""
    unit = traffic(connect_timeout=0, request_timeout=4 * SHORT)
    fleet = make_fleet(
        make_listener(connect_timeout=SHORT),
        make_rule(traffic=(TRAFFIC,)),
        make_cluster(await world.silent_port()),
        unit,
    )
    assert (await (await world.client_of(fleet)).get()).status == 504


@apart(clock=True)
async def test_another_attempt(world: World) -> None:
    """It begins within the time since the first one; a failure after that is the answer."""
    backend = await world.backend()
    rule = make_rule(traffic=(TRAFFIC,), retry=ir.Retry(codes=(503,), attempts=3, backoff=0))
    fleet = make_fleet(rule, make_cluster(backend.port), traffic(retry_timeout=5000))
    client = await world.client(await world.serve(fleet))
    for steps in ((4, 2), (6,)):
        await client.send(make_request())
        for at, seconds in enumerate(steps):
            call = await backend.call()
            shift(seconds)
            await world.turns()
            call.send(make_response(b"%d" % at, 503))
        response = await client.response()
        assert (response.status, response.body) == (503, b"%d" % (len(steps) - 1))
