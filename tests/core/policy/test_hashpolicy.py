"""Consistent hash: what a request's endpoint is found by, that it stays, and what happens when it cannot be had."""

from __future__ import annotations

import collections
from typing import Any

import pytest

from core.backend import Backend, make_response
from core.client import Client, make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.policies import TRAFFIC
from core.world import World
from edgefast import ir


def hashing(**parts: Any) -> ir.PolicyUnit:
    """A unit by which requests find their endpoint."""
    return balancing(ir.LoadBalancer(type="hash", hash=ir.HashPolicy(**parts)))


def balancing(one: ir.LoadBalancer) -> ir.PolicyUnit:
    return ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(load_balancer=one))


async def serve(
    world: World, unit: ir.PolicyUnit, count: int = 5, **listener: Any
) -> tuple[int, list[Backend]]:
    """A port whose rule has `count` endpoints, each of which answers with its number."""
    backends = [
        await world.backend(lambda call, at=at: make_response(b"%d" % at)) for at in range(count)
    ]
    fleet = make_fleet(
        make_listener(**listener),
        make_host(make_rule(traffic=(TRAFFIC,))),
        make_cluster(*(one.port for one in backends)),
        unit,
    )
    return await world.serve(fleet), backends


async def where(client: Client, **request: Any) -> int:
    return int((await client.ask(make_request(**request))).body)


async def test_a_header_finds_its_endpoint_again(world: World) -> None:
    port, _ = await serve(world, hashing(headers=("x-user",)))
    client, other = await world.client(port), await world.client(port)
    found = [await where(client, headers=[("x-user", f"u{at}")]) for at in range(40)]
    assert set(found) == set(range(5))
    for at in range(40):
        assert await where(other, headers=[("X-USER", f"u{at}")]) == found[at]


@pytest.mark.parametrize(
    ("parts", "request_of"),
    [
        ({"params": ("k",)}, lambda value: {"path": f"/?a=1&k={value}&k=other"}),
        ({"params": ("k", "l")}, lambda value: {"path": f"/?l={value}"}),
        ({"parts": (ir.HashPart("target"),)}, lambda value: {"path": f"/a?k={value}"}),
        ({"parts": (ir.HashPart("path"),)}, lambda value: {"path": f"/{value}"}),
        ({"parts": (ir.HashPart("query"),)}, lambda value: {"path": f"/a?{value}"}),
        ({"parts": (ir.HashPart("host"),)}, lambda value: {"host": f"{value}.test:80"}),
        (
            {"parts": (ir.HashPart("host"), ir.HashPart("header", "x-user"))},
            lambda value: {"headers": [("X-User", value)]},
        ),
        (
            {"parts": (ir.HashPart("cookie", "c"), ir.HashPart("param", "q"))},
            lambda value: {"path": "/?q=1", "headers": [("cookie", f"a=b; c={value}")]},
        ),
        (
            {"parts": (ir.HashPart("param", "q"), ir.HashPart("source"))},
            lambda value: {"path": f"/?q={value}"},
        ),
        (
            {"cookie": ir.HashCookie("sid")},
            lambda value: {"headers": [("cookie", f"a=b; sid={value}")]},
        ),
        (
            {"headers": ("x-a", "x-b")},
            lambda value: {"headers": [("x-b", value), ("x-c", "noise")]},
        ),
    ],
)
async def test_parts(world: World, parts: dict[str, Any], request_of: Any) -> None:
    port, _ = await serve(world, hashing(**parts))
    client = await world.client(port)
    places = {}
    for value in [f"v{at}" for at in range(20)]:
        places[value] = {await where(client, **request_of(value)) for _ in range(4)}
    assert all(len(one) == 1 for one in places.values())
    assert len({min(one) for one in places.values()}) > 1


async def test_an_escaped_parameter_is_the_same(world: World) -> None:
    port, _ = await serve(world, hashing(params=("key",)))
    client = await world.client(port)
    for at in range(10):
        plain = await where(client, path=f"/?key=v{at}")
        assert await where(client, path=f"/?k%65y=%76{at}") == plain


