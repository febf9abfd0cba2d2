"""Connections carry so many requests (circuitBreaker.maxRequestsPerConnection) and are retired then; no request is lost for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from core.backend import say
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.backend import H2Backend
from core.h2.backend import say as say_h2
from core.policy.policies import TRAFFIC, traffic
from core.world import World
from edgefast import ir


def limited(port: int, *, protocol: str = "http1", most: int = 0, **said: int) -> ir.Fleet:
    """A rule with a limit, and one on /free without; `most`: connections of the cluster."""
    rule = make_rule(traffic=(TRAFFIC,), retry=ir.Retry(codes=(), attempts=0))
    host = make_host(rule, ("/free", make_rule()))
    settings: dict[str, Any] = {"max_connections": most} if most else {}
    cluster = make_cluster(port, protocol=protocol, **settings)
    return make_fleet(make_listener(body_start=0), host, cluster, traffic(**said))


def carried(links: list[Any]) -> list[int]:
    return [link.calls if hasattr(link, "calls") else len(link.asks) for link in links]


@pytest.mark.parametrize("many", [1, 3])
async def test_http1(world: World, many: int) -> None:
    backend = await world.backend(say("ok"))
    client = await world.client_of(limited(backend.port, max_connection_requests=many))
    for _ in range(6):
        assert (await client.get()).status == 200
    assert carried(backend.links) == [many] * (6 // many)
    await world.until(lambda: not backend.open)


async def test_no_limit(world: World) -> None:
    backend = await world.backend(say("ok"))
    client = await world.client_of(limited(backend.port, max_connection_requests=0))
    for _ in range(6):
        assert (await client.get()).status == 200
    assert carried(backend.links) == [6]


async def test_one_that_others_have_used_up_is_not_taken(world: World) -> None:
    """Nor kept: it would be one of those that there may be."""
    backend = await world.backend(say("ok"))
    fleet = limited(backend.port, max_connection_requests=3, max_connections=1)
    client = await world.client_of(fleet)
    for path in ("/free", "/free", "/", "/", "/free", "/free", "/free", "/free", "/"):
        assert (await client.get(path)).status == 200
    assert carried(backend.links) == [3, 5, 1]


async def test_those_who_wait_get_a_new_one(world: World) -> None:
    backend = await world.backend(say("ok"))
    fleet = limited(backend.port, most=1, max_connection_requests=2)
    port = await world.serve(fleet)
    clients = [await world.client(port) for _ in range(7)]
    for client in clients:
        await client.send(make_request("/"))
    for client in clients:
        assert (await client.response()).status == 200
    assert carried(backend.links) == [2, 2, 2, 1]


@pytest.mark.parametrize("protocol", ["http1", "h2"])
async def test_none_is_lost_among_many(world: World, protocol: str) -> None:
    if protocol == "h2":
        backend: Any = H2Backend(say_h2(b"ok"))
        world.keep(await backend.start())
    else:
        backend = await world.backend(say("ok"))
    fleet = limited(backend.port, protocol=protocol, most=3, max_connection_requests=5)
    port = await world.serve(fleet)

    async def ask(method: str) -> None:
        client = await world.client(port)
        for _ in range(40):
            body = b"x" if method == "POST" else b""
            answer = await client.ask(make_request("/", method=method, body=body))
            assert answer.status == 200

    await asyncio.gather(*(ask(method) for method in ("GET", "POST") * 6))
    assert max(carried(backend.links)) == 5
    assert sum(carried(backend.links)) == 480
    assert world.counters["retries"] == 0


async def test_http2(world: World) -> None:
    """It takes no more streams, and ends when it has none."""
    backend = H2Backend()
    world.keep(await backend.start())
    port = await world.serve(limited(backend.port, protocol="h2", max_connection_requests=2))
    clients = [await world.client(port) for _ in range(3)]
    for client in clients:
        await client.send(make_request("/"))
    asks = [await backend.ask() for _ in clients]
    assert carried(backend.links) == [2, 1]
    asks[1].reply(b"x")
    asks[2].reply(b"x")
    for client in clients[1:]:
        assert (await client.response()).status == 200
    first = backend.links[0]
    assert not first.lost
    asks[0].reply(b"x")
    assert (await clients[0].response()).status == 200
    await world.until(lambda: first.lost)
    assert first.goaway == 0
    assert not backend.links[1].lost


async def test_http2_used_up_by_others(world: World) -> None:
    """Where there may be one connection it makes room."""
    backend = H2Backend(say_h2(b"ok"))
    world.keep(await backend.start())
    fleet = limited(backend.port, protocol="h2", max_connection_requests=2, max_connections=1)
    client = await world.client_of(fleet)
    for path in ("/free", "/free", "/free", "/", "/"):
        assert (await client.get(path)).status == 200
    assert carried(backend.links) == [3, 2]


async def test_a_request_that_has_its_place_and_is_not_written_yet(world: World) -> None:
    """Its connection takes no more, but this one."""
    backend = H2Backend(say_h2(b"ok"))
    world.keep(await backend.start())
    port = await world.serve(limited(backend.port, protocol="h2", max_connection_requests=2))
    first, late, other = [await world.client(port) for _ in range(3)]
    assert (await first.get()).status == 200
    await late.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n")
    await world.until(lambda: world.cluster("service/ns/web/80")["requests"] == 1)
    assert (await other.get()).status == 200
    await late.send(b"abc")
    assert (await late.response()).status == 200
    assert carried(backend.links) == [2, 1]
    assert world.counters["retries"] == 0
