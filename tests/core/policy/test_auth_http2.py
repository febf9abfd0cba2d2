"""Clients and services that speak HTTP/2."""

from __future__ import annotations

import pytest

from core.client import make_request
from core.fleets import make_cluster
from core.h2.asking import Asker, Fields
from core.h2.backend import H2Backend, say
from core.policy.authorized import AUTH, PASS, fleet_of, guarded, make_auth, passing
from core.world import World

GET: Fields = [
    (b":method", b"GET"),
    (b":scheme", b"http"),
    (b":authority", b"test"),
    (b":path", b"/a?b"),
]
POST: Fields = [(b":method", b"POST"), *GET[1:]]


async def test_a_client_of_http2(world: World) -> None:
    route = await guarded(world, passing(("x-user", "me")), to_backend=("x-user",))
    asker = Asker(await route.client())
    answer = await asker.ask([*GET, (b"x-user", b"fake")])
    assert (answer.status, answer.body) == (200, b"behind")
    assert route.seen[0].message.values(b"x-user") == [b"me"]
    route.service.answer = passing(("location", "/login"), body=b"go", status=302)
    answer = await asker.ask(GET)
    assert (answer.status, answer.body, answer.value("location")) == (302, b"go", "/login")


async def test_its_body_is_shown(world: World) -> None:
    route = await guarded(world, passing(), body=30_000)
    asker = Asker(await route.client())
    body = b"x" * 20_000
    assert (await asker.ask(POST, body)).body == b"behind"
    assert route.seen[0].message.body == body
    assert (await asker.ask(POST, body + body)).status == 413
    assert route.service.count == 1


async def test_a_request_that_is_taken_back_at_once_is_shown_to_nobody(world: World) -> None:
    route = await guarded(world, passing())
    asker = Asker(await route.client())
    await asker.ask(GET)
    for _ in range(5):
        number = asker.frames.get_next_available_stream_id()
        asker.frames.send_headers(number, GET, end_stream=True)
        asker.frames.reset_stream(number, 8)
    await asker.client.send(asker.frames.data_to_send())
    await asker.ask(GET)
    assert route.service.count == 2


async def test_a_stream_that_is_reset_ends_the_call(world: World) -> None:
    route = await guarded(world, None)
    asker = Asker(await route.client())
    number = asker.frames.get_next_available_stream_id()
    asker.frames.send_headers(number, GET, end_stream=True)
    await asker.client.send(asker.frames.data_to_send())
    await route.service.call()
    asker.frames.reset_stream(number, 8)
    await asker.client.send(asker.frames.data_to_send())
    await world.until(lambda: route.service.open == [])
    assert world.engine.active == 0 and route.seen == []


async def h2_world(world: World, service: H2Backend, **settings: object) -> tuple[int, list[bytes]]:
    seen: list[bytes] = []

    def behind(call) -> bytes:  # type: ignore[no-untyped-def]
        seen.append(call.message.raw)
        return PASS

    backend = await world.backend(behind)
    world.keep(service)
    cluster = make_cluster(service.port, name=AUTH, protocol="h2")
    return await world.serve(fleet_of(make_auth(**settings), backend.port, cluster)), seen


async def test_a_service_of_http2(world: World) -> None:
    service = await H2Backend().start()
    port, seen = await h2_world(world, service, to_backend=("x-user",), body=100)
    client = await world.client(port)
    await client.send(
        make_request("/a?b", method="POST", headers=[("authorization", "x")], body=b"abc")
    )
    ask = await service.ask()
    assert (ask.value(":method"), ask.value(":path"), ask.value(":authority")) == (
        "POST",
        "/a?b",
        "test",
    )
    assert (ask.value("authorization"), ask.value("content-length")) == ("x", "3")
    await world.until(lambda: ask.ended)
    assert ask.body == b"abc"
    ask.reply(b"", 200, ("x-user", "me"))
    assert (await client.response()).status == 200
    assert b"x-user: me\r\n" in seen[0]
    await client.send(make_request())
    (await service.ask()).reply(b"no", 401, ("www-authenticate", "x"))
    answer = await client.response()
    assert (answer.status, answer.body, answer.value("www-authenticate")) == (401, b"no", "x")
    await client.send(make_request())
    ask = await service.ask()
    ask.head(200)
    ask.data(b"x" * 30_000)
    ask.refuse(2)
    assert (await client.response()).status == 403
    await client.send(make_request())
    ask = await service.ask()
    ask.head(200)
    ask.data(b"x" * 70_000, end=True)
    assert (await client.response()).status == 403
    assert len(seen) == 1


@pytest.mark.parametrize("fail_open", [False, True])
async def test_one_that_goes_away(world: World, fail_open: bool) -> None:
    service = await H2Backend().start()
    port, seen = await h2_world(world, service, fail_open=fail_open)
    client = await world.client(port)
    await client.send(make_request())
    (await service.ask()).link.close()
    assert (await client.response()).status == (200 if fail_open else 403)
    assert len(seen) == fail_open


async def test_many_at_once(world: World) -> None:
    service = await H2Backend(say(b"")).start()
    port, seen = await h2_world(world, service)
    clients = [await world.client(port) for _ in range(20)]
    for client in clients:
        await client.send(make_request())
    assert [(await client.response()).status for client in clients] == [200] * 20
    assert len(seen) == 20
