"""Mirrored requests: exactly the wanted share, never at the cost of the request itself."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from core.backend import Call, make_response, say
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_listener, make_rule
from core.h2.backend import Ask, H2Backend
from core.world import World
from edgefast import ir
from edgefast.core.cells import MIRROR_DROPS


def mirroring(*mirrors: ir.Mirror, main: int, shadow: int, **http: Any) -> ir.Fleet:
    """A rule to `main` with these mirrors, all of them to `shadow`."""
    rule = make_rule("main", mirrors=mirrors)
    clusters = make_cluster(main, name="main"), make_cluster(shadow, name="shadow")
    return make_fleet(make_listener(**http), rule, *clusters)


ALL = ir.Mirror(cluster="shadow")


def drops(world: World) -> dict[str, int]:
    """Dropped copies by reason; their sum equals the other counter."""
    found = {name: world.counters[f"mirror_drops_{name}"] for name in MIRROR_DROPS}
    assert sum(found.values()) == world.counters["mirrors_dropped"]
    return {name: count for name, count in found.items() if count}


@pytest.mark.parametrize(
    ("numerator", "denominator", "copies"),
    [(100, 100, 100), (0, 100, 0), (25, 100, 25), (1, 3, 33), (1, 1000, 0), (7, 10, 70)],
)
async def test_the_share_is_exact(
    world: World, numerator: int, denominator: int, copies: int
) -> None:
    main, shadow = await world.backend(say("main")), await world.backend(say("shadow"))
    part = ir.Mirror(cluster="shadow", numerator=numerator, denominator=denominator)
    client = await world.client_of(mirroring(part, main=main.port, shadow=shadow.port))
    for _ in range(100):
        assert (await client.get()).body == b"main"
    await world.settle()
    assert (main.count, shadow.count) == (100, copies)
    assert world.counters["mirrored"] == copies
    assert world.counters["mirrors_dropped"] == 0


async def test_the_copy_is_the_request(world: World) -> None:
    calls: list[Call] = []

    def keep(call: Call) -> bytes:
        calls.append(call)
        return make_response(b"ok")

    main, shadow = await world.backend(keep), await world.backend(keep)
    client = await world.client_of(mirroring(ALL, main=main.port, shadow=shadow.port))
    body = bytes(range(256)) * 40
    await client.ask(make_request("/a?b=c", method="POST", headers=[("x-y", "z")], body=body))
    head = b"PUT /chunks HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
    await client.ask(head + b"3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n")
    await world.until(lambda: len(calls) == 4)
    await world.settle()
    pairs = {call.message.target: call for call in calls if call.link.backend is main}
    for copy in (call for call in calls if call.link.backend is shadow):
        assert copy.message == pairs[copy.message.target].message
    assert {call.message.body for call in calls} == {body, b"abcdefgh"}


async def test_several_mirrors(world: World) -> None:
    main, shadow = await world.backend(say("main")), await world.backend(say("s"))
    half = ir.Mirror(cluster="shadow", numerator=50)
    client = await world.client_of(mirroring(ALL, half, main=main.port, shadow=shadow.port))
    for _ in range(10):
        await client.get()
    await world.settle()
    assert shadow.count == 15


async def test_a_mirror_that_never_answers_delays_nothing(world: World) -> None:
    main, shadow = await world.backend(say("main")), await world.backend()
    client = await world.client_of(
        mirroring(ALL, main=main.port, shadow=shadow.port, route_timeout=1_500)
    )
    for _ in range(20):
        assert (await client.get()).body == b"main"
    await shadow.calls(20)
    await world.until(lambda: drops(world) == {"timeout": 20}, "mirrors have a deadline")
    await world.until(lambda: shadow.open == [])


async def test_a_mirror_that_cannot_be_reached_is_dropped(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    main = await world.backend(say("main"))
    client = await world.client_of(mirroring(ALL, main=main.port, shadow=world.refusing_port()))
    for _ in range(20):
        assert (await client.get()).body == b"main"
    await world.until(lambda: drops(world) == {"unreachable": 20})
    assert world.counters["mirrored"] == 20
    (line,) = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    said = "cluster=shadow reason=unreachable held_bytes=0 dropped_since_last_line=1"
    assert line == f"mirror: copy dropped: {said}"


async def test_a_mirror_without_endpoints_is_dropped(world: World) -> None:
    main = await world.backend(say("main"))
    rule = make_rule("main", mirrors=(ALL, ir.Mirror(cluster="nowhere")))
    fleet = make_fleet(rule, make_cluster(main.port, name="main"), make_cluster(name="shadow"))
    client = await world.client_of(fleet)
    assert (await client.get()).body == b"main"
    assert drops(world) == {"unreachable": 2}


@pytest.mark.parametrize("protocol", ["http1", "h2"])
async def test_a_mirror_that_closes_connections_gets_whole_bodies(
    world: World, protocol: str
) -> None:
    """The copy waits for a connection each time, with more of a body than 64 KiB."""
    main, bodies = await world.backend(say("main")), []
    shadow: Any
    if protocol == "http1":

        def end(call: Call) -> bytes:
            bodies.append(call.message.body)
            return make_response(b"", 200, (("connection", "close"),))

        shadow = await world.backend(end)
    else:

        def leave(ask: Ask) -> None:
            bodies.append(ask.body)
            ask.reply(b"x")
            ask.link.goes_away()

        shadow = await H2Backend(leave, window=1000).start()
        world.keep(shadow)
    rule = make_rule("main", mirrors=(ALL,))
    clusters = (
        make_cluster(main.port, name="main"),
        make_cluster(shadow.port, name="shadow", protocol=protocol),
    )
    client = await world.client_of(make_fleet(rule, *clusters))
    body = bytes(range(256)) * 3600
    for number in range(1, 9):
        answer = await client.ask(make_request(method="POST", body=body))
        assert answer.body == b"main"
        await world.until(lambda n=number: len(bodies) == n)  # type: ignore[misc]
    assert set(bodies) == {body}
    assert drops(world) == {}


async def test_a_mirror_that_reads_late_gets_the_whole_body(world: World) -> None:
    main, shadow = await world.backend(), await world.backend()
    shadow.on_link = lambda link: link.pause()
    buffer = 12 << 20
    fleet = mirroring(ALL, main=main.port, shadow=shadow.port, mirror_buffer=buffer)
    client = await world.client_of(fleet)
    body = bytes(range(256)) * 4096 * 8  # more than the kernel's buffers take
    await client.send(make_request(method="POST", body=body))
    (await main.call()).reply(b"main")
    assert (await client.response()).body == b"main"
    shadow.links[0].transport.resume_reading()
    late = await shadow.call()
    assert late.message.body == body
    late.reply()
    await world.settle()
    assert drops(world) == {}


async def test_a_chunked_copy_that_is_sent_in_parts_has_one_end(world: World) -> None:
    """It waits for the connection with its whole body. The next request follows it there."""
    main, shadow = await world.backend(say("main")), await world.backend()
    clusters = (
        make_cluster(main.port, name="main"),
        make_cluster(shadow.port, name="shadow", max_connections=1),
    )
    rule, listener = make_rule("main", mirrors=(ALL,)), make_listener(mirror_buffer=12 << 20)
    client = await world.client_of(make_fleet(listener, rule, *clusters))
    await client.get()
    first = await shadow.call()
    first.link.pause()
    body = bytes(range(256)) * 4096 * 8  # more than the kernel's buffers take
    head = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
    await client.ask(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
    first.reply()
    first.link.transport.resume_reading()
    second = await shadow.call()
    assert second.message.body == body
    second.reply()
    await world.settle()
    await client.get("/next")
    third = await shadow.call()
    assert (third.message.target, third.link) == (b"/next", first.link)
    third.reply()
    await world.settle()
    assert drops(world) == {}


async def test_copies_of_a_worker_hold_so_much(world: World) -> None:
    """Each may hold mirrorBuffer, all of them 32 MiB; small ones do not count."""
    main, shadow = await world.backend(say("main")), await world.backend()
    clusters = (
        make_cluster(main.port, name="main"),
        make_cluster(shadow.port, name="shadow", max_connections=1),
    )
    rule, listener = make_rule("main", mirrors=(ALL,)), make_listener(mirror_buffer=15 << 20)
    client = await world.client_of(make_fleet(listener, rule, *clusters))
    assert (await client.get()).body == b"main"
    blocking = await shadow.call()
    large = make_request(method="POST", body=bytes(14 << 20))
    for _ in range(3):
        assert (await client.ask(large)).body == b"main"
    assert drops(world) == {"memory": 1}
    small = make_request(method="POST", body=bytes(60_000))
    for _ in range(3):
        assert (await client.ask(small)).body == b"main"
    blocking.reply()
    sizes = []
    for _ in range(5):
        late = await shadow.call()
        sizes.append(len(late.message.body))
        late.reply()
    assert sizes == [14 << 20] * 2 + [60_000] * 3
    await world.settle()
    assert (await client.ask(large)).body == b"main"  # all of it is free again
    (await shadow.call()).reply()
    await world.settle()
    assert drops(world) == {"memory": 1}


@pytest.mark.parametrize("how", ["reset", "close", "nonsense", "cut", "upgrade", "early"])
async def test_a_mirror_that_answers_badly_disturbs_nothing(world: World, how: str) -> None:
    main, shadow = await world.backend(say("main")), await world.backend()

    def misbehave(call: Call) -> bytes | None:
        if how == "reset":
            call.link.abort()
            return None
        if how == "close":
            call.link.close()
            return None
        if how == "cut":
            call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123")
            call.link.close()
            return None
        if how == "upgrade":
            return b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nwhatever"
        if how == "early":
            return make_response(b"1") + make_response(b"2")
        return b"\x00\x01\x02 nonsense\r\n\r\n"

    shadow.answer = misbehave
    client = await world.client_of(
        mirroring(ALL, main=main.port, shadow=shadow.port, route_timeout=2_000)
    )
    for _ in range(10):
        answer = await client.ask(make_request(method="POST", body=b"x" * 1000))
        assert (answer.status, answer.body) == (200, b"main")
    await world.settle()
    assert world.counters["mirrored"] == 10
    assert {line["status"] for line in world.lines()} == {200}
    assert {line["flags"] for line in world.lines()} == {""}


async def test_a_mirror_that_reads_nothing_is_dropped_and_bounded(world: World) -> None:
    main, shadow = await world.backend(), await world.backend()
    shadow.on_link = lambda link: link.pause()
    client = await world.client_of(mirroring(ALL, main=main.port, shadow=shadow.port))
    total = 24 << 20
    head = f"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: {total}\r\n\r\n".encode()
    await client.send(head)
    piece = b"x" * 65536
    for _ in range(total // len(piece)):
        await client.send(piece)
    call = await main.call()
    assert len(call.message.body) == total
    call.reply(b"all of it")
    assert (await client.response()).body == b"all of it"
    assert drops(world) == {"behind": 1}
    copied = world.counters["upstream_bytes_sent"] - total
    assert copied < total // 2  # what the kernel's buffers take, and no more


async def test_a_mirror_that_waits_for_a_connection_keeps_so_much(world: World) -> None:
    main, shadow = await world.backend(), await world.backend()
    clusters = (
        make_cluster(main.port, name="main"),
        make_cluster(shadow.port, name="shadow", max_connections=1),
    )
    rule, listener = make_rule("main", mirrors=(ALL,)), make_listener(mirror_buffer=150_000)
    port = await world.serve(make_fleet(listener, rule, *clusters))
    one, two = await world.client(port), await world.client(port)
    await one.send(make_request())
    blocking = await shadow.call()
    (await main.call()).reply()
    await one.response()
    await two.send(make_request(method="POST", body=b"x" * 200_000))
    (await main.call()).reply(b"two")
    assert (await two.response()).body == b"two"
    await world.until(lambda: drops(world) == {"behind": 1})
    await one.send(make_request(method="POST", body=b"x" * 140_000))
    (await main.call()).reply(b"three")
    assert (await one.response()).body == b"three"
    blocking.reply()
    late = await shadow.call()
    assert len(late.message.body) == 140_000
    late.reply()
    await world.settle()
    assert world.counters["mirrors_dropped"] == 1


async def test_a_client_that_leaves_in_mid_request_ends_the_copy(world: World) -> None:
    main, shadow = await world.backend(), await world.backend()
    client = await world.client_of(mirroring(ALL, main=main.port, shadow=shadow.port))
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 100\r\n\r\n123")
    await world.until(lambda: main.links and shadow.links)
    await world.until(lambda: shadow.links[0].bytes_in > 0)
    client.reset()
    await world.until(lambda: shadow.open == [])
    assert shadow.count == 0
    assert drops(world) == {"request": 1}


async def test_a_complete_request_is_copied_even_when_the_client_leaves(world: World) -> None:
    main, shadow = await world.backend(), await world.backend()
    client = await world.client_of(mirroring(ALL, main=main.port, shadow=shadow.port))
    await client.send(make_request())
    await main.call()
    call = await shadow.call()
    client.reset()
    await world.until(lambda: world.engine.active == 0)
    call.reply()
    await world.settle()
    assert world.counters["mirrors_dropped"] == 0


async def test_a_slow_main_backend_does_not_hurt_the_copy(world: World) -> None:
    main, shadow = await world.backend(), await world.backend(say("s"))
    client = await world.client_of(mirroring(ALL, main=main.port, shadow=shadow.port))
    await client.send(make_request())
    await world.until(lambda: shadow.count == 1)
    (await main.call()).reply(b"slow")
    assert (await client.response()).body == b"slow"


async def test_retries_are_not_mirrored_again(world: World) -> None:
    main, shadow = await world.backend(), await world.backend(say("s"))
    retry = ir.Retry(codes=(503,), attempts=2, backoff=1)
    rule = make_rule("main", mirrors=(ALL,), retry=retry)
    clusters = make_cluster(main.port, name="main"), make_cluster(shadow.port, name="shadow")
    client = await world.client_of(make_fleet(rule, *clusters))
    await client.send(make_request())
    (await main.call()).reply(status=503)
    (await main.call()).reply(b"ok")
    assert (await client.response()).body == b"ok"
    await world.settle()
    assert shadow.count == 1
