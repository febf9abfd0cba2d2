"""Bandwidth limits of responses (BackendTrafficPolicy bandwidthLimit): bytes by time, on a clock that the tests move."""

from __future__ import annotations

import pytest
from h2.events import DataReceived, StreamEnded

from core.apart import apart, shift
from core.backend import Backend, Call, make_response
from core.client import Client, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.test_both import HEAD, begin, events
from core.world import World
from edgefast import ir
from edgefast.ir.policy import PolicyUnit

TRAFFIC = "traffic/default/slow"
#: Bytes a second; large beside what a second of the test's own time adds to tokens of a step.
RATE = 10_000
#: Bytes that a slow machine may add while the clock is not moved.
SLACK = 4 * RATE


def fleet(port: int, *parts: object, **said: int) -> ir.Fleet:
    bandwidth = ir.Bandwidth(**{"amount": RATE, **said})
    unit = PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(bandwidth=bandwidth))
    return make_fleet(
        make_listener(http2=ir.Http2Settings(enabled=True)),
        make_host(make_rule(traffic=(TRAFFIC,)), ("/free", make_rule())),
        make_cluster(port),
        unit,
        *parts,
    )


async def start(world: World, **said: int) -> tuple[Backend, Client]:
    backend = await world.backend(None)
    return backend, await world.client_of(fleet(backend.port, **said))


async def drain(world: World, client: Client, before: int) -> int:
    """Read what has come by now; the bytes since `before`."""
    await world.turns(60)
    while True:
        try:
            data = client.sock.recv(1 << 20)
        except BlockingIOError:
            return client.received - before
        client.received += len(data)


@apart(clock=True)
async def test_a_response_has_the_bytes_of_its_rate(world: World) -> None:
    backend, client = await start(world)
    await client.send(make_request())
    (await backend.call()).send(make_response(b"x" * (20 * RATE)))
    got = await drain(world, client, 0)
    assert RATE <= got <= RATE + SLACK
    for _ in range(5):  # a second passes, and so do its bytes
        before = client.received
        shift(1)
        assert RATE // 2 <= await drain(world, client, before) <= RATE + SLACK
    for _ in range(30):
        shift(1)
        await drain(world, client, 0)
    assert client.received > 20 * RATE
    await world.until(lambda: world.engine.active == 0, "it has ended")


@apart(clock=True)
async def test_tokens_are_those_of_one_second(world: World) -> None:
    backend, client = await start(world)
    await client.send(make_request())
    call = await backend.call()
    call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n")
    await drain(world, client, 0)
    shift(30)  # silence saves up nothing
    call.send(b"x" * 200_000)
    assert await drain(world, client, client.received) <= RATE + SLACK


@apart(clock=True)
async def test_the_first_bytes_have_no_limit(world: World) -> None:
    backend, client = await start(world, unlimited=100_000)
    await client.send(make_request())
    (await backend.call()).send(make_response(b"x" * 300_000))
    got = 0
    for _ in range(10):  # the sockets between are smaller than that
        got = await drain(world, client, 0)
    assert 100_000 <= got <= 110_000 + SLACK


@apart(clock=True)
async def test_a_rate_below_a_byte_a_second(world: World) -> None:
    backend, client = await start(world, amount=30, period=60_000)
    await client.send(make_request())
    (await backend.call()).send(make_response(b"x" * 30))
    head = await drain(world, client, 0)
    for number in range(1, 5):
        shift(2.1)
        # A slow machine may add bytes while the clock is not moved.
        assert number <= await drain(world, client, head) <= number + 5
    for _ in range(30):
        shift(2.1)
        await drain(world, client, 0)
    await world.until(lambda: world.engine.active == 0, "it has ended")
    assert client.received == head + 29


@apart(clock=True)
async def test_the_end_and_its_trailers_wait_for_the_body(world: World) -> None:
    backend, client = await start(world)
    await client.send(make_request(headers=[("te", "trailers")]))
    body = b"%x\r\n%b\r\n0\r\nx-sum: 1\r\n\r\n" % (2 * RATE, b"y" * (2 * RATE))
    (await backend.call()).send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + body)
    await world.turns(40)
    assert world.engine.active == 1
    shift(2)
    answer = await client.response()
    assert answer.body == b"y" * (2 * RATE) and dict(answer.trailers) == {"x-sum": "1"}


