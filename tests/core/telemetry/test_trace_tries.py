"""A span for each try at a backend: its own id, which the backend is told, how it ended, and the URL as it was sent."""

from __future__ import annotations

from contextlib import suppress

import pytest

from core.apart import apart, shift
from core.backend import Backend, Call, make_response, say
from core.client import Client, Gone, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_rule
from core.traces import LINE, spans_since, traced
from core.world import World
from edgefast import ir
from edgefast.proxy.control.messages import FRAME_LIMIT
from edgefast.proxy.traces.span_record import SpanRecord


class Failing(Backend):
    """Answers these statuses, one after the other, the last one for ever; keeps the span ids it was told."""

    def __init__(self, *statuses: int) -> None:
        super().__init__(self._answer)
        self.statuses = list(statuses)
        self.told: list[bytes] = []

    def _answer(self, call: Call) -> bytes:
        found = LINE.fullmatch(call.message.value(b"traceparent"))
        assert found
        self.told.append(found[2])
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return make_response(b"hello", status)


async def serve(
    world: World, backend: Backend, rule: ir.Rule, listener: ir.Listener | None = None
) -> Client:
    """A client of a proxy that traces, before this backend."""
    world.keep(await backend.start())
    fleet = make_fleet(listener or traced(), rule, make_cluster(backend.port))
    return await world.client_of(fleet)


def only_span(world: World) -> SpanRecord:
    (span,) = spans_since(world, 0)
    return span


async def test_each_try_has_its_own_span(world: World) -> None:
    backend = Failing(503, 502, 200)
    retry = ir.Retry(codes=(502, 503), attempts=3, backoff=1)
    client = await serve(world, backend, make_rule(retry=retry))
    assert (await client.get()).status == 200
    span = only_span(world)
    assert [one.span_id.hex().encode() for one in span.tries] == backend.told
    assert len({span.span_id, *(one.span_id for one in span.tries)}) == 4
    assert [(one.number, one.status, one.error) for one in span.tries] == [
        (1, 503, b""),
        (2, 502, b""),
        (3, 200, b""),
    ]
    assert {one.endpoint for one in span.tries} == {f"127.0.0.1:{backend.port}".encode()}
    ends = [one.began + one.took for one in span.tries]
    begins = [one.began for one in span.tries[1:]]
    assert all(end + 1000 <= begin for end, begin in zip(ends, begins, strict=False)), "the pause"
    assert ends[-1] == span.took and span.status == 200


async def test_tries_on_an_unsampled_request_are_told_one_parent(world: World) -> None:
    backend = Failing(503, 200)
    rule = make_rule(retry=ir.Retry(codes=(503,), attempts=1, backoff=1))
    client = await serve(world, backend, rule, traced(0.0))
    assert (await client.get()).status == 200
    assert len(backend.told) == 2 and len(set(backend.told)) == 1
    assert spans_since(world, 0) == []


async def test_a_filter_that_has_its_own_traceparent_keeps_it(world: World) -> None:
    own = f"00-{'1' * 32}-{'2' * 16}-01"
    backend = Failing(503, 200)
    rule = make_rule(
        retry=ir.Retry(codes=(503,), attempts=1, backoff=1),
        request_headers=ir.HeaderOps(set=(("traceparent", own),)),
    )
    client = await serve(world, backend, rule)
    assert (await client.get()).status == 200
    assert backend.told == [b"2" * 16] * 2
    assert len({one.span_id for one in only_span(world).tries}) == 2


async def test_the_first_tries_and_the_last_have_spans(world: World) -> None:
    backend = Failing(*[503] * 17)
    retry = ir.Retry(codes=(503,), attempts=16, backoff=1)
    client = await serve(world, backend, make_rule(retry=retry))
    assert (await client.get()).status == 503
    span = only_span(world)
    assert [one.number for one in span.tries] == [*range(1, 16), 17]
    assert span.tries[-1].span_id.hex().encode() == backend.told[-1] and len(backend.told) == 17


