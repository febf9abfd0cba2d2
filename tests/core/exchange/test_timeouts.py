"""Timeouts: what each bounds, what it leaves alone, and what the client gets. Time is moved, not waited for, where it can be."""

from __future__ import annotations

import pytest

from core.apart import apart, shift
from core.backend import say
from core.client import Gone, make_request
from core.fleets import CLUSTER, ROW, make_cluster, make_fleet, make_listener, make_rule
from core.world import World
from edgefast import ir

SHORT = 60  # milliseconds


async def test_the_default_bounds_the_time_to_the_response_head(world: World) -> None:
    backend, client = await world.pair(None, make_listener(route_timeout=SHORT))
    answer = await client.get()
    assert (answer.status, answer.body) == (504, b"the backend did not answer in time\n")
    await world.until(lambda: backend.open == [], "the connection is not used again")
    call = await backend.call()
    assert call.message.value(b"x-edge-expected-rq-timeout-ms") == b"%d" % SHORT
    (line,) = world.lines()
    assert (line["status"], line["flags"]) == (504, "UT")
    assert world.counters.row(ROW)["timeouts"] == 1
    world.apply(make_fleet(make_listener(route_timeout=15_000), make_cluster(backend.port)))
    await client.send(make_request())  # the client's connection goes on
    (await backend.call()).reply(b"in time")
    assert (await client.response()).body == b"in time"


@apart(clock=True)
async def test_the_default_begins_when_the_request_is_complete(world: World) -> None:
    backend, client = await world.pair()
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 4\r\n\r\n")
    for byte in (b"1", b"2", b"3"):
        shift(10)
        await client.send(byte)
        await world.until(lambda b=byte: backend.links and backend.links[0].received.endswith(b))  # type: ignore[misc]
    await client.send(b"4")
    call = await backend.call()
    shift(10)
    await world.turns()
    call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nA")
    await world.until(lambda: world.counters["downstream_bytes_sent"] > 0)
    shift(60)  # it does not bound the body
    call.send(b"B")
    assert (await client.response()).body == b"AB"