async def test_headers_are_kept_apart(world: World) -> None:
    """The same text in two headers, cut elsewhere, is another key."""
    port, _ = await serve(world, hashing(headers=("x-a", "x-b")))
    client = await world.client(port)
    differ = 0
    for at in range(20):
        one = await where(client, headers=[("x-a", f"{at}"), ("x-b", "q")])
        two = await where(client, headers=[("x-b", f"{at}q")])
        differ += one != two
    assert differ


async def test_who_has_nothing_goes_anywhere(world: World) -> None:
    port, _ = await serve(world, hashing(headers=("x-user",)))
    client = await world.client(port)
    assert len({await where(client) for _ in range(60)}) == 5


async def test_addresses(world: World) -> None:
    believed = ir.ClientAddress(trusted_hops=1)
    port, _ = await serve(world, hashing(source=True), client_address=believed)
    client = await world.client(port)
    found = collections.defaultdict(set)
    for _ in range(3):
        for at in range(20):
            to = f"10.0.0.{at}"
            found[to].add(await where(client, headers=[("x-forwarded-for", to)]))
    assert all(len(one) == 1 for one in found.values())
    assert len({min(one) for one in found.values()}) > 1


async def test_a_cookie_is_handed_out(world: World) -> None:
    cookie = ir.HashCookie("sid", ttl=60, attributes="; Path=/; Secure")
    port, _ = await serve(world, hashing(cookie=cookie))
    client = await world.client(port)
    seen = set()
    for _ in range(10):
        answer = await client.ask(make_request())
        value = answer.value("set-cookie")
        assert value is not None and value.endswith("; Max-Age=60; Path=/; Secure")
        pair = value.partition(";")[0]
        assert len(pair) == len("sid=") + 16
        seen.add(pair)
        for _ in range(3):
            again = await client.ask(make_request(headers=[("cookie", pair)]))
            assert again.value("set-cookie") is None and again.body == answer.body
        empty = await client.ask(make_request(headers=[("cookie", "sid=")]))
        assert empty.value("set-cookie") is not None
    assert len(seen) == 10


async def test_a_cookie_of_a_session_has_no_age(world: World) -> None:
    port, _ = await serve(world, hashing(cookie=ir.HashCookie("sid", ttl=0)))
    answer = await (await world.client(port)).ask(make_request())
    value = answer.value("set-cookie")
    assert value is not None and ";" not in value


async def test_an_endpoint_that_is_gone_takes_its_own_along(world: World) -> None:
    port, backends = await serve(world, hashing(headers=("x-user",)))
    client = await world.client(port)
    before = [await where(client, headers=[("x-user", f"u{at}")]) for at in range(60)]
    fewer = make_fleet(
        make_listener(),
        make_host(make_rule(traffic=(TRAFFIC,))),
        make_cluster(*(one.port for one in reversed(backends[1:]))),
        hashing(headers=("x-user",)),
    )
    world.apply(fewer)
    after = [await where(client, headers=[("x-user", f"u{at}")]) for at in range(60)]
    assert all(now == was for was, now in zip(before, after, strict=True) if was != 0)
    assert 0 in before and 0 not in after


async def test_least_requests_is_said_by_nothing(world: World) -> None:
    port, _ = await serve(world, balancing(ir.LoadBalancer()))
    client = await world.client(port)
    spread = {await where(client, headers=[("x-user", "one")]) for _ in range(60)}
    assert len(spread) == 5


async def test_an_endpoint_that_fails_hands_its_requests_to_their_next(world: World) -> None:
    """Each key has one next endpoint, so that what is kept there is found again, too."""
    port, backends = await serve(world, hashing(headers=("x-user",)))
    client = await world.client(port)
    keys = [f"u{at}" for at in range(60)]
    before = [await where(client, headers=[("x-user", key)]) for key in keys]
    backends[2].close()
    after = [await where(client, headers=[("x-user", key)]) for key in keys]
    again = [await where(client, headers=[("x-user", key)]) for key in keys]
    assert after == again and 2 not in after
    assert [now for was, now in zip(before, after, strict=True) if was != 2] == [
        was for was in before if was != 2
    ]
    moved = {now for was, now in zip(before, after, strict=True) if was == 2}
    assert len(moved) > 1
