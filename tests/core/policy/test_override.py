"""Answers in place of others: of backends and of the proxy, what becomes of the connection, of what is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from core.backend import Backend, Call, make_response
from core.client import Client, make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.policies import NAME, TRAFFIC, access
from core.world import World
from edgefast import ir

CALL = [("content-type", "application/grpc"), ("te", "trailers")]
SORRY = ir.ResponseOverride(
    statuses=((500, 599), (404, 404)), status=200, content_type="text/plain", body=b"sorry"
)
AWAY = ir.ResponseOverride(statuses=((401, 403),), status=302, location="//login.test/in")


def replacing(*overrides: ir.ResponseOverride, name: str = TRAFFIC, **more: Any) -> ir.PolicyUnit:
    """A unit with these."""
    return ir.PolicyUnit(name=name, traffic=ir.Traffic(override=overrides, **more))


async def serve(
    world: World, *units: ir.PolicyUnit, answer: Any = None, **rule: Any
) -> tuple[Client, Backend]:
    """A client of a route with them, its backend."""
    backend = await world.backend(answer)
    named = tuple(one.name for one in units if one.traffic is not None)
    fleet = make_fleet(
        make_listener(),
        make_host(make_rule(traffic=named, **rule)),
        make_cluster(backend.port),
        *units,
    )
    return await world.client_of(fleet), backend


def status_of(call: Call) -> bytes:
    """A backend that answers with the status that it is asked for."""
    status = int(call.path[1:4])
    return make_response(
        b"secret trace", status, (("x-stack", "at line 7"), ("content-type", "a/b"))
    )


async def test_answers_of_backends(world: World) -> None:
    client, backend = await serve(world, replacing(SORRY, AWAY), answer=status_of)
    for status in (500, 503, 599, 404):
        answer = await client.ask(make_request(f"/{status}"))
        assert (answer.status, answer.body) == (200, b"sorry")
        assert answer.value("content-type") == "text/plain" and answer.value("x-stack") is None
    away = await client.ask(make_request("/403"))
    assert (away.status, away.body, away.value("location")) == (302, b"", "//login.test/in")
    for status in (200, 405, 499):
        answer = await client.ask(make_request(f"/{status}"))
        assert (answer.status, answer.body) == (status, b"secret trace")
    assert len(backend.links) == 1  # small bodies are read: the connection is kept
    assert [line["status"] for line in world.lines()] == [200] * 4 + [302, 200, 405, 499]
    assert [line["bytes_sent"] for line in world.lines()][:5] == [5, 5, 5, 5, 0]


async def test_a_large_body_is_cut_off(world: World) -> None:
    body = bytes(1_000_000)
    client, backend = await serve(
        world, replacing(SORRY), answer=lambda call: make_response(body, 500)
    )
    for _ in range(2):
        answer = await client.ask(make_request())
        assert (answer.status, answer.body) == (200, b"sorry")
    assert len(backend.links) == 2


async def test_one_of_unknown_length_is_too(world: World) -> None:
    head = b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n"
    client, backend = await serve(world, replacing(SORRY), answer=lambda call: head)
    assert (await client.ask(make_request())).body == b"sorry"
    assert len(backend.links) == 1


async def test_a_backend_that_dies_meanwhile(world: World) -> None:
    client, backend = await serve(world, replacing(SORRY))
    await client.send(make_request())
    call = await backend.call()
    call.send(b"HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\nsome of it")
    await world.turns()
    call.link.abort()
    assert (await client.response()).body == b"sorry"


async def test_answers_of_the_proxy(world: World) -> None:
    unit = replacing(SORRY, AWAY, body_size=10)
    shut = access(allow=False)
    client, _ = await serve(world, unit, shut, policies=(NAME,))
    answer = await client.ask(make_request())
    assert (answer.status, answer.value("location")) == (302, "//login.test/in")
    assert world.lines()[0]["flags"] == "DENY"
    large = ir.ResponseOverride(statuses=((413, 413),), body=b"too much", content_type="text/plain")
    unit = replacing(large, body_size=10)
    client, _ = await serve(world, unit)
    answer = await client.ask(make_request(method="PUT", body=bytes(11)))
    assert (answer.status, answer.body) == (413, b"too much")


@pytest.mark.parametrize(("status", "body"), [(204, b""), (304, b""), (203, b"text")])
async def test_statuses_without_a_body_have_none(world: World, status: int, body: bytes) -> None:
    one = ir.ResponseOverride(statuses=((500, 500),), status=status, body=b"text")
    client, _ = await serve(world, replacing(one), answer=status_of)
    answer = await client.ask(make_request("/500"))
    assert (answer.status, answer.body) == (status, body)
    answer = await client.ask(make_request("/500", method="HEAD"), head=True)
    assert answer.status == status


async def test_retries_come_first(world: World) -> None:
    answers = iter((503, 200))
    client, backend = await serve(
        world,
        replacing(SORRY),
        answer=lambda call: make_response(b"x", next(answers)),
        retry=ir.Retry(attempts=1, codes=(503,), backoff=1),
    )
    answer = await client.ask(make_request())
    assert (answer.status, answer.body, backend.count) == (200, b"x", 2)


async def test_calls_keep_theirs(world: World) -> None:
    shut = access(allow=False)
    client, _ = await serve(world, replacing(AWAY), shut, policies=(NAME,))
    answer = await client.ask(make_request("/a.B/C", method="POST", headers=CALL, body=b""))
    assert (answer.status, answer.value("grpc-status")) == (200, "7")


async def test_a_websocket_is_left_alone(world: World) -> None:
    one = ir.ResponseOverride(statuses=((200, 599),), body=b"text")
    head = b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    client, _ = await serve(world, replacing(one), answer=lambda call: head)
    await client.send(make_request(headers=[("connection", "upgrade"), ("upgrade", "websocket")]))
    assert (await client.receive()).startswith(b"HTTP/1.1 101")
