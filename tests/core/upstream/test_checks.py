"""Endpoints that are asked how they are: what is asked, what counts, who gets requests then, and that one worker asks for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.backend import Call, make_response, say
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.backend import Ask, H2Backend
from core.policy.called import HEAD, OK
from core.policy.checkmessages import frame
from core.policy.policies import TRAFFIC
from core.upstream.workers import Workers
from core.world import World
from edgefast import ir

CHECK = "/healthz"
OTHER = "service/ns/other/80"


def checking(**parts: Any) -> ir.PolicyUnit:
    said = {"kind": "http", "path": CHECK, "interval": 100, "timeout": 2000, **parts}
    return ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(check=ir.HealthCheck(**said)))


def fleet_of(unit: ir.PolicyUnit, *ports: int, **cluster: Any) -> ir.Fleet:
    """A rule that has a check, and one on /free that has none."""
    host = make_host(make_rule(traffic=(TRAFFIC,)), ("/free", make_rule()))
    treated = make_cluster(*ports, treatments=((0, (TRAFFIC,)),), **cluster)
    return make_fleet(make_listener(), host, treated, unit)


def answers(name: str, status: int | Callable[[], int] = 200) -> Callable[[Call], bytes]:
    """A backend that answers requests with its name, and checks with a status."""

    def answer(call: Call) -> bytes:
        if call.path == CHECK:
            return make_response(b"ok", status if isinstance(status, int) else status())
        return make_response(name.encode())

    return answer


async def names(world: World, port: int, path: str = "/", count: int = 30) -> set[bytes]:
    client = await world.client(port)
    return {(await client.get(path)).body for _ in range(count)}


def failed(world: World) -> int:
    return int(world.counters["health_checks_ill"])


async def test_who_fails_gets_no_requests_until_it_is_well(world: World) -> None:
    status = 200
    one = await world.backend(answers("one", lambda: status))
    two = await world.backend(answers("two"))
    port = await world.serve(fleet_of(checking(), one.port, two.port))
    await world.until(lambda: world.counters["health_checks"] >= 2)
    await world.settle()
    assert await names(world, port) == {b"one", b"two"}
    status = 500
    await world.until(lambda: failed(world) == 1)
    assert await names(world, port) == {b"two"}
    assert await names(world, port, "/free") == {b"one", b"two"}  # whose policies have no check
    status = 200
    before = world.counters["health_checks"]
    await world.until(lambda: world.counters["health_checks"] >= before + 4)
    assert await names(world, port) == {b"one", b"two"}


@pytest.mark.parametrize(
    ("method", "body"), [("POST", b"are you?"), ("PUT", b"\0\xff"), ("POST", b"")]
)
async def test_a_check_with_a_body(world: World, method: str, body: bytes) -> None:
    asked: list[Call] = []

    def answer(call: Call) -> bytes:
        asked.append(call)
        return make_response()

    backend = await world.backend(answer)
    await world.serve(fleet_of(checking(method=method, sends=body), backend.port))
    await world.until(lambda: len(asked) >= 2)
    for call in asked:
        assert (call.message.method.decode(), call.message.body) == (method, body)
    assert failed(world) == 0
    assert len(backend.links) == 1


@pytest.mark.parametrize(
    ("parts", "status", "many"),
    [
        ({"unhealthy": 3}, 500, 1),  # another status than is known is enough by itself
        ({"unhealthy": 3, "counted": (503,)}, 503, 3),
        ({"statuses": (200, 204)}, 204, 0),
        ({"expects": b"ok"}, 200, 0),
    ],
)
async def test_what_counts(world: World, parts: dict[str, Any], status: int, many: int) -> None:
    asked = 0
    now = 200

    def answer(call: Call) -> bytes:
        nonlocal asked
        asked += now != 200
        return make_response(b"ok", now)

    backend = await world.backend(answer)
    await world.serve(fleet_of(checking(**parts), backend.port))
    await world.until(lambda: world.counters["health_checks"] >= 2)
    now = status
    if many:
        await world.until(lambda: failed(world) == 1)
        assert asked == many
    else:
        before = world.counters["health_checks"]
        await world.until(lambda: world.counters["health_checks"] >= before + 4)
        assert failed(world) == 0


async def test_a_body_that_is_not_as_expected(world: World) -> None:
    backend = await world.backend(answers("one"))
    await world.serve(fleet_of(checking(expects=b"never"), backend.port))
    await world.until(lambda: failed(world) == 1)
    assert backend.count == 1  # the first one says it all


async def test_nobody_there(world: World) -> None:
    good = await world.backend(say("good"))
    port = await world.serve(
        fleet_of(checking(path="/", unhealthy=1), world.refusing_port(), good.port)
    )
    await world.until(lambda: failed(world) == 1)
    assert await names(world, port) == {b"good"}
    assert world.cluster(CLUSTER)["endpoints"][0]["failures"] == 0  # nobody is ejected for it


async def test_one_that_does_not_answer_in_time(world: World) -> None:
    silent, good = await world.backend(), await world.backend(say("good"))
    unit = checking(path="/", timeout=60, unhealthy=1)
    port = await world.serve(fleet_of(unit, silent.port, good.port))
    await world.until(lambda: failed(world) == 1)
    assert await names(world, port) == {b"good"}
    world.apply(fleet_of(checking(path="/other", interval=3_600_000), good.port))


async def test_all_that_are_ill_are_used(world: World) -> None:
    backends = [await world.backend(answers(f"b{at}", 500)) for at in range(3)]
    port = await world.serve(fleet_of(checking(), *(one.port for one in backends)))
    await world.until(lambda: failed(world) == 3)
    assert await names(world, port) == {b"b0", b"b1", b"b2"}


async def test_a_threshold_of_panic(world: World) -> None:
    backends = [await world.backend(answers(f"b{at}", 200 if at else 500)) for at in range(4)]
    for panic, met in ((80, 4), (75, 3)):
        check = ir.HealthCheck(kind="http", path=CHECK, interval=100)
        unit = ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(check=check, panic=panic))
        world.apply(fleet_of(unit, *(one.port for one in backends)))
        port = await world.listen()
        await world.until(lambda: failed(world) >= 1)
        await world.until(lambda: world.counters["health_checks"] >= 8)
        assert len(await names(world, port, count=60)) == met


async def test_a_connection_is_a_check(world: World) -> None:
    good = await world.backend(say("good"))
    unit = checking(
        kind="tcp", path="", sends=b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", expects=b"good"
    )
    port = await world.serve(fleet_of(unit, world.refusing_port(), good.port))
    await world.until(lambda: failed(world) == 1)
    await world.until(lambda: world.counters["health_checks"] >= 4)
    assert await names(world, port) == {b"good"}


async def test_another_port_is_asked(world: World) -> None:
    asked = await world.backend(answers("asked", 500))
    good = await world.backend(say("serves"))
    port = await world.serve(fleet_of(checking(port=asked.port), good.port))
    await world.until(lambda: failed(world) == 1)
    assert await names(world, port) == {b"serves"}
    assert asked.count


async def test_one_worker_asks_for_all(workers: Workers) -> None:
    status = 200
    one = await workers.backend(answers("one", lambda: status))
    two = await workers.backend(answers("two"))
    first, second = await workers.serve_both(fleet_of(checking(), one.port, two.port))
    await workers.until(lambda: workers.counters["health_checks"] >= 4)
    assert workers.other.counters["health_checks"] == 0
    status = 500
    await workers.until(lambda: failed(workers) == 1)
    assert await names(workers, first) == await names(workers, second) == {b"two"}


async def test_another_worker_goes_on(workers: Workers) -> None:
    backend = await workers.backend(answers("one"))
    await workers.serve_both(fleet_of(checking(), backend.port))
    await workers.until(lambda: workers.counters["health_checks"] >= 2)
    workers.engine.close(0)
    await workers.until(lambda: workers.other.counters["health_checks"] >= 2)


async def test_nobody_is_asked_when_nobody_wants_to_know(world: World) -> None:
    """For as long as another one, of a cluster that still has the check, is asked several times."""
    gone, stays = await world.backend(answers("gone")), await world.backend(answers("stays"))
    other = make_cluster(stays.port, name=OTHER, treatments=((0, (TRAFFIC,)),))
    treated = make_cluster(gone.port, treatments=((0, (TRAFFIC,)),))
    host = make_host(make_rule(traffic=(TRAFFIC,)), ("/other", make_rule(OTHER)))
    world.apply(make_fleet(make_listener(), host, treated, other, checking()))
    await world.until(lambda: gone.count >= 2 and stays.count >= 2)
    world.apply(make_fleet(make_listener(), host, make_cluster(gone.port), other, checking()))
    after = stays.count
    await world.until(lambda: stays.count >= after + 2)  # what was under way has ended
    before, after = gone.count, stays.count
    await world.until(lambda: stays.count >= after + 4)
    assert gone.count == before


async def test_a_check_that_comes_and_goes_is_an_edit_of_its_policy(world: World) -> None:
    """The cluster is the same one all the time, and names the policy without a check as well."""
    ill, well = await world.backend(answers("ill", 500)), await world.backend(answers("well"))
    without = ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(max_requests=50))
    port = await world.serve(fleet_of(without, ill.port, well.port))
    assert await names(world, port) == {b"ill", b"well"}
    assert world.counters["health_checks"] == 0
    world.apply(fleet_of(checking(), ill.port, well.port))
    await world.until(lambda: failed(world) == 1)
    assert await names(world, port) == {b"well"}
    world.apply(fleet_of(without, ill.port, well.port))
    assert await names(world, port) == {b"ill", b"well"}


async def h2_backend(world: World, act: Callable[[Ask], None]) -> H2Backend:
    backend = await H2Backend().start()
    backend.answer = act
    world.keep(backend)
    return backend


SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"


@pytest.mark.parametrize(
    ("message", "trailers", "well"),
    [
        (frame(SERVING), OK, True),
        (frame(NOT_SERVING), OK, False),
        (frame(SERVING), (("grpc-status", "5"),), False),
        (frame(SERVING), (("x-other", "1"),), False),
        (b"\1" + frame(SERVING)[1:], OK, False),  # compressed
        (frame(SERVING)[:-1], OK, False),  # not whole
        (b"", OK, False),
        (frame(b"\x0a\x01"), OK, False),  # no message
    ],
)
async def test_calls_of_grpc(
    world: World, message: bytes, trailers: tuple[tuple[str, str], ...], well: bool
) -> None:
    def act(ask: Ask) -> None:
        ask.head(200, *HEAD)
        ask.data(message)
        ask.trail(*trailers)

    backend = await h2_backend(world, act)
    unit = checking(kind="grpc", path="", service="a.B")
    await world.serve(fleet_of(unit, backend.port, protocol="h2"))
    await world.until(lambda: len(backend.asks) >= 2)
    await world.until(lambda: failed(world) == (0 if well else 1))
    ask = backend.asks[0]
    assert ask.value(":path") == "/grpc.health.v1.Health/Check"
    assert ask.value("content-type") == "application/grpc"
    assert ask.body == frame(b"\x0a\x03a.B")
    assert (world.counters["health_checks_failed"] == 0) == well


@pytest.mark.parametrize(
    ("parts", "status", "why"),
    [
        ({}, 500, "it answered 500"),
        ({"expects": b"other"}, 200, "its answer does not match the expected one"),
        ({"kind": "grpc"}, 200, "it uses HTTP/1.1, but a gRPC health check needs HTTP/2"),
        (
            {"kind": "tcp", "sends": b"x", "expects": b"y", "timeout": 100},
            200,
            "the expected answer did not arrive within 100 ms",
        ),
        ({}, 0, "no connection"),
    ],
)
async def test_the_log_says_why(
    world: World, caplog: pytest.LogCaptureFixture, parts: dict[str, Any], status: int, why: str
) -> None:
    if status:
        port = (await world.backend(answers("one", lambda: status))).port
    else:
        port = world.refusing_port()
    await world.serve(fleet_of(checking(**parts), port))
    await world.until(lambda: failed(world) == 1)
    (said,) = [one for one in caplog.messages if "health check" in one]
    assert said.startswith(f"127.0.0.1:{port} of {CLUSTER} fails its health check ({why}")


async def test_requests_over_http2(world: World) -> None:
    backend = await h2_backend(world, lambda ask: ask.reply(b"ok"))
    await world.serve(fleet_of(checking(expects=b"ok"), backend.port, protocol="h2"))
    await world.until(lambda: len(backend.asks) >= 3)
    assert len(backend.links) == 1 and failed(world) == 0
    assert backend.asks[0].value(":path") == CHECK
