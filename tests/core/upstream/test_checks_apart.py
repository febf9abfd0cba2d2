"""Checks have connections, bounds and settings of their own: they take nothing from requests, and requests keep none of them back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from core.backend import Call, make_response, say
from core.certificates import Site
from core.client import make_request
from core.conftest import check
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.backend import Ask, H2Backend
from core.policy.policies import TRAFFIC
from core.upstream.test_checks import CHECK, answers, checking, failed, fleet_of, h2_backend, names
from core.upstream.workers import Workers
from core.world import World
from edgefast import ir
from edgefast.core import TlsContext

REFUSED_STREAM = 7
SITE = Site("a.test")


@pytest.fixture
def secure() -> Iterator[World]:
    """A world that trusts SITE."""

    def give(tls: ir.UpstreamTls, protocols: tuple[str, ...] = ("http/1.1",)) -> TlsContext:
        made = TlsContext(server=False, protocols=protocols)
        made.trust(SITE.bundle)
        return made

    yield from check(World(upstream_tls=give))


async def test_what_is_counted_of_requests_knows_no_check(world: World) -> None:
    """A call of gRPC that finds a backend of HTTP/1.1 fails, and leaves nothing behind."""
    backend = await world.backend(say("x"))
    check = ir.HealthCheck(kind="grpc", interval=100)
    unit = ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(check=check, max_requests=1))
    port = await world.serve(fleet_of(unit, backend.port))
    await world.until(lambda: world.counters["health_checks_failed"] >= 4)
    cluster = world.cluster(CLUSTER)
    assert cluster["requests"] == cluster["connections"] == cluster["endpoints"][0]["active"] == 0
    assert await names(world, port) == {b"x"}


async def test_more_endpoints_than_connections_may_be(world: World) -> None:
    backends = [await world.backend(answers(f"b{at}", 500)) for at in range(12)]
    await world.serve(fleet_of(checking(), *(one.port for one in backends), max_connections=2))
    await world.until(lambda: failed(world) == 12)


async def test_requests_that_have_all_connections(world: World) -> None:
    """Who answers nothing is found out all the same."""
    silent = await world.backend()
    port = await world.listen()
    world.apply(fleet_of(checking(timeout=50, unhealthy=1), silent.port, max_connections=2))
    clients = [await world.client(port) for _ in range(4)]
    for client in clients:
        await client.send(make_request("/free"))
    await world.until(lambda: failed(world) == 1)
    assert world.cluster(CLUSTER)["connections"] == 2


async def test_bounds_of_a_rule_know_no_check(workers: Workers) -> None:
    backends = [await workers.backend(answers("x")) for _ in range(3)]
    traffic = ir.Traffic(
        check=ir.HealthCheck(kind="http", path=CHECK, interval=100),
        max_connections=1,
        max_pending=0,
    )
    unit = ir.PolicyUnit(name=TRAFFIC, traffic=traffic)
    _, second = await workers.serve_both(fleet_of(unit, *(one.port for one in backends)))
    await workers.until(lambda: workers.counters["health_checks"] >= 6)
    assert await names(workers, second) == {b"x"}


async def test_settings_of_requests_are_not_those_of_checks(world: World) -> None:
    """A head that is larger than checks would take."""
    large = [(f"x-{at}", "v" * 8000) for at in range(12)]
    backend = await h2_backend(
        world, lambda ask: ask.reply(b"ok", 200, *(large if ask.value(":path") == "/" else ()))
    )
    host = make_host(make_rule(traffic=(TRAFFIC,)))
    cluster = make_cluster(backend.port, protocol="h2", treatments=((0, (TRAFFIC,)),))
    world.apply(make_fleet(make_listener(response_head=256 * 1024), host, cluster, checking()))
    await world.until(lambda: world.counters["health_checks"] >= 2)
    client = await world.client(await world.listen())
    assert (await client.get()).status == 200
    assert len(backend.links) == 2


async def test_a_new_check_begins_with_all_that_are_there(world: World) -> None:
    """Nine of ten are late with their first answer; they get requests all the same."""
    held: list[Call] = []
    counts = [0] * 10

    def make(number: int) -> Any:
        def answer(call: Call) -> bytes | None:
            if call.path != CHECK:
                counts[number] += 1
                return make_response(b"x")
            if number == 0:
                return make_response(b"ok")
            held.append(call)
            return None

        return answer

    backends = [await world.backend(make(at)) for at in range(10)]
    port = await world.serve(fleet_of(checking(timeout=30_000), *(one.port for one in backends)))
    await world.until(lambda: len(held) == 9 and world.counters["health_checks"] >= 11)
    await names(world, port, count=300)
    assert min(counts) > 0 and max(counts) < 100
    for call in held:
        call.reply(b"ok")


async def test_who_comes_later_has_to_answer_first(world: World) -> None:
    """However long it takes."""
    held: list[Call] = []

    def answer(call: Call) -> bytes | None:
        if call.path == CHECK and not held:
            held.append(call)
            return None
        return make_response(b"late")

    late, first = await world.backend(answer), await world.backend(answers("first"))
    unit = checking(timeout=30_000)
    port = await world.serve(fleet_of(unit, first.port))
    await world.until(lambda: world.counters["health_checks"] >= 1)
    world.apply(fleet_of(unit, first.port, late.port))
    await world.until(lambda: bool(held))
    assert await names(world, port) == {b"first"}
    held[0].reply(b"ok")
    await world.until(lambda: world.cluster(CLUSTER)["endpoints"][1]["healthy"])
    assert await names(world, port) == {b"first", b"late"}


async def test_who_is_well_again_starts_slowly(world: World) -> None:
    """Also where nobody had looked while it was ill."""
    status = 500
    one = await world.backend(answers("one", lambda: status))
    two = await world.backend(answers("two", lambda: 200))
    check = ir.HealthCheck(kind="http", path=CHECK, interval=20, unhealthy=1)
    balancer = ir.LoadBalancer(type="round_robin", slow_start=3_600_000)
    unit = ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(check=check, load_balancer=balancer))
    port = await world.serve(fleet_of(unit, one.port, two.port))
    await world.until(lambda: failed(world) == 1)
    asked, status = one.count, 200
    await world.until(lambda: one.count >= asked + 3)
    client = await world.client(port)
    bodies = [(await client.get()).body for _ in range(100)]
    assert bodies.count(b"one") <= 20


async def test_an_edit_keeps_what_is_known(world: World) -> None:
    silent: list[Call] = []
    ill = False

    def answer(call: Call) -> bytes | None:
        if call.path == "/other":
            silent.append(call)
            return None
        return make_response(b"bad", 500 if ill and call.path == CHECK else 200)

    bad, good = await world.backend(answer), await world.backend(answers("good"))
    port = await world.serve(fleet_of(checking(), bad.port, good.port))
    await world.until(lambda: world.counters["health_checks"] >= 2)
    ill = True
    await world.until(lambda: failed(world) == 1)
    world.apply(fleet_of(checking(path="/other", timeout=30_000), bad.port, good.port))
    await world.until(lambda: bool(silent))
    assert await names(world, port) == {b"good"}
    for call in silent:
        call.reply(b"ok")


async def test_what_says_nothing_of_an_endpoint(world: World) -> None:
    """A stream that is sent back; a kept connection that was over."""
    asked = 0

    def act(ask: Ask) -> None:
        nonlocal asked
        asked += 1
        ask.refuse(REFUSED_STREAM) if asked % 4 == 0 else ask.reply(b"ok")

    backend: H2Backend = await h2_backend(world, act)
    await world.serve(fleet_of(checking(unhealthy=1), backend.port, protocol="h2"))
    await world.until(lambda: asked >= 9)
    assert world.counters["health_checks_failed"] == 0

    def close(call: Call) -> bytes | None:
        if call.link.calls % 2 == 0:
            call.link.close()
            return None
        return make_response(b"ok")

    kept = await world.backend(close)
    world.apply(fleet_of(checking(unhealthy=1), kept.port))
    before = world.counters["health_checks"]
    await world.until(lambda: world.counters["health_checks"] >= before + 5)
    assert world.counters["health_checks_failed"] == 0


async def test_a_dump_without_any_check(workers: Workers) -> None:
    """When the policy goes, its records and its verdicts do."""
    bad = await workers.backend(answers("bad", 500))
    good = await workers.backend(answers("good"))
    plain = make_fleet(make_listener(), make_host(make_rule()), make_cluster(bad.port, good.port))
    first, _ = await workers.serve_both(plain)
    await names(workers, first, count=4)
    before = workers.used()
    for interval in range(100, 106):
        fleet = fleet_of(checking(interval=interval), bad.port, good.port)
        workers.apply(fleet)
        workers.other.apply(fleet)
        await workers.until(
            lambda: (
                [one["healthy"] for one in workers.cluster(CLUSTER)["endpoints"]] == [False, True]
            )
        )
        assert await names(workers, first) == {b"good"}
    workers.apply(plain)
    workers.other.apply(plain)
    assert [one["healthy"] for one in workers.cluster(CLUSTER)["endpoints"]] == [True, True]
    assert workers.used() == before


async def test_mirrors_know_no_check(world: World) -> None:
    """A copy goes past an endpoint that is ejected."""
    main = await world.backend(answers("main"))
    copied, dead = await world.backend(say("x")), world.refusing_port()
    copy = "service/ns/copy/80"
    rule = make_rule(traffic=(TRAFFIC,), mirrors=(ir.Mirror(cluster=copy),))
    world.apply(
        make_fleet(
            make_listener(),
            make_host(rule),
            make_cluster(main.port, treatments=((0, (TRAFFIC,)),)),
            make_cluster(dead, copied.port, name=copy),
            checking(),
        )
    )
    port = await world.listen()
    client = await world.client(port)
    while not world.counters["endpoint_ejections"]:
        await client.get()
    before = world.counters["upstream_connect_failures"]
    for _ in range(40):
        await client.get()
    assert world.counters["upstream_connect_failures"] - before <= 1


@pytest.mark.parametrize(
    ("count", "made"), [(ir.CHECKS_MOST, ir.CHECKS_MOST), (ir.CHECKS_MOST + 1, ir.CHECKS_MOST)]
)
async def test_many_checks_of_one_backend(
    world: World, caplog: pytest.LogCaptureFixture, count: int, made: int
) -> None:
    """The first ones are made, what there is no room for is not, and said."""
    seen: set[str] = set()

    def answer(call: Call) -> bytes:
        seen.add(call.path)
        return make_response(b"ok")

    backend = await world.backend(answer)
    units = [
        ir.PolicyUnit(
            name=f"{TRAFFIC}{at}",
            traffic=ir.Traffic(check=ir.HealthCheck(kind="http", path=f"/check{at}", interval=100)),
        )
        for at in range(count)
    ]
    host = make_host(
        *((f"/r{at}", make_rule(traffic=(unit.name,))) for at, unit in enumerate(units))
    )
    cluster = make_cluster(backend.port, treatments=tuple((0, (unit.name,)) for unit in units))
    port = await world.serve(make_fleet(make_listener(), host, cluster, *units))
    await world.until(lambda: world.counters["health_checks"] >= 3 * made)
    client = await world.client(port)
    assert all([(await client.get(f"/r{at}")).status == 200 for at in range(count)])
    assert {one for one in seen if one.startswith("/check")} == {
        f"/check{at}" for at in range(made)
    }
    assert ("health checks (" in caplog.text) == (count > made)


@pytest.mark.parametrize("kind", ["http", "tcp"])
async def test_certificates_are_verified(secure: World, kind: str) -> None:
    backend = await secure.backend(say("x"), SITE.server())
    path = "/" if kind == "http" else ""
    wrong, right = ir.UpstreamTls(sni="c.test"), ir.UpstreamTls(sni="a.test")
    await secure.serve(fleet_of(checking(kind=kind, path=path), backend.port, tls=wrong))
    await secure.until(lambda: failed(secure) == 1)
    secure.apply(fleet_of(checking(kind=kind, path=path), backend.port, tls=right))
    assert not secure.cluster(CLUSTER)["endpoints"][0][
        "healthy"
    ]  # it stays what it was found to be
    await secure.until(lambda: secure.cluster(CLUSTER)["endpoints"][0]["healthy"])


async def test_many_are_asked_a_few_at_a_time(world: World) -> None:
    """However many there are: others wait for their turn, and all of them have it."""
    asked: set[str] = set()
    now = most = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        asked.add(writer.get_extra_info("sockname")[0])
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            now -= 1
            writer.close()

    count = 1500
    server = await asyncio.start_server(serve, "0.0.0.0", 0, backlog=count)
    port = server.sockets[0].getsockname()[1]
    endpoints = tuple(
        ir.Endpoint(address=f"127.1.{at // 250}.{at % 250 + 1}", port=port) for at in range(count)
    )
    cluster = ir.Cluster(name=CLUSTER, endpoints=endpoints, treatments=((0, (TRAFFIC,)),))
    host = make_host(make_rule(traffic=(TRAFFIC,)))
    world.apply(make_fleet(make_listener(), host, cluster, checking(interval=60_000)))
    await world.until(lambda: len(asked) == count)
    assert most < 600  # 256 are asked, and those that are closing
    world.apply(make_fleet(make_listener(), make_host(make_rule()), make_cluster()))
    server.close()
