"""Sessions and what becomes of their endpoints: they drain, fail, go, come again, have no connection left; on every protocol."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from h2.events import StreamEnded

from core.backend import make_response, say
from core.certificates import Site
from core.client import make_request
from core.exchange.test_grpc import DONE, grpc_head
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.backend import Ask, H2Backend
from core.h2.test_both import begin, events
from core.policy.policies import TRAFFIC
from core.policy.sessions import BY_COOKIE, BY_HEADER, NAME, get, keeping, numbered, told, write
from core.policy.test_loadbalancer import heads_of
from core.world import World
from edgefast import ir


def drained(ports: list[int], going: list[int], **settings: Any) -> ir.Cluster:
    """A cluster some of whose endpoints terminate."""
    fallback = make_cluster(*going).endpoints
    return msgspec.structs.replace(make_cluster(*ports, **settings), fallback=fallback)


def fleet_of(cluster: ir.Cluster, *units: ir.PolicyUnit, **rule: Any) -> ir.Fleet:
    unit = units or (keeping(BY_COOKIE),)
    return make_fleet(make_host(make_rule(traffic=(TRAFFIC,), **rule)), cluster, *unit)


async def test_endpoints_that_drain_keep_theirs(world: World) -> None:
    backends = await numbered(world, 4)
    ports = [one.port for one in backends]
    client = await world.client_of(fleet_of(make_cluster(*ports)))
    value = write(ports[1])
    assert (await get(client, value)).body == b"1"
    world.apply(fleet_of(drained([ports[0], *ports[2:]], [ports[1]])))
    await world.until(lambda: not backends[1].open)  # what was idle ends as with one that is gone
    for _ in range(20):
        answer = await get(client, value)
        assert (answer.body, answer.value("set-cookie")) == (b"1", None)
        assert (await get(client)).body != b"1"
    # It stays one of them when others come and go, and is one again.
    world.apply(fleet_of(drained(ports[2:], [ports[1], ports[0]])))
    assert [(await get(client, write(one))).body for one in ports] == [b"0", b"1", b"2", b"3"]
    world.apply(fleet_of(make_cluster(*ports)))
    assert {(await get(client)).body for _ in range(60)} == {b"0", b"1", b"2", b"3"}
    assert (await get(client, value)).body == b"1"
    # Gone: another one, and a new session with it.
    world.apply(fleet_of(make_cluster(ports[0], *ports[2:])))
    answer = await get(client, value)
    assert answer.body != b"1" and told(answer) == f"{write(ports[int(answer.body)])}.{value}"


async def test_the_last_ones_that_drain_serve_all(world: World) -> None:
    backends = await numbered(world, 2)
    ports = [one.port for one in backends]
    client = await world.client_of(fleet_of(drained([], ports)))
    assert {(await get(client)).body for _ in range(20)} == {b"0", b"1"}
    for at, port in enumerate(ports):
        assert (await get(client, write(port))).body == b"%d" % at


async def test_one_that_drains_and_is_gone(world: World) -> None:
    """Nothing was sent: another one answers, and the session is with that."""
    backends = await numbered(world, 1)
    going, ports = world.refusing_port(), [backends[0].port]
    client = await world.client_of(fleet_of(drained(ports, [going])))
    for _ in range(7):  # it is none that could be ejected
        answer = await get(client, write(going))
        assert (answer.status, told(answer)) == (200, write(ports[0]))
    assert world.counters["endpoint_ejections"] == 0


@pytest.mark.parametrize("size", [2, 80])
async def test_an_ejected_endpoint_has_none(world: World, size: int) -> None:
    """Whoever was its gets another one, and it is tried no more."""
    others = [one.port for one in await numbered(world, size - 1)]
    bad = world.refusing_port()
    client = await world.client_of(fleet_of(make_cluster(*others, bad)))
    while world.counters["endpoint_ejections"] == 0:
        answer = await get(client, write(bad))
        assert answer.status == 200 and told(answer) != write(bad)
    failures = world.counters["upstream_connect_failures"]
    assert failures == 5
    for _ in range(10):
        assert told(await get(client, write(bad))) != write(bad)
    assert world.counters["upstream_connect_failures"] == failures


async def test_who_fails_its_check_has_none(world: World) -> None:
    status = [200, 200]

    def answer(at: int) -> Any:
        return lambda call: make_response(
            b"%d" % at, status[at] if call.path == "/healthz" else 200
        )

    backends = [await world.backend(answer(at)) for at in range(2)]
    check = ir.HealthCheck(kind="http", path="/healthz", interval=50, unhealthy=1)
    unit = ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(session=BY_COOKIE, check=check))
    ports = [one.port for one in backends]
    cluster = make_cluster(*ports, treatments=((0, (TRAFFIC,)),))
    client = await world.client_of(fleet_of(cluster, unit))
    await world.until(lambda: world.counters["health_checks"] >= 2)
    assert (await get(client, write(ports[1]))).body == b"1"
    status[1] = 503
    await world.until(lambda: world.counters["health_checks_ill"] >= 1)
    assert told(await get(client, write(ports[1]))) == write(ports[0])
    # One that drains is asked nothing, and stays what it was found to be.
    status[1] = 200
    going = msgspec.structs.replace(
        cluster, endpoints=cluster.endpoints[:1], fallback=cluster.endpoints[1:]
    )
    world.apply(fleet_of(going, unit))
    assert told(await get(client, write(ports[1]))) == write(ports[0])
    # It is asked again when it is one of them again; well, it keeps its sessions when it drains.
    world.apply(fleet_of(cluster, unit))
    await world.until(lambda: world.cluster(CLUSTER)["endpoints"][1]["healthy"])
    assert (await get(client, write(ports[1]))).body == b"1"
    world.apply(fleet_of(going, unit))
    assert (await get(client, write(ports[1]))).body == b"1"


# --- tries --------------------------------------------------------------------------------------------------------------------------


async def test_repeats_go_elsewhere(world: World) -> None:
    backends = [
        await world.backend(lambda call, at=at: make_response(b"%d" % at, 503 if at == 0 else 200))
        for at in range(3)
    ]
    ports = [one.port for one in backends]
    rule = {"retry": ir.Retry(codes=(503,), attempts=2, backoff=1)}
    client = await world.client_of(fleet_of(make_cluster(*ports), **rule))
    for _ in range(5):
        answer = await get(client, write(ports[0]))
        assert answer.status == 200 and told(answer) == write(ports[int(answer.body)])
    assert backends[0].count == 5


async def test_a_connection_that_has_ended_is_no_sign(world: World) -> None:
    """Of its endpoint: the try is repeated there, and the session stays."""
    backends = await numbered(world, 4)
    ports = [one.port for one in backends]
    client = await world.client_of(fleet_of(make_cluster(*ports)))
    value = write(ports[2])
    assert (await get(client, value)).body == b"2"
    backends[2].answer = None
    (link,) = backends[2].open
    await client.send(make_request(headers=[("cookie", f"{NAME}={value}")]))
    await backends[2].call()
    link.close()
    call = await backends[2].call()
    call.reply(b"2")
    answer = await client.response()
    assert (answer.body, answer.value("set-cookie")) == (b"2", None)


async def test_a_failure_ends_no_session(world: World) -> None:
    """The proxy's own answers tell of none."""
    backend = await world.backend(lambda call: b"nonsense\r\n\r\n")
    client = await world.client_of(fleet_of(make_cluster(backend.port)))
    answer = await get(client)
    assert (answer.status, answer.value("set-cookie")) == (502, None)


