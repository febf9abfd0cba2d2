"""Answers that a rule gives by itself (HTTPRouteFilter directResponse), after its policies and limits."""

from __future__ import annotations

import pytest

from core.client import make_request
from core.fleets import make_fleet, make_host, make_listener
from core.limited import hold, limit
from core.world import World
from edgefast import ir

TEAPOT = ir.DirectResponse(status=418, content_type="application/json", body=b'{"tea":1}')


def route(direct: ir.DirectResponse, **settings: object) -> ir.VirtualHost:
    return make_host(ir.Rule(route="ns/web", index=0, direct=direct, **settings))  # type: ignore[arg-type]


async def test_status_type_and_body(world: World) -> None:
    client = await world.client_of(make_fleet(route(TEAPOT)))
    for _ in range(2):
        answer = await client.ask(make_request(method="POST", body=b"abc"))
        assert (answer.status, answer.body) == (418, b'{"tea":1}')
        assert answer.value("content-type") == "application/json"
        assert answer.value("content-length") == "9"
        assert answer.value("server") is not None
        assert answer.value("date") is not None
    line = world.lines()[0]
    assert (line["status"], line["flags"], line["bytes_sent"]) == (418, "", 9)
    assert world.counters.row("ns/web\t0")["requests_4xx"] == 2


async def test_head_has_no_body(world: World) -> None:
    client = await world.client_of(make_fleet(route(TEAPOT)))
    answer = await client.ask(make_request(method="HEAD"), head=True)
    assert (answer.status, answer.value("content-length")) == (418, "9")
    assert (await client.get()).body == b'{"tea":1}'
    assert [line["bytes_sent"] for line in world.lines()] == [0, 9]


@pytest.mark.parametrize(
    ("direct", "type_", "length"),
    [
        (ir.DirectResponse(), None, "0"),
        (ir.DirectResponse(body=b"hi\n"), "text/plain", "3"),
        (ir.DirectResponse(content_type="text/html"), None, "0"),
        (ir.DirectResponse(status=204, content_type="text/html", body=b"x"), None, None),
        (ir.DirectResponse(status=304, body=b"x"), None, None),
        (ir.DirectResponse(status=599, body=b"x"), "text/plain", "1"),
    ],
)
async def test_what_is_not_said(
    world: World, direct: ir.DirectResponse, type_: str | None, length: str | None
) -> None:
    client = await world.client_of(make_fleet(route(direct)))
    answer = await client.get()
    assert answer.status == direct.status
    assert answer.value("content-type") == type_
    assert answer.value("content-length") == length
    assert (await client.get()).status == direct.status  # the connection goes on


async def test_a_large_body_for_who_reads_late(world: World) -> None:
    body = bytes(range(256)) * 256
    client = await world.client_of(
        make_fleet(route(ir.DirectResponse(body=body))), receive_buffer=4096
    )
    await client.send(make_request() * 40)
    for _ in range(40):
        assert (await client.response()).body == body


async def test_limits_come_first(world: World) -> None:
    listener = make_listener(rate_limit_headers=True)
    client = await world.client_of(make_fleet(listener, route(TEAPOT, rate_limits=(limit(1),))))
    first = await client.get()
    assert (first.status, first.body) == (418, b'{"tea":1}')
    assert first.value("ratelimit-limit") == "1"
    assert (await client.get()).status == 429


async def test_it_waits_for_the_store(world: World) -> None:
    store = hold(world)
    client = await world.client_of(make_fleet(route(TEAPOT, rate_limits=(limit(1),))))
    await client.send(make_request())
    await world.until(lambda: store.batches)
    store.answer()
    answer = await client.response()
    assert (answer.status, answer.body) == (418, b'{"tea":1}')
    assert answer.value("content-type") == "application/json"


async def test_cors_is_said_of_it(world: World) -> None:
    cors = ir.Cors(allow_origins=("http://a.test",))
    client = await world.client_of(make_fleet(route(TEAPOT, cors=cors)))
    answer = await client.ask(make_request(headers=[("origin", "http://a.test")]))
    assert answer.value("access-control-allow-origin") == "http://a.test"
    assert answer.value("content-type") == "application/json"
