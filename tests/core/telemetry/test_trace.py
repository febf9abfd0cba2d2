"""Trace context: kept or started, decided once, told to the backend and to the agent, and of no cost to hostile input."""

from __future__ import annotations

from typing import Any

import pytest

from core.backend import Backend, Call, make_response, say
from core.client import Client, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.traces import GIVEN, LINE, PARENT, TRACE, spans_since, traced
from core.world import World
from edgefast import ir
from edgefast.core.cells import BUCKET_BOUNDS_MS
from edgefast.proxy.traces.span_record import SpanRecord, decode_spans


class Seen(Backend):
    """A backend that says "hello" and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.messages: list[Any] = []

    def _answer(self, call: Call) -> bytes:
        self.messages.append(call.message)
        return make_response(b"hello")


async def serve(
    world: World, listener: ir.Listener, rule: ir.Rule | None = None
) -> tuple[Seen, Client]:
    backend = await Seen().start()
    world.keep(backend)
    fleet = make_fleet(listener, rule or make_rule(), make_cluster(backend.port))
    return backend, await world.client_of(fleet)


async def ask(
    world: World, backend: Seen, client: Client, *headers: tuple[str, str]
) -> tuple[Any, list[SpanRecord]]:
    """What the backend got, and the spans that were recorded."""
    before = len(world.spans)
    await client.get("/a?b=1", host="T.test", headers=list(headers))
    return backend.messages[-1], spans_since(world, before)


async def test_a_trace_begins_here(world: World) -> None:
    backend, client = await serve(world, traced())
    message, (span,) = await ask(world, backend, client, ("User-Agent", "curl/8"))
    found = LINE.fullmatch(message.value(b"traceparent"))
    assert found
    (one,) = span.tries
    assert found[1] == span.trace_id.hex().encode() and found[2] == one.span_id.hex().encode()
    assert found[3] == b"01" and span.parent_id == b"" and span.span_id != one.span_id
    assert (span.method, span.target, span.authority, span.user_agent) == (
        b"GET",
        b"/a?b=1",
        b"T.test",
        b"curl/8",
    )
    assert (span.status, span.details, span.route, span.rule) == (
        200,
        b"via_upstream",
        b"ns/web",
        0,
    )
    assert span.cluster == CLUSTER.encode()
    assert (one.endpoint, one.number) == (f"127.0.0.1:{backend.port}".encode(), 1)
    assert one.protocol == b"HTTP/1.1"
    assert (one.status, one.error) == (200, b"")
    assert (span.sent_target, span.sent_host) == (b"/a?b=1", b"T.test")
    assert (span.client, span.peer, span.listener) == (b"127.0.0.1", b"127.0.0.1", b"ns/gw/http")
    assert (span.bytes_in, span.bytes_out, span.tls, span.port) == (0, 5, 0, 8080)
    assert (span.tls_version, span.tls_cipher, span.tls_group, span.tls_resumed) == (
        b"",
        b"",
        b"",
        0,
    )
    assert span.protocol == b"HTTP/1.1"
    assert span.request_id == message.value(b"x-request-id")
    assert 0 <= one.began <= one.began + one.took <= span.took < 60_000_000
    assert span.start > 1_700_000_000_000_000
    (line,) = world.lines()
    assert line["trace_id"] == span.trace_id.hex()
    assert world.counters["spans_recorded"] == 1


async def test_a_trace_goes_on(world: World) -> None:
    backend, client = await serve(world, traced(0.0))
    message, (span,) = await ask(
        world, backend, client, ("traceparent", GIVEN), ("tracestate", "a=1"), ("tracestate", "b=2")
    )
    found = LINE.fullmatch(message.value(b"traceparent"))
    assert (
        found and found[1] == TRACE.encode() and found[2] != PARENT.encode() and found[3] == b"01"
    )
    assert (span.trace_id.hex(), span.parent_id.hex(), span.state) == (TRACE, PARENT, b"a=1,b=2")
    assert message.values(b"tracestate") == [b"a=1", b"b=2"]
    assert len(message.values(b"traceparent")) == 1


async def test_who_decided_against_it_is_believed(world: World) -> None:
    backend, client = await serve(world, traced(1.0))
    given = f"00-{TRACE}-{PARENT}-00"
    message, spans = await ask(
        world, backend, client, ("traceparent", given), ("tracestate", "a=1")
    )
    assert message.value(b"traceparent") == given.encode()
    assert message.value(b"tracestate") == b"a=1"
    assert spans == []
    assert "trace_id" not in world.lines()[0]


async def test_what_is_not_sampled_is_told_so(world: World) -> None:
    """The decision is made once: those behind do not make their own."""
    backend, client = await serve(world, traced(0.0))
    message, spans = await ask(world, backend, client)
    found = LINE.fullmatch(message.value(b"traceparent"))
    assert found and found[3] == b"00" and spans == []


WRONG = {
    "upper case": GIVEN.upper(),
    "short": GIVEN[:-1],
    "long": GIVEN + "0",
    "more in version 0": GIVEN + "-00",
    "version ff": "ff" + GIVEN[2:],
    "no trace": f"00-{'0' * 32}-{PARENT}-01",
    "no parent": f"00-{TRACE}-{'0' * 16}-01",
    "no dash": GIVEN.replace("-", "_"),
    "bytes": "\xff" * 55,
    "empty": "",
    "letters": f"00-{'g' * 32}-{PARENT}-01",
}


@pytest.mark.parametrize("kind", WRONG)
async def test_a_traceparent_that_is_none_begins_a_new_trace(world: World, kind: str) -> None:
    backend, client = await serve(world, traced())
    message, (span,) = await ask(
        world, backend, client, ("traceparent", WRONG[kind]), ("tracestate", "a=1")
    )
    found = LINE.fullmatch(message.value(b"traceparent"))
    assert found and found[1] != TRACE.encode() and span.parent_id == b"" and span.state == b""
    assert message.values(b"tracestate") == []
    assert len(message.values(b"traceparent")) == 1


async def test_two_parents_are_none(world: World) -> None:
    backend, client = await serve(world, traced())
    message, (span,) = await ask(
        world, backend, client, ("traceparent", GIVEN), ("Traceparent", GIVEN)
    )
    assert len(message.values(b"traceparent")) == 1
    assert span.parent_id == b"" and span.trace_id.hex() != TRACE


async def test_later_versions_are_read_as_far_as_they_are_known(world: World) -> None:
    backend, client = await serve(world, traced(0.0))
    message, (span,) = await ask(
        world, backend, client, ("traceparent", f"cc-{TRACE}-{PARENT}-fb-what-ever")
    )
    found = LINE.fullmatch(message.value(b"traceparent"))
    assert (
        found
        and found[1] == TRACE.encode()
        and found[3] == b"03"
        and span.parent_id.hex() == PARENT
    )


async def test_without_tracing_headers_pass_as_any_other(world: World) -> None:
    backend, client = await serve(world, make_listener())
    for value in (GIVEN, "nonsense"):
        message, spans = await ask(
            world, backend, client, ("traceparent", value), ("tracestate", "a=1")
        )
        assert message.value(b"traceparent") == value.encode()
        assert message.value(b"tracestate") == b"a=1"
        assert spans == []
    message, _ = await ask(world, backend, client)
    assert message.value(b"traceparent") is None
    assert world.counters["spans_recorded"] == 0


async def test_a_filter_has_the_last_word(world: World) -> None:
    rule = make_rule(request_headers=ir.HeaderOps(set=(("traceparent", "mine"),)))
    backend, client = await serve(world, traced(), rule)
    message, _ = await ask(world, backend, client, ("traceparent", GIVEN))
    assert message.values(b"traceparent") == [b"mine"]


async def test_sampling(world: World) -> None:
    _, client = await world.pair(say("x"), traced(0.25))
    await client.send(make_request() * 400)
    for _ in range(400):
        await client.response()
    spans = spans_since(world, 0)
    assert 40 < len(spans) < 160  # 100, give or take seven standard deviations
    assert len({one.trace_id for one in spans}) == len({one.span_id for one in spans}) == len(spans)


@pytest.mark.parametrize(
    ("rule", "path", "row"),
    [
        (make_rule(), "/a", "ns/web\t0"),
        (make_rule(name="first"), "/a", "ns/web\tfirst"),
        (make_rule(), "/other", "-\t-"),
        (make_rule(route="ns/" + "\u00e9" * 200), "/a", "ns/" + "\u00e9" * 80 + "~"),
    ],
)
async def test_a_span_names_the_row_that_counted_it(
    world: World, rule: ir.Rule, path: str, row: str
) -> None:
    backend = await world.backend(say("x"))
    fleet = make_fleet(traced(), make_host(("/a", rule)), make_cluster(backend.port))
    client = await world.client_of(fleet)
    await client.get(path)
    (span,) = spans_since(world, 0)
    label = span.row.decode()
    assert label == row or ("~" in row and label.startswith(row) and label.endswith("\t0"))
    counted = world.counters.rows()[label]
    bucket = sum(bound * 1000 < span.took for bound in BUCKET_BOUNDS_MS)
    assert counted[f"duration_bucket_{bucket}"] == 1 and counted["duration_us"] == span.took


async def test_the_proxys_own_answers_have_no_client_span(world: World) -> None:
    rule = ir.Rule(route="ns/web", index=3, redirect=ir.Redirect(hostname="other.test"))
    client = await world.client_of(make_fleet(traced(log=ir.AccessLog(off=True)), rule))
    await client.get("/x", headers=[("traceparent", GIVEN)])
    world.engine.log_flush()
    (span,) = decode_spans(world.spans[0])
    assert (span.tries, span.status, span.details, span.rule) == (
        (),
        302,
        b"direct_response",
        3,
    )
    assert (span.parent_id.hex(), span.target, span.sent_target) == (PARENT, b"/x", b"")
    assert world.lines() == []


async def test_failures_have_their_spans(world: World) -> None:
    fleet = make_fleet(traced(), make_cluster(world.refusing_port(), world.refusing_port()))
    client = await world.client_of(fleet)
    await client.get("/" + "p" * 4000, headers=[("user-agent", "\xe9" * 4000)])
    world.engine.log_flush()
    (span,) = decode_spans(world.spans[0])
    assert (span.status, [one.error for one in span.tries]) == (503, [b"connection_failure"] * 2)
    assert (len(span.target), len(span.sent_target), len(span.user_agent)) == (2048, 2048, 512)


async def test_batches_fit_into_a_frame(world: World) -> None:
    backend, client = await serve(world, traced())
    headers = [("user-agent", "a" * 600), ("tracestate", "t" * 600), ("traceparent", GIVEN)]
    for _ in range(60):
        await client.get("/" + "p" * 3000, headers=headers)
    await world.until(
        lambda: sum(len(decode_spans(one)) for one in world.spans) == 60,
        "the timer hands over the rest",
    )
    assert len(world.spans) < 20
    assert max(map(len, world.spans)) < 32768 + 10240
    assert backend.count == 60


async def test_spans_that_nobody_takes_are_counted(world: World) -> None:
    backend, client = await serve(world, traced())
    world.takes_spans = False
    await ask(world, backend, client)
    assert (world.counters["spans_recorded"], world.counters["spans_dropped"]) == (1, 1)
