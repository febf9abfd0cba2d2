"""A call of an authorisation service has a span of its own in the trace of each request that waited for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.client import make_request
from core.fleets import CLUSTER, make_cluster
from core.policy.authorized import AUTH, PASS, Guarded, fleet_of, guarded, make_auth
from core.policy.called import CALLED, called
from core.policy.checkmessages import denying, passing
from core.traces import LINE, spans_since
from core.world import World
from edgefast import ir
from edgefast.ir.policy import AuthCache


def trace(world: World, fleet: ir.Fleet, sampling: float = 1.0) -> None:
    """Apply it, with spans for its requests."""
    tracing = ir.Tracing(endpoint="http://127.0.0.1:4318", sampling=sampling)
    listener = msgspec.structs.replace(fleet.listeners[0], tracing=tracing)
    world.apply(msgspec.structs.replace(fleet, listeners=(listener,)))


async def traced(world: World, answer: Any, **settings: Any) -> Guarded:
    route = await guarded(world, answer, **settings)
    service = make_cluster(route.service.port, name=AUTH)
    trace(world, fleet_of(make_auth(**settings), route.backend.port, service))
    return route


async def test_a_call_is_a_child_of_its_request(world: World) -> None:
    route = await traced(world, None)
    client = await route.client()
    await client.send(make_request())
    call = await route.service.call()
    told = LINE.fullmatch(call.message.value(b"traceparent") or b"")
    call.send(PASS)
    assert (await client.response()).status == 200
    (span,) = spans_since(world, 0)
    (asked,) = span.asked
    assert told and told[1] == span.trace_id.hex().encode()
    assert told[2] == asked.span_id.hex().encode() != span.span_id.hex().encode()
    assert (asked.cluster, asked.grpc, asked.status, asked.decision, asked.error, asked.shared) == (
        *(AUTH.encode(), 0, 200, b"allowed", b"", 0),
    )
    assert asked.endpoint == f"127.0.0.1:{route.service.port}".encode()
    assert asked.protocol == b"HTTP/1.1"
    assert 0 <= asked.began and asked.began + asked.took <= span.tries[0].began
    assert span.cluster == CLUSTER.encode()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", (401, b"denied", b"")),
        (b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", (503, b"error", b"no_answer")),
        (b"nonsense\r\n\r\n", (0, b"error", b"no_answer")),
    ],
)
async def test_what_became_of_it(world: World, answer: bytes, said: tuple[Any, ...]) -> None:
    route = await traced(world, lambda call: answer)
    assert (await route.ask()).status in (401, 403)
    (span,) = spans_since(world, 0)
    (asked,) = span.asked
    assert (asked.status, asked.decision, asked.error) == said and span.tries == ()


async def test_a_client_that_leaves(world: World) -> None:
    route = await traced(world, None)
    client = await route.client()
    await client.send(make_request())
    await route.service.call()
    client.close()
    await world.until(lambda: world.engine.active == 0)
    (span,) = spans_since(world, 0)
    assert [(one.decision, one.error) for one in span.asked] == [(b"error", b"cancelled")]


async def test_one_call_for_many(world: World) -> None:
    route = await traced(world, None, cache=AuthCache(ttl=60_000))
    clients = [await route.client() for _ in range(3)]
    for client in clients:
        await client.send(make_request())
    (await route.service.call()).send(PASS)
    for client in clients:
        assert (await client.response()).status == 200
    spans = spans_since(world, 0)
    assert [len(one.asked) for one in spans] == [1, 1, 1]
    assert sorted(one.asked[0].shared for one in spans) == [0, 1, 1]
    assert len({one.asked[0].span_id for one in spans}) == 3
    assert (await route.ask()).status == 200  # what is known needs no call
    assert spans_since(world, len(world.spans) - 1)[-1].asked == ()


async def test_a_service_of_grpc(world: World) -> None:
    route = await called(world, passing())
    cluster = make_cluster(route.service.port, name=CALLED, protocol="h2")
    trace(world, fleet_of(make_auth(CALLED, grpc=True), route.backend.port, cluster))
    assert (await route.ask()).status == 200
    route.answer(denying(status=401))
    assert (await route.ask()).status == 401
    first, second = [one for span in spans_since(world, 0) for one in span.asked]
    told = [LINE.fullmatch((one.value("traceparent") or "").encode()) for one in route.service.asks]
    assert [one[2].decode() for one in told if one] == [first.span_id.hex(), second.span_id.hex()]
    assert (first.grpc, first.status, first.decision, first.protocol) == (
        *(1, 0, b"allowed", b"HTTP/2"),
    )
    assert (second.status, second.decision) == (0, b"denied")


async def test_what_is_not_recorded(world: World) -> None:
    route = await guarded(world, None)
    service = make_cluster(route.service.port, name=AUTH)
    trace(world, fleet_of(make_auth(), route.backend.port, service), 0.0)
    client = await route.client()
    await client.send(make_request())
    call = await route.service.call()
    assert (call.message.value(b"traceparent") or b"").endswith(b"-00")
    call.send(PASS)
    assert (await client.response()).status == 200
    assert spans_since(world, 0) == []