@apart(clock=True)
async def test_the_default_is_15_seconds(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    client = await world.client(port)
    await client.send(make_request())
    call = await backend.call()
    assert call.message.value(b"x-edge-expected-rq-timeout-ms") == b"15000"
    shift(10)
    for _ in range(5):
        other = await world.client(port)
        await other.send(make_request())
        (await backend.call()).reply()
        assert (await other.response()).status == 200
    assert world.engine.active == 1
    shift(5)
    assert (await client.response()).status == 504


@apart(clock=True)
async def test_zero_switches_the_request_timeout_off(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(timeouts=ir.Timeouts(request=0))
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    await client.send(make_request())
    call = await backend.call()
    assert call.message.value(b"x-edge-expected-rq-timeout-ms") is None
    shift(200)
    await world.turns()
    call.reply(b"very late")
    assert (await client.response()).body == b"very late"


async def test_request_bounds_the_wait_for_an_answer(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(timeouts=ir.Timeouts(request=SHORT))
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    await client.send(make_request())
    call = await backend.call()
    assert call.message.value(b"x-edge-expected-rq-timeout-ms") == b"%d" % SHORT
    assert (await client.response()).status == 504
    (line,) = world.lines()
    assert "UT" in line["flags"]
    assert world.counters.row(ROW)["timeouts"] == 1


@apart(clock=True)
async def test_request_bounds_the_whole_answer(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(timeouts=ir.Timeouts(request=20_000))
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    await client.send(make_request())
    call = await backend.call()
    shift(10)
    await world.turns()
    call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n12")
    await world.until(lambda: world.counters["downstream_bytes_sent"] > 0)
    assert world.engine.active == 1
    shift(11)
    with pytest.raises(Gone):
        await client.response()
    (line,) = world.lines()
    assert "UT" in line["flags"]
    assert world.counters.row(ROW)["timeouts"] == 1


async def test_request_bounds_an_upload_too(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(timeouts=ir.Timeouts(request=SHORT))
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 4\r\n\r\n1")
    answer = await client.response()
    assert answer.status in (408, 504)
    assert answer.value("connection") == "close"
    assert world.cluster(CLUSTER)["endpoints"][0]["failures"] == 0


@apart(clock=True)
async def test_request_bounds_all_tries_together(world: World) -> None:
    backend = await world.backend()
    retry = ir.Retry(codes=(503,), attempts=16, backoff=1)
    rule = make_rule(timeouts=ir.Timeouts(request=20_000), retry=retry)
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    await client.send(make_request())
    for _ in range(2):
        call = await backend.call()
        shift(7)
        await world.turns()
        call.reply(status=503)
    await backend.call()
    assert world.engine.active == 1
    shift(7)
    assert (await client.response()).status == 504


@apart(clock=True)
async def test_backend_request_bounds_one_try(world: World) -> None:
    backend = await world.backend()
    retry = ir.Retry(codes=(504,), attempts=2, backoff=1)
    timeouts = ir.Timeouts(request=0, backend_request=10_000)
    client = await world.client_of(
        make_fleet(make_rule(timeouts=timeouts, retry=retry), make_cluster(backend.port))
    )
    await client.send(make_request())
    for _ in range(2):
        await backend.call()
        shift(11)
    (await backend.call()).reply(b"third")
    assert (await client.response()).body == b"third"
    assert world.counters["retries"] == 2
    await client.send(make_request())
    for _ in range(3):
        await backend.call()
        shift(11)
    assert (await client.response()).status == 504
    assert backend.count == 6


async def test_backend_request_without_a_retry_is_504(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(timeouts=ir.Timeouts(backend_request=SHORT))
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    assert (await client.get()).status == 504
    assert backend.count == 1


@apart(clock=True)
async def test_a_response_that_stalls_is_cut_off(world: World) -> None:
    backend = await world.backend()
    listener = make_listener(stream_idle_timeout=20_000)
    client = await world.client_of(make_fleet(listener, make_cluster(backend.port)))
    await client.send(make_request())
    call = await backend.call()
    call.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n12\r\n")
    await world.until(lambda: world.counters["downstream_bytes_sent"] > 0)
    shift(21)
    with pytest.raises(Gone) as gone:
        await client.response()
    assert b"0\r\n\r\n" not in gone.value.received
    (line,) = world.lines()
    assert (line["status"], line["flags"]) == (200, "SI")
    await world.until(lambda: backend.open == [])


async def test_an_answer_that_never_begins_is_504(world: World) -> None:
    backend = await world.backend()
    listener = make_listener(stream_idle_timeout=SHORT)
    rule = make_rule(timeouts=ir.Timeouts(request=0))
    port = await world.serve(make_fleet(listener, rule, make_cluster(backend.port)))
    answer = await (await world.client(port)).get()
    assert (answer.status, answer.body) == (504, b"nothing was sent or received for too long\n")
    assert world.lines()[0]["flags"] == "SI"


@apart(clock=True)
async def test_whatever_moves_is_not_idle(world: World) -> None:
    backend, client = await world.pair()
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 3\r\n\r\n")
    for sent in range(3):
        shift(200)
        await client.send(b"x")
        await world.until(
            lambda n=sent: (
                backend.count or backend.links and backend.links[0].received.count(b"x") > n
            )  # type: ignore[misc]
        )
    call = await backend.call()
    call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n")
    for _ in range(3):
        before = world.counters["upstream_bytes_received"]
        shift(200)
        call.send(b"y")
        await world.until(lambda n=before: world.counters["upstream_bytes_received"] > n)  # type: ignore[misc]
    assert (await client.response()).body == b"yyy"


async def test_connecting_has_a_deadline(world: World) -> None:
    port = await world.serve(
        make_fleet(make_listener(connect_timeout=SHORT), make_cluster(await world.silent_port()))
    )
    answer = await (await world.client(port)).get()
    assert (answer.status, answer.body) == (503, b"the backend could not be reached\n")
    assert world.counters["upstream_connect_failures"] == 1
    assert world.lines()[0]["flags"] == "UF"


async def test_another_endpoint_is_asked_when_connecting_takes_too_long(world: World) -> None:
    """No byte was sent, so this applies to any method."""
    good = await world.backend(say("good"))
    cluster = make_cluster(await world.silent_port(), good.port)
    client = await world.client_of(make_fleet(make_listener(connect_timeout=SHORT), cluster))
    for _ in range(6):
        assert (await client.ask(make_request(method="POST", body=b"x"))).status == 200


async def test_a_slow_connect_does_not_outlive_the_request(world: World) -> None:
    listener = make_listener(connect_timeout=600, route_timeout=SHORT)
    port = await world.serve(make_fleet(listener, make_cluster(await world.silent_port())))
    assert (await (await world.client(port)).get()).status == 504
    assert world.counters["upstream_connect_failures"] == 0  # it is still under way


@pytest.mark.parametrize(
    "sent",
    [b"", b"G", b"GET / HTTP/1.1\r\nhost: te", b"GET / HTTP/1.1\r\nhost: test\r\n\r"],
)
async def test_a_head_that_comes_too_slowly_is_408(world: World, sent: bytes) -> None:
    backend = await world.backend()
    listener = make_listener(head_timeout=SHORT)
    client = await world.client_of(make_fleet(listener, make_cluster(backend.port)))
    await client.send(sent)
    answer = await client.response()
    assert (answer.status, answer.value("connection")) == (408, "close")
    assert await client.ending() == "closed"
    assert world.counters["head_timeouts"] == 1


@apart(clock=True)
async def test_bytes_of_a_head_give_it_no_more_time(world: World) -> None:
    """The time counts from the first byte, also for a later request of the connection."""
    backend = await world.backend(say("x"))
    listener = make_listener(head_timeout=5000)
    port = await world.serve(make_fleet(listener, make_cluster(backend.port)))
    for used in (False, True):
        client = await world.client(port)
        if used:
            assert (await client.get()).status == 200
        sent = 0
        before = world.counters["head_timeouts"]
        for byte in b"GET / HTTP/1.1":
            if world.counters["head_timeouts"] > before:
                break
            await client.send(bytes([byte]))
            sent += 1
            await world.turns()
            shift(2)
            await world.turns()
        assert 3 <= sent <= 5
        assert (await client.response()).status == 408
        assert await client.ending() == "closed"


@pytest.mark.parametrize(
    "began", [b"HTTP/1.1 200 OK\r\nContent-", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
async def test_an_answer_that_stops_in_its_head_is_504(
    world: World, method: str, began: bytes
) -> None:
    backend = await world.backend()
    rule = make_rule(timeouts=ir.Timeouts(request=SHORT))
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    for _ in range(2):
        await client.send(make_request(method=method))
        (await backend.call()).send(began)
        answer = await client.response(head=method == "HEAD")
        if answer.status == 103:
            answer = await client.response(head=method == "HEAD")
        assert (answer.status, answer.value("connection")) == (504, None)


async def test_an_idle_connection_is_closed_quietly(world: World) -> None:
    backend = await world.backend()
    listener = make_listener(idle_timeout=SHORT)
    client = await world.client_of(make_fleet(listener, make_cluster(backend.port)))
    await client.send(make_request())
    (await backend.call()).reply()
    await client.response()
    assert await client.ending() == "closed"
    assert world.counters["head_timeouts"] == 0


@apart(clock=True)
async def test_deadlines_beyond_one_turn_of_the_wheel(world: World) -> None:
    """The wheel has 20 seconds of slots: longer deadlines are neither early nor lost."""
    backend = await world.backend()
    port = await world.serve(
        make_fleet(make_listener(idle_timeout=60_000), make_cluster(backend.port))
    )
    client = await world.client(port)
    await client.send(make_request())
    (await backend.call()).reply()
    await client.response()
    for _ in range(2):
        shift(25)
        other = await world.client(port)
        await other.send(make_request())
        (await backend.call()).reply()
        await other.response()
        other.close()
    await world.until(lambda: world.engine.open_connections == 1)
    shift(11)
    assert await client.ending() == "closed"
