"""An authorisation service that is slow, resets, sends half a head, 1xx, a giant body or dies never lets anybody pass without failOpen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.apart import apart, shift
from core.backend import Call
from core.client import make_request
from core.fleets import make_cluster
from core.policy.authorized import AUTH, PASS, fleet_of, guarded, make_auth, of_a_rule, passing
from core.world import World
from edgefast import ir
from edgefast.ir.policy import AuthCache

Act = Callable[[Call], Any]


def say(data: bytes, then: str = "") -> Act:
    def act(call: Call) -> None:
        call.send(data)
        if then:
            getattr(call.link, then)()

    return act


GIANT = b"HTTP/1.1 200 OK\r\ncontent-length: 65537\r\n\r\n" + b"x" * 65537
FAULTS: dict[str, Act] = {
    "resets": lambda call: call.link.abort(),
    "closes": lambda call: call.link.close(),
    "half a head": say(b"HTTP/1.1 200 OK\r\ncontent-le", "close"),
    "half a head and a reset": say(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n", "abort"),
    "half a body": say(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc", "close"),
    "half a chunk": say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc", "close"),
    "a chunk that is none": say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n"),
    "interim answers alone": say(b"HTTP/1.1 100 Continue\r\n\r\n", "close"),
    "interim answers without end": say(b"HTTP/1.1 103 Early\r\n\r\n" * 30 + PASS),
    "another protocol": say(b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
    "nonsense": say(b"\x00\x01\x02 nonsense\r\n\r\n"),
    "another protocol's words": say(b"SSH-2.0-x\r\n\r\n"),
    "two lengths": say(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-length: 5\r\n\r\n"),
    "two framings": say(
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "a giant head": say(
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000 + b"\r\ncontent-length: 0\r\n\r\n"
    ),
    "a giant body": say(GIANT),
    "a giant body in chunks": say(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        + b"4000\r\n"
        + b"x" * 0x4000
        + b"\r\n"
        + (b"4000\r\n" + b"x" * 0x4000 + b"\r\n") * 8
    ),
    "a giant body without end": say(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200_000),
    "a giant 503": say(GIANT.replace(b"200 OK", b"503 Oh")),
    "500": say(b"HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\nno"),
    "503": say(b"HTTP/1.1 503 Oh\r\ncontent-length: 0\r\n\r\n"),
}

#: No whole answer, of which what came says no.
DENIALS: dict[str, tuple[Act, int]] = {
    "a giant body": (say(GIANT.replace(b"200 OK", b"403 No\r\nx-why: y")), 403),
    "a giant body in chunks": (
        say(
            b"HTTP/1.1 302 Found\r\nx-why: y\r\ntransfer-encoding: chunked\r\n\r\n"
            + (b"4000\r\n" + b"x" * 0x4000 + b"\r\n") * 6
        ),
        302,
    ),
    "a giant body without end": (
        say(b"HTTP/1.1 404 No\r\nx-why: y\r\n\r\n" + b"x" * 200_000),
        404,
    ),
    "half a body": (
        say(b"HTTP/1.1 401 No\r\nx-why: y\r\ncontent-length: 10\r\n\r\nabc", "close"),
        401,
    ),
    "half a body and a reset": (
        say(b"HTTP/1.1 401 No\r\nx-why: y\r\ncontent-length: 10\r\n\r\nabc", "abort"),
        401,
    ),
    "a chunk that is none": (
        say(b"HTTP/1.1 403 No\r\nx-why: y\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n"),
        403,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_nobody_passes(world: World, fault: str) -> None:
    def act(call: Call) -> None:
        FAULTS[fault](call)

    route = await guarded(world, act, http={"response_head": 65536})
    client = await route.client()
    for _ in range(3):
        answer = await client.ask(make_request())
        assert (answer.status, answer.body) == (403, b"")
    assert route.seen == []
    assert world.counters["auth_errors"] == 3
    assert [line["flags"] for line in world.lines()] == ["AUTH"] * 3


@pytest.mark.parametrize("fault", FAULTS)
async def test_fail_open(world: World, fault: str) -> None:
    def act(call: Call) -> None:
        FAULTS[fault](call)

    route = await guarded(
        world, act, fail_open=True, to_backend=("x-user",), http={"response_head": 65536}
    )
    answer = await route.ask(headers=[("x-user", "admin"), ("x-own", "1")])
    assert answer.body == b"behind"
    assert route.seen[0].message.values(b"x-user") == []
    assert route.seen[0].message.values(b"x-own") == [b"1"]
    assert [line["flags"] for line in world.lines()] == ["AUTH"]


@pytest.mark.parametrize("fail_open", [False, True])
@pytest.mark.parametrize("fault", DENIALS)
async def test_a_denial_is_one_whatever_comes_of_its_body(
    world: World, fault: str, fail_open: bool
) -> None:
    act, status = DENIALS[fault]

    def deny(call: Call) -> None:
        act(call)

    route = await guarded(
        world, deny, fail_open=fail_open, status_on_error=503, cache=AuthCache(ttl=60_000)
    )
    client = await route.client()
    for _ in range(2):
        answer = await client.ask(make_request())
        assert (answer.status, answer.value("x-why"), answer.body) == (status, "y", b"")
        assert answer.value("content-type") is None
    assert route.seen == [] and route.service.count == 2
    assert (world.counters["auth_denied"], world.counters["auth_errors"]) == (2, 0)
    assert [line["flags"] for line in world.lines()] == ["DENY"] * 2


async def test_a_denial_with_more_lines_than_are_passed_on(world: World) -> None:
    lines = b"".join(b"x-%d: %b\r\n" % (i, b"y" * 7_000) for i in range(10))
    head = b"HTTP/1.1 401 No\r\n" + lines + b"content-length: 0\r\n\r\n"
    route = await guarded(world, lambda call: head, fail_open=True, http={"response_head": 131_072})
    answer = await route.ask()
    assert (answer.status, answer.value("x-0"), route.seen) == (401, None, [])


@apart(clock=True)
async def test_a_denial_whose_body_does_not_come(world: World) -> None:
    route = await guarded(world, None, fail_open=True, timeout=5_000)
    client = await route.client()
    await client.send(make_request())
    call = await route.service.call()
    call.send(
        b"HTTP/1.1 401 No\r\nwww-authenticate: x\r\ncontent-encoding: gzip\r\n"
        b"content-length: 100\r\n\r\nhalf"
    )
    await world.until(lambda: world.counters["upstream_bytes_received"] > 0)
    await world.turns()
    shift(6)
    answer = await client.response()
    assert (answer.status, answer.value("www-authenticate"), answer.body) == (401, "x", b"")
    assert answer.value("content-encoding") is None
    assert route.seen == []


@pytest.mark.parametrize("fail_open", [False, True])
async def test_a_service_that_cannot_be_reached(world: World, fail_open: bool) -> None:
    backend = await world.backend(passing(body=b"behind"))
    spec = make_auth(fail_open=fail_open, status_on_error=500)
    for services in (
        (make_cluster(world.refusing_port(), name=AUTH),),
        (make_cluster(name=AUTH),),
        (),
    ):
        world.apply(fleet_of(spec, backend.port, *services))
        if not world._accepting:
            port = await world.listen()
        client = await world.client(port)
        assert (await client.ask(make_request())).status == (200 if fail_open else 500)
    assert backend.count == (3 if fail_open else 0)


@apart(clock=True)
async def test_a_service_that_is_slow(world: World) -> None:
    route = await guarded(world, None, timeout=10_000)
    client = await route.client()
    await client.send(make_request())
    call = await route.service.call()
    shift(9)
    await world.turns()
    assert world.engine.active == 1
    shift(2)
    assert (await client.response()).status == 403
    await world.until(lambda: call.link.lost)  # a late answer is nobody's
    assert route.seen == [] and world.counters["auth_errors"] == 1


@apart(clock=True)
async def test_a_service_that_trickles(world: World) -> None:
    """Bytes that come buy no time."""
    route = await guarded(world, None, timeout=5_000, fail_open=True)
    client = await route.client()
    await client.send(make_request())
    call = await route.service.call()
    for byte in b"HTTP":
        call.send(bytes([byte]))
        await world.turns()
        shift(1)
    await world.turns()
    assert world.engine.active == 1
    shift(2)
    assert (await client.response()).body == b"behind"


@of_a_rule
@apart(clock=True)
async def test_the_route_has_its_time(world: World) -> None:
    route = await guarded(
        world, None, timeout=50_000, fail_open=True, rule={"timeouts": ir.Timeouts(request=2_000)}
    )
    client = await route.client()
    await client.send(make_request())
    await route.service.call()
    shift(3)
    assert (await client.response()).status == 504
    assert route.seen == []
    await world.until(lambda: route.service.open == [])


async def test_an_old_connection_that_has_ended_is_no_error(world: World) -> None:
    route = await guarded(world, passing())
    client = await route.client()
    assert (await client.ask(make_request())).status == 200
    for link in route.service.open:
        link.shut_now()
    assert (await client.ask(make_request())).status == 200
    assert world.counters["auth_errors"] == 0


async def test_another_endpoint_is_tried(world: World) -> None:
    service, backend = await world.backend(passing()), await world.backend(passing())
    cluster = make_cluster(world.refusing_port(), service.port, name=AUTH)
    client = await world.client_of(fleet_of(make_auth(), backend.port, cluster))
    for _ in range(6):
        assert (await client.ask(make_request())).status == 200


async def test_more_than_the_service_takes(world: World) -> None:
    """Who waits counts in the bounds of the service's cluster."""
    route = await guarded(world, None, cluster={"max_connections": 1, "max_pending": 1})
    clients = [await route.client() for _ in range(3)]
    for client in clients:
        await client.send(make_request())
    call = await route.service.call()
    await world.until(lambda: world.counters["auth_errors"] == 1)
    call.send(PASS)
    (await route.service.call()).send(PASS)
    statuses = sorted([(await client.response()).status for client in clients])
    assert statuses == [200, 200, 403]