# --- connections --------------------------------------------------------------------------------------------------------------------


async def test_no_connection_is_left(world: World) -> None:
    """One that nobody uses makes room; else the request waits until one of another endpoint is free, which ends for it."""
    backends = [await world.backend() for _ in range(2)]
    ports = [one.port for one in backends]
    client = await world.client_of(fleet_of(make_cluster(*ports, max_connections=1)))
    other = await world.client(await world.listen())

    async def ask(one: Any, at: int) -> None:
        await one.send(make_request(headers=[("cookie", f"{NAME}={write(ports[at])}")]))

    for at in (0, 1, 0):
        await ask(client, at)
        (await backends[at].call()).reply(b"%d" % at)
        assert (await client.response()).value("set-cookie") is None
    await ask(client, 0)
    call = await backends[0].call()
    await ask(other, 1)
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    call.reply(b"0")
    assert (await client.response()).body == b"0"
    (await backends[1].call()).reply(b"1")
    answer = await other.response()
    assert (answer.body, answer.value("set-cookie")) == (b"1", None)


async def test_one_that_drains_holds_no_connection(world: World) -> None:
    backends = await numbered(world, 2)
    ports = [one.port for one in backends]
    cluster = drained(ports[:1], ports[1:], max_connections=1)
    client = await world.client_of(fleet_of(cluster))
    for _ in range(5):
        assert (await get(client, write(ports[1]))).body == b"1"
        assert (await get(client)).body == b"0"


