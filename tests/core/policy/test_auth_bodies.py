"""Bodies of requests that are shown to a service, and those of requests that only wait for one."""

from __future__ import annotations

import pytest

from core.apart import apart, shift
from core.backend import make_response
from core.client import make_request
from core.policy.authorized import DENY, PASS, guarded, passing
from core.world import World
from edgefast import ir


@pytest.mark.parametrize("size", [1, 1000, 65_536, 300_000])
@pytest.mark.parametrize("chunked", [False, True])
async def test_the_whole_body_is_shown(world: World, size: int, chunked: bool) -> None:
    route = await guarded(world, passing(), body=400_000)
    body = bytes(i % 251 for i in range(size))
    client = await route.client()
    if chunked:
        head = b"POST / HTTP/1.1\r\nhost: test\r\ncontent-type: text/x\r\ntransfer-encoding: chunked\r\n\r\n"
        await client.send(head + b"%x\r\n%b\r\n0\r\n\r\n" % (size, body))
    else:
        await client.send(
            make_request(method="POST", headers=[("content-type", "text/x")], body=body)
        )
    shown: list[bytes] = []
    assert (await client.response()).body == b"behind"
    assert shown == [] and route.service.count == 1
    assert route.seen[0].message.body == body
    assert world.engine.dump()["gathered"] == 0


async def test_what_is_shown(world: World) -> None:
    route = await guarded(world, None, body=10)
    client = await route.client()
    head = b"POST /a HTTP/1.1\r\nhost: test\r\ncontent-type: text/x\r\ntransfer-encoding: chunked\r\n\r\n"
    await client.send(head + b"3\r\nabc\r\n")
    await world.until(lambda: world.engine.active == 1)
    await client.send(b"2\r\nde\r\n0\r\nx-sum: 1\r\n\r\n")
    call = await route.service.call()
    assert call.message.body == b"abcde" and call.message.value(b"content-length") == b"5"
    assert call.message.value(b"content-type") == b"text/x"
    call.send(PASS)
    assert (await client.response()).body == b"behind"
    assert route.seen[0].message.body == b"abcde"
    assert route.seen[0].message.trailers == ((b"x-sum", b"1"),)


@pytest.mark.parametrize("chunked", [False, True])
async def test_more_than_the_service_takes_is_413(world: World, chunked: bool) -> None:
    route = await guarded(world, passing(), body=10, fail_open=True)
    client = await route.client()
    if chunked:
        await client.send(
            b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n6\r\nabcdef\r\n5\r\nghijk\r\n0\r\n\r\n"
        )
    else:
        await client.send(make_request(method="POST", body=b"x" * 11))
    assert (await client.response()).status == 413
    assert route.service.count == 0 and route.seen == []
    assert [line["flags"] for line in world.lines()] == ["TL"]


async def test_a_body_that_is_shown_is_asked_for(world: World) -> None:
    route = await guarded(world, passing(), body=10)
    client = await route.client()
    head = b"POST / HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"
    await client.send(head)
    assert await client.receive() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert route.service.count == 0
    await client.send(b"abc")
    assert (await client.response()).body == b"behind"


async def test_one_that_is_not_waits_for_leave(world: World) -> None:
    route = await guarded(world, None)
    client = await route.client()
    head = b"POST / HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"
    await client.send(head)
    call = await route.service.call()
    await world.turns()
    assert world.counters["downstream_bytes_sent"] == 0
    call.send(PASS)
    assert await client.receive() == b"HTTP/1.1 100 Continue\r\n\r\n"
    await client.send(b"abc")
    assert (await client.response()).body == b"behind"
    other = await route.client()
    await other.send(head)
    (await route.service.call()).send(DENY)
    assert (await other.response()).status == 403


async def test_a_body_that_comes_meanwhile(world: World) -> None:
    """It is held like that of a request which waits for its limits: its client is read no further."""
    route = await guarded(world, None, http={"body_size": 0})
    client = await route.client()
    body = bytes(i % 251 for i in range(8 << 20))
    await client.send(
        make_request(method="POST", body=body[:0])[:-2].replace(
            b"content-length: 0", b"content-length: %d" % len(body)
        )
        + b"\r\n"
    )
    call = await route.service.call()
    sending = world.loop.create_task(client.send(body))
    await world.turns(200)
    assert not sending.done()
    assert world.counters["downstream_bytes_received"] < 2 << 20
    call.send(PASS)
    await sending
    assert (await client.response()).body == b"behind"
    assert route.seen[0].message.body == body


async def test_a_body_that_comes_meanwhile_of_one_who_is_denied(world: World) -> None:
    route = await guarded(world, None)
    client = await route.client()
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 100000\r\n\r\nabc")
    (await route.service.call()).send(DENY)
    assert (await client.response()).status == 403
    small = await route.client()
    await small.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 6\r\n\r\nabc")
    (await route.service.call()).send(DENY)
    assert (await small.response()).status == 403
    await small.send(b"def" + make_request())  # the rest, and the next one
    (await route.service.call()).send(PASS)
    assert (await small.response()).body == b"behind"


async def test_all_of_one_and_a_part_of_the_other(world: World) -> None:
    """A mirror, a redirect: what follows is as for any request."""
    rule = {"redirect": ir.Redirect(hostname="other.test")}
    route = await guarded(world, passing(), body=100, rule=rule)
    answer = await route.ask(method="POST", body=b"abc")
    assert answer.status == 302


@apart(clock=True)
async def test_a_body_that_does_not_come(world: World) -> None:
    route = await guarded(world, passing(), body=100, http={"stream_idle_timeout": 5_000})
    client = await route.client()
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 10\r\n\r\nabc")
    await world.until(lambda: world.engine.active == 1)
    shift(6)
    assert (await client.response()).status == 408
    assert route.service.count == 0


async def test_a_fault_in_the_body(world: World) -> None:
    route = await guarded(world, passing(), body=100)
    client = await route.client()
    await client.send(
        b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcX"
    )
    assert (await client.response()).status == 400
    assert route.service.count == 0 and route.seen == []


async def test_a_retry_has_the_body(world: World) -> None:
    retry = ir.Retry(codes=(503,), attempts=2, backoff=1)
    route = await guarded(world, passing(), body=100, rule={"retry": retry})
    answers = iter([make_response(status=503), make_response(b"again")])
    bodies: list[bytes] = []

    def behind(call):  # type: ignore[no-untyped-def]
        bodies.append(call.message.body)
        return next(answers)

    route.backend.answer = behind
    assert (await route.ask(method="PUT", body=b"abc")).body == b"again"
    assert bodies == [b"abc", b"abc"] and route.service.count == 1