async def test_other_rules_have_no_limit(world: World) -> None:
    def reply(call: Call) -> None:
        call.reply(b"x" * 500_000)

    backend = await world.backend(reply)
    client = await world.client_of(fleet(backend.port, amount=1))
    assert len((await client.get("/free")).body) == 500_000


@apart(clock=True)
async def test_a_client_that_leaves_ends_it(world: World) -> None:
    backend, client = await start(world)
    await client.send(make_request())
    (await backend.call()).send(make_response(b"x" * (3 * RATE)))
    await drain(world, client, 0)
    client.reset()
    await world.until(lambda: world.engine.active == 0)
    shift(5)
    await world.turns()


@apart(clock=True)
async def test_a_waiting_response_is_not_idle(world: World) -> None:
    backend = await world.backend(None)
    idle = PolicyUnit(name="traffic/default/idle", traffic=ir.Traffic(idle_timeout=3000))
    bandwidth = ir.Bandwidth(amount=RATE)
    unit = PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(bandwidth=bandwidth))
    host = make_host(make_rule(traffic=(TRAFFIC, idle.name)))
    client = await world.client_of(make_fleet(host, make_cluster(backend.port), unit, idle))
    await client.send(make_request())
    (await backend.call()).send(make_response(b"x" * (9 * RATE)))
    for _ in range(10):
        await drain(world, client, 0)
        shift(1)
    await world.until(lambda: world.engine.active == 0, "it has ended")
    await drain(world, client, 0)
    assert client.received > 9 * RATE


@pytest.mark.parametrize(("status", "healthy"), [("0", True), ("14", False)])
async def test_outlier_detection_sees_the_status_of_grpc(
    status: str, healthy: bool, world: World
) -> None:
    """The endpoint is judged when its response is complete, not when the client has it."""
    body = b"6\r\n\0\0\0\0\1x\r\n0\r\ngrpc-status: %b\r\n\r\n" % status.encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ntransfer-encoding: chunked\r\n"
    backends = [await world.backend(lambda call: head + b"\r\n" + body) for _ in range(2)]
    limit = ir.Traffic(bandwidth=ir.Bandwidth(amount=1), outlier=ir.OutlierDetection(server=1))
    unit = PolicyUnit(name=TRAFFIC, traffic=limit)
    host = make_host(make_rule(traffic=(TRAFFIC,)))
    cluster = make_cluster(*(one.port for one in backends))
    client = await world.client_of(make_fleet(make_listener(), host, cluster, unit))
    call = [("content-type", "application/grpc"), ("te", "trailers")]
    await client.send(make_request(method="POST", headers=call, body=b"\0\0\0\0\0"))
    await world.until(lambda: sum(one.count for one in backends) == 1)
    await world.turns(60)
    assert world.engine.active == 1
    assert all(one["healthy"] for one in world.cluster(CLUSTER)["endpoints"]) == healthy
    client.reset()
    await world.until(lambda: world.engine.active == 0)


@apart(clock=True)
async def test_a_step_longer_than_the_idle_timeout(world: World) -> None:
    backend = await world.backend(None)
    listener = make_listener(stream_idle_timeout=2000)
    bandwidth = ir.Bandwidth(amount=60, period=3_600_000)
    unit = PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(bandwidth=bandwidth))
    host = make_host(make_rule(traffic=(TRAFFIC,)))
    client = await world.client_of(make_fleet(listener, host, make_cluster(backend.port), unit))
    await client.send(make_request())
    (await backend.call()).send(make_response(b"abc"))
    await world.turns(60)
    for _ in range(130):
        shift(1)
        await world.turns()
    assert (await client.response()).body == b"abc"


@apart(clock=True)
async def test_http2(world: World) -> None:
    backend = await world.backend(None)
    client, frames = await begin(world, await world.serve(fleet(backend.port)))
    head = [(":method", "GET"), *HEAD[1:2], (":path", "/"), HEAD[3]]
    frames.send_headers(1, head, end_stream=True)
    await client.send(frames.data_to_send())
    (await backend.call()).send(make_response(b"z" * (3 * RATE)))
    first = await events(client, frames, DataReceived)
    assert sum(len(one.data) for one in first if isinstance(one, DataReceived)) <= RATE + SLACK
    assert world.engine.active == 1
    shift(3)
    rest = await events(client, frames, StreamEnded)
    data = [one.data for one in (*first, *rest) if isinstance(one, DataReceived)]
    assert b"".join(data) == b"z" * (3 * RATE)