# --- protocols ----------------------------------------------------------------------------------------------------------------------


async def test_http2_both_ways(world: World) -> None:
    def answer(at: int) -> Any:
        def reply(ask: Ask) -> None:
            ask.reply(b"%d" % at)

        return reply

    backends = [H2Backend(answer(at)) for at in range(5)]
    for one in backends:
        world.keep(await one.start())
    ports = [one.port for one in backends]
    listener = make_listener(http2=ir.Http2Settings(enabled=True))
    host = make_host(make_rule(traffic=(TRAFFIC,)))
    cluster = drained(ports[:4], ports[4:], protocol="h2")
    port = await world.serve(make_fleet(listener, host, cluster, keeping(BY_COOKIE)))
    client, frames = await begin(world, port)
    ask = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "test")]
    for stream, at in zip(range(1, 41, 4), [0, 1, 2, 3, 4] * 2, strict=True):
        cookies = [("cookie", "a=b"), ("cookie", f"{NAME}={write(ports[at])}")]
        frames.send_headers(stream, [*ask, *cookies], end_stream=True)
        await client.send(frames.data_to_send())
        kept, body = heads_of(await events(client, frames, StreamEnded))
        assert (body, "set-cookie" in kept) == (b"%d" % at, False)
        frames.send_headers(stream + 2, ask, end_stream=True)
        await client.send(frames.data_to_send())
        given, body = heads_of(await events(client, frames, StreamEnded))
        assert given["set-cookie"].partition(";")[0] == f"{NAME}={write(ports[int(body)])}"
        assert body != b"4"


async def test_calls_of_grpc(world: World) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\nx-at: %d\r\ntransfer-encoding: chunked\r\n\r\n"
    backends = [await world.backend(lambda call, at=at: head % at + DONE % 0) for at in range(5)]
    ports = [one.port for one in backends]
    client = await world.client_of(fleet_of(make_cluster(*ports), keeping(BY_HEADER)))
    for at in (3, 1, 3):
        await client.send(grpc_head(headers=[("x-sid", write(ports[at]))]))
        answer = await client.response()
        assert (answer.value("x-at"), answer.value("x-sid")) == (str(at), None)
    await client.send(grpc_head())
    answer = await client.response()
    assert answer.value("x-sid") == write(ports[int(answer.value("x-at") or 9)])


async def test_over_tls_it_is_for_tls(world: World) -> None:
    site = Site("a.test")
    backend = await world.backend(say("x"))
    listener = make_listener(hostname="a.test", protocol="HTTPS")
    host = make_host(make_rule(traffic=(TRAFFIC,)))
    world.apply(make_fleet(listener, host, make_cluster(backend.port), keeping(BY_COOKIE)))
    client = await world.tls_client(await world.listen(choose=site.choose), site.client(), "a.test")
    answer = await client.get(host="a.test")
    attributes = (answer.value("set-cookie") or "").split("; ")[1:]
    assert attributes == ["Path=/", "HttpOnly", "Secure", "SameSite=Strict"]
