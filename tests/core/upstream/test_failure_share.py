"""Endpoints of which too many answers fail in an interval (failurePercentageThreshold), as all workers count them. Time is moved by hand."""

from __future__ import annotations

from typing import Any

from core.apart import apart, shift
from core.backend import Backend, make_response
from core.client import Client
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.policies import TRAFFIC
from core.upstream.test_outliers import FAILS, out
from core.upstream.workers import make_health
from core.world import World
from edgefast import ir

SPAN = 3600  # s: an interval that ends when the test says so
HEALTH = make_health(2)
TURNS = ir.LoadBalancer(type="round_robin")


class Site:
    """Backends of which each fails so many of a hundred answers, evenly, and a client."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.backends: list[Backend] = []
        self.ports: list[int] = []

    async def start(self, *bad: int) -> None:
        for percent in bad:
            self.backends.append(await self.world.backend(self._answer(percent)))
        self.ports += [one.port for one in self.backends]

    def _answer(self, percent: int) -> Any:
        state = {"n": 0}

        def answer(call: object) -> bytes:
            state["n"] += 1
            fails = state["n"] * percent // 100 > (state["n"] - 1) * percent // 100
            return FAILS % 500 if fails else make_response(b"ok")

        return answer

    def fleet(self, **said: Any) -> ir.Fleet:
        said = {"server": 0, "interval": SPAN * 1000, "percent": 100, **said}
        unit = ir.PolicyUnit(
            name=TRAFFIC,
            traffic=ir.Traffic(load_balancer=TURNS, outlier=ir.OutlierDetection(**said)),
        )
        host = make_host(make_rule(traffic=(TRAFFIC,)), ("/free", make_rule()))
        # A timeout that no move of the clock brings about.
        listener = make_listener(upstream_idle=10**9, idle_timeout=10**9)
        return make_fleet(listener, host, make_cluster(*self.ports), unit)


async def ask(client: Client, many: int, path: str = "/") -> None:
    for _ in range(many):
        await client.get(path)


async def end_interval(world: World) -> None:
    shift(SPAN)
    await world.turns(50)


@apart(clock=True)
async def test_who_fails_too_often_is_out(world: World) -> None:
    """At the end of the interval, not before; whoever fails as often as is said is one."""
    site = Site(world)
    await site.start(0, 40, 59, 60, 100)
    client = await world.client_of(site.fleet(failures=60))
    await ask(client, 5 * 100)
    assert not any(out(world))
    shift(SPAN)
    await world.until(lambda: out(world) == [False, False, False, True, True])
    assert world.counters["endpoint_ejections"] == 2


@apart(clock=True)
async def test_few_answers_and_few_endpoints_tell_nothing(world: World) -> None:
    site = Site(world)
    await site.start(100, 0, 0, 0, 0)
    client = await world.client_of(site.fleet(failures=10))
    await ask(client, 5 * 49)
    await end_interval(world)
    await ask(client, 5 * 49)  # with those before they would be enough
    await end_interval(world)
    await ask(client, 5)
    assert not any(out(world))
    site.ports.pop()  # four are left
    world.apply(site.fleet(failures=10))
    await ask(client, 4 * 60)
    await end_interval(world)
    await ask(client, 4)
    assert not any(out(world))
    assert world.counters["endpoint_ejections"] == 0


@apart(clock=True)
async def test_the_worst_go_first_and_no_more_than_is_said(world: World) -> None:
    site = Site(world)
    await site.start(50, 90, 70, 80, 60)
    client = await world.client_of(site.fleet(failures=50, percent=40))
    await ask(client, 5 * 60)
    shift(SPAN)
    await world.until(lambda: any(out(world)))
    assert out(world) == [False, True, False, True, False]


@apart(clock=True)
async def test_connects_count_unless_they_are_apart(world: World) -> None:
    for local, expected in ((None, True), (0, False)):
        site = Site(world)
        await site.start(0, 0, 0, 0)
        site.ports.append(world.refusing_port())
        world.apply(site.fleet(failures=100, local=local))
        client = await world.client(await world.listen())
        await ask(client, 5 * 60)
        shift(SPAN)
        await world.turns(50)
        await ask(client, 5)
        assert out(world) == [False] * 4 + [expected]


@apart(clock=True)
async def test_what_other_rules_have_does_not_count(world: World) -> None:
    """A percentage is one of the rule's own answers."""
    site = Site(world)
    await site.start(0, 0, 0, 0, 0)
    client = await world.client_of(site.fleet(failures=50))
    site.backends[0].answer = lambda call: FAILS % 500 if call.path == "/free" else make_response()
    for _ in range(60):
        await ask(client, 5)
        await ask(client, 5, "/free")
    await end_interval(world)
    await ask(client, 5)
    assert not any(out(world))


@apart(clock=True, health=HEALTH)
async def test_all_workers_count_together(world: World) -> None:
    """Neither of them has seen enough."""
    site = Site(world)
    await site.start(0, 0, 0, 0, 100)
    other = World(health=HEALTH, worker=1, loop=world.loop)
    try:
        fleet = site.fleet(failures=50)
        first = await world.client_of(fleet)
        second = await other.client(await other.serve(fleet))
        await ask(first, 5 * 30)
        await ask(second, 5 * 30)
        shift(SPAN)
        await world.until(lambda: out(world) == out(other) == [False] * 4 + [True])
        assert world.counters["endpoint_ejections"] + other.counters["endpoint_ejections"] == 1
        await ask(first, 20)
        assert site.backends[4].count == 60
        first.close()
        await other.finish()
    finally:
        other.close()