@apart(clock=True)
async def test_a_request_that_ends_in_a_pause_has_its_last_try_too(world: World) -> None:
    retry = ir.Retry(codes=(503,), attempts=16, backoff=60_000)
    rule = make_rule(retry=retry, timeouts=ir.Timeouts(request=0))
    listener = traced(stream_idle_timeout=24 * 3_600_000)
    client = await serve(world, Failing(503), rule, listener)
    await client.send(make_request())
    for number in range(1, 17):
        await world.until(lambda n=number: world.counters["retries"] == n)  # type: ignore[misc]
        if number < 16:
            shift(601)
            await world.turns()
    client.reset()
    await world.until(lambda: world.engine.active == 0)
    span = only_span(world)
    assert [one.number for one in span.tries] == [*range(1, 17)]
    assert [(one.status, one.error) for one in span.tries] == [(503, b"")] * 16


async def test_the_longest_span_fits_behind_a_batch_that_is_nearly_full(world: World) -> None:
    """A batch of spans is one frame of the channel."""
    backend = Failing(*[503] * 17)
    retry = ir.Retry(codes=(503,), attempts=16, backoff=1)
    client = await serve(world, backend, make_rule(retry=retry))
    headers = [("user-agent", "a" * 600), ("tracestate", "t" * 600), ("x-request-id", "i" * 64)]
    await client.get("/" + "p" * 3000, host="h" * 200, headers=headers)
    assert len(only_span(world).tries) == 16
    assert 32768 + len(world.spans[0]) + 64 < FRAME_LIMIT  # SPAN_BATCH, and the message's own words


@pytest.mark.parametrize(
    ("how", "error", "status"),
    [
        ("refused", b"connection_failure", 503),
        ("hung up", b"connection_termination", 502),
        ("broken", b"protocol_error", 502),
        ("slow", b"response_timeout", 504),
        ("cut", b"connection_termination", 200),
        ("nobody", b"no_healthy_upstream", 503),
    ],
)
async def test_why_a_try_failed(world: World, how: str, error: bytes, status: int) -> None:
    def answer(call: Call) -> bytes | None:
        if how == "hung up":
            call.link.close()
        elif how == "broken":
            return b"SSH-2.0\r\n\r\n"
        elif how == "cut":
            call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
            call.link.shut_now()
        return None

    backend = await world.backend(answer)
    ports = {"refused": (world.refusing_port(),), "nobody": ()}.get(how, (backend.port,))
    rule = make_rule(timeouts=ir.Timeouts(request=50 if how == "slow" else 15_000))
    client = await world.client_of(make_fleet(traced(), rule, make_cluster(*ports)))
    await client.send(make_request())
    with suppress(Gone):
        await client.response()
    await world.until(lambda: world.engine.active == 0)
    span = only_span(world)
    assert span.status == status
    *_, one = span.tries
    received = status if how == "cut" else 0  # what the backend said, not what the client was told
    assert (one.status, one.error) == (received, error)
    assert bool(one.endpoint) == (how != "nobody")


async def lose_the_connection(world: World, limit: int, backoff: int) -> tuple[Client, int]:
    """A request that was answered 503, and whose cluster has one connection: that one serves a request that stays. Also the port."""
    backend = await world.backend()
    retry = ir.Retry(codes=(503,), attempts=1, backoff=backoff)
    rule = make_rule(retry=retry, timeouts=ir.Timeouts(request=limit))
    host = make_host(rule, ("/other", make_rule(timeouts=ir.Timeouts(request=0))))
    cluster = make_cluster(backend.port, max_connections=1, max_pending=1)
    port = await world.serve(make_fleet(traced(), host, cluster))
    client, other = await world.client(port), await world.client(port)
    await client.send(make_request())
    call = await backend.call()
    await other.send(make_request("/other"))
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    call.send(make_response(b"", 503))
    assert (await backend.call()).path == "/other"
    return client, port


async def second_has_no_endpoint(world: World, error: bytes) -> None:
    await world.until(lambda: len(spans_since(world, 0)) == 1)
    first, second = only_span(world).tries
    assert (first.status, first.error, bool(first.endpoint)) == (503, b"", True)
    assert (second.status, second.error, second.endpoint) == (0, error, b"")
    assert (first.protocol, second.protocol) == (b"HTTP/1.1", b"")
    assert world.lines()[0]["endpoint"] == first.endpoint.decode()  # that it went to last


