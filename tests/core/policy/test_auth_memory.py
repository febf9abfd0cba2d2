"""Memory that is lent to bodies which services are shown: to strangers no more than their part, and never what others have."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.apart import apart, shift
from core.backend import Call
from core.client import Client, make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.authorized import AUTH, PASS, Guarded, guarded, make_auth, passing
from core.upstream.slow import give
from core.world import World
from edgefast import ir

LENT = 32 << 20  # bytes a worker lends (consts.pxi AUTH_BODY_PIECES)
FREE = 65_536  # bytes that are not counted (REPLAY_LIMIT)
MOST = 1_048_576  # bytes of a body that services may be shown
FULL = LENT // (MOST - FREE)  # bodies of that size that fit, and one more does not
ELSEWHERE = "127.0.0.9"


def lent(world: World) -> int:
    return int(world.engine.dump()["shown"])


async def slow_for_strangers(world: World, **settings: Any) -> Guarded:
    """A service that takes its time with all who show it no token."""

    def judge(call: Call) -> bytes | None:
        return PASS if call.message.value(b"authorization") else None

    return await guarded(world, judge, body=MOST, timeout=60_000, **settings)


async def stranger(route: Guarded, **settings: Any) -> Client:
    """A complete request that waits for its verdict."""
    active = route.world.engine.active
    client = await route.world.client(route.port, **settings)
    await client.send(make_request(method="POST", body=b"x" * MOST))
    await route.world.until(lambda: route.world.engine.active != active)
    return client


async def known(route: Guarded, size: int, **settings: Any) -> int:
    """The status of a request that the service knows."""
    client = await route.world.client(route.port, **settings)
    body = b"x" * size
    return (
        await client.ask(
            make_request(method="POST", body=body, headers=[("authorization", "good")])
        )
    ).status


async def test_strangers_take_nothing_from_others(world: World) -> None:
    """However many they are, and however long nobody says a word about them: their last ones give way to another address."""
    route = await slow_for_strangers(world)
    strangers = [await stranger(route) for _ in range(FULL)]
    await world.until(lambda: route.service.count == FULL)
    assert LENT - (MOST - FREE) < lent(world) <= LENT
    assert await known(route, 900_000, source=ELSEWHERE) == 200
    gone = strangers.pop()
    assert (await gone.response()).status == 503
    assert [line["flags"] for line in world.lines()] == ["UO", ""]
    # an address that has its part does not get more of it
    client = await route.client()
    await client.send(make_request(method="POST", body=b"x" * MOST))
    await world.until(lambda: route.service.count == FULL + 2)
    more = await route.client()
    await more.send(make_request(method="POST", body=b"x" * MOST)[:-1])
    assert (await more.response()).status == 503
    assert (lent(world) <= LENT, route.service.count) == (True, FULL + 2)
    for one in (client, *strangers):
        one.reset()
    await world.until(lambda: world.engine.active == 0)
    assert lent(world) == 0


async def test_nobody_gives_way_to_one_who_would_hold_as_much(world: World) -> None:
    route = await slow_for_strangers(world)
    half = FULL // 2
    for source in ("127.0.0.2", "127.0.0.3"):
        for _ in range(half):
            await stranger(route, source=source)
    await world.until(lambda: route.service.count == 2 * half)
    client = await world.client(route.port, source="127.0.0.2")
    await client.send(make_request(method="POST", body=b"x" * MOST)[:-1])
    assert (await client.response()).status == 503
    await world.until(lambda: world.engine.active == 2 * half)


async def test_what_was_let_in_is_counted_with_the_others(world: World) -> None:
    route = await guarded(world, None, body=MOST)
    client = await route.client()
    await client.send(make_request(method="POST", body=b"x" * 300_000))
    call = await route.service.call()
    assert (lent(world), world.engine.dump()["gathered"]) == (4 * 65_536, 0)
    behind = route.backend
    behind.answer = None
    call.send(PASS)
    last = await behind.call()
    assert lent(world) == 0
    assert len(last.message.body) == 300_000
    last.reply(b"behind")
    assert (await client.response()).body == b"behind"
    assert world.engine.dump()["gathered"] == 0


@pytest.mark.parametrize("size", [1_000, 65_536, 65_537, 200_000])
async def test_a_rule_without_a_backend(world: World, size: int) -> None:
    service = await world.backend(passing())
    rule = make_rule(
        ext_auth=make_auth(body=MOST), redirect=ir.Redirect(status=302, hostname="x.example")
    )
    rule = msgspec.structs.replace(rule, backends=())
    cluster = make_cluster(service.port, name=AUTH)
    client = await world.client_of(make_fleet(make_listener(), make_host(rule), cluster))
    for _ in range(2):
        answer = await client.ask(make_request(method="POST", body=b"x" * size))
        assert (answer.status, answer.value("location")) == (302, "http://x.example:8080/")
    assert lent(world) == 0


@apart(clock=True)
async def test_a_body_that_falls_behind_its_rate(world: World) -> None:
    """Bytes that trickle in buy no time, whether anybody else waits or not."""
    route = await guarded(world, passing(), body=MOST, http={"body_rate": 1_000})
    client = await route.client()
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 100000\r\n\r\n")
    await world.until(lambda: world.engine.active == 1)
    for _ in range(4):  # as fast as it has to be
        shift(4)
        await world.turns()
        await give(world, client, b"x" * 4_000)
    assert world.engine.active == 1
    for _ in range(3):
        shift(2)
        await world.turns()
        if world.engine.active:
            await give(world, client, b"x")
    assert (await client.response()).status == 408
    assert route.service.count == 0
    assert world.lines()[0]["flags"] == "UT"


@apart(clock=True)
async def test_a_body_without_a_rate_has_its_time(world: World) -> None:
    route = await guarded(world, passing(), body=MOST, http={"body_rate": 0})
    client = await route.client()
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 3\r\n\r\na")
    await world.until(lambda: world.engine.active == 1)
    shift(100)
    await world.turns()
    await client.send(b"bc")
    assert (await client.response()).body == b"behind"


@apart(clock=True)
async def test_a_complete_body_owes_nothing(world: World) -> None:
    route = await guarded(world, None, body=MOST, timeout=50_000)
    client = await route.client()
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 3\r\n\r\na")
    await world.until(lambda: world.engine.active == 1)
    await client.send(b"bc")
    call = await route.service.call()
    shift(20)
    await world.turns()
    call.send(PASS)
    assert (await client.response()).body == b"behind"