async def test_a_try_that_waits_for_a_connection_names_no_endpoint(world: World) -> None:
    client, _ = await lose_the_connection(world, limit=0, backoff=1)
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    client.reset()
    await second_has_no_endpoint(world, b"downstream_remote_disconnect")


@apart(clock=True)
async def test_a_try_that_waits_too_long_for_a_connection_names_no_endpoint(world: World) -> None:
    await lose_the_connection(world, limit=20_000, backoff=1)
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    shift(21)
    await second_has_no_endpoint(world, b"response_timeout")


@apart(clock=True)
async def test_a_try_that_may_not_even_wait_names_no_endpoint(world: World) -> None:
    client, port = await lose_the_connection(world, limit=0, backoff=5_000)
    waiting = await world.client(port)
    await waiting.send(make_request("/other"))
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    shift(7)
    await world.turns()
    assert (await client.response()).status == 503
    await second_has_no_endpoint(world, b"overflow")


async def test_a_tunnel_that_its_client_cuts_has_no_failed_try(world: World) -> None:
    backend, client = await world.pair(None, traced())
    upgrade = [("connection", "upgrade"), ("upgrade", "websocket")]
    await client.send(make_request(headers=upgrade))
    call = await backend.call()
    call.send(b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
    assert (await client.response()).status == 101
    client.reset()
    await world.until(lambda: world.engine.active == 0)
    span = only_span(world)
    assert [(one.status, one.error) for one in span.tries] == [(101, b"")]
    assert (span.status, span.details) == (101, b"downstream_remote_disconnect")


@apart(clock=True)
async def test_a_tunnel_that_nobody_uses_has_a_failed_try(world: World) -> None:
    backend = await world.backend()
    listener = traced(stream_idle_timeout=20_000)
    client = await world.client_of(make_fleet(listener, make_cluster(backend.port)))
    upgrade = [("connection", "upgrade"), ("upgrade", "websocket")]
    await client.send(make_request(headers=upgrade))
    call = await backend.call()
    call.send(b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
    assert (await client.response()).status == 101
    shift(21)
    await world.until(lambda: world.engine.active == 0)
    assert [(one.status, one.error) for one in only_span(world).tries] == [
        (101, b"stream_idle_timeout")
    ]


async def test_a_connection_that_was_old_has_a_try_of_its_own(world: World) -> None:
    backend, client = await world.pair(say("x"), traced())
    await client.get()
    backend.answer = lambda call: call.link.close() if call.link.calls > 1 else make_response(b"y")
    assert (await client.get()).body == b"y"
    _, span = spans_since(world, 0)
    assert [(one.status, one.error) for one in span.tries] == [
        (0, b"connection_termination"),
        (200, b""),
    ]


async def test_a_client_that_leaves_during_the_pause_ends_no_try_twice(world: World) -> None:
    backend = Failing(503)
    retry = ir.Retry(codes=(503,), attempts=3, backoff=60_000)
    client = await serve(world, backend, make_rule(retry=retry))
    await client.send(make_request())
    await world.until(lambda: world.counters["retries"] == 1)
    client.close()
    await world.until(lambda: world.engine.active == 0)
    span = only_span(world)
    assert [(one.number, one.status, one.error) for one in span.tries] == [(1, 503, b"")]
    assert (span.status, span.details) == (0, b"downstream_remote_disconnect")


async def test_the_url_is_the_one_that_was_sent(world: World) -> None:
    path = ir.PathRewrite(kind="prefix", value="/new")
    rewrite = ir.Rewrite(hostname="inner.test:81", path=path)
    backend = Failing(200)
    client = await serve(world, backend, make_rule(rewrite=rewrite))
    await client.get("/old?q=%20", host="Outer.test")
    span = only_span(world)
    assert (span.target, span.authority) == (b"/old?q=%20", b"Outer.test")
    assert (span.sent_target, span.sent_host) == (b"/new/old?q=%20", b"inner.test:81")
