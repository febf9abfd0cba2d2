"""Bounds of connections to one endpoint (circuitBreaker.perEndpoint): others get what it cannot take, and when none can requests wait."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from core.backend import Backend, make_response, say
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.backend import H2Backend
from core.policy.policies import TRAFFIC
from core.upstream.workers import Workers
from core.world import World
from edgefast import ir

BALANCES = (
    None,
    ir.LoadBalancer(type="round_robin"),
    ir.LoadBalancer(type="random"),
    ir.LoadBalancer(type="hash", hash=ir.HashPolicy(headers=("x-user",))),
)


def bounded(*ports: int, protocol: str = "http1", **said: Any) -> ir.Fleet:
    """A rule with bounds, and one on /free without."""
    host = make_host(make_rule(traffic=(TRAFFIC,)), ("/free", make_rule()))
    unit = ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(**said))
    return make_fleet(make_listener(), host, make_cluster(*ports, protocol=protocol), unit)


def pending(world: World) -> int:
    return int(world.cluster(CLUSTER)["pending"])


@pytest.mark.parametrize("balance", BALANCES)
async def test_others_are_picked(world: World, balance: ir.LoadBalancer | None) -> None:
    """Whatever they are picked by; and who comes last waits, and has its turn."""
    backends = [await world.backend() for _ in range(3)]
    ports = [one.port for one in backends]
    port = await world.serve(
        bounded(*ports, max_endpoint_connections=2, max_pending=1, load_balancer=balance)
    )
    clients = [await world.client(port) for _ in range(8)]
    for client in clients[:6]:
        await client.send(make_request("/", headers=[("x-user", "me")]))
    await world.until(lambda: sum(one.count for one in backends) == 6)
    assert [len(one.links) for one in backends] == [2, 2, 2]
    await clients[6].send(make_request("/last", headers=[("x-user", "me")]))
    await world.until(lambda: pending(world) == 1)
    assert (await clients[7].get()).status == 503
    for one in backends:
        for call in await one.calls(2):
            call.reply()
    await world.until(lambda: sum(one.count for one in backends) == 7)
    for one in backends:
        one.answer = say("late")
        if one.count == 3:
            (await one.call()).reply()
    for client in clients[:7]:
        assert (await client.response()).status == 200
    assert [len(one.links) for one in backends] == [2, 2, 2]


async def test_all_workers_count(workers: Workers) -> None:
    """One endpoint has what it may have of the other worker's; the second one gets the rest."""
    first, second = await workers.backend(), await workers.backend(say("second"))
    one, two = await workers.serve_both(bounded(first.port, max_endpoint_connections=1))
    held = await workers.client(one)
    await held.send(make_request("/"))
    call = await first.call()
    both = bounded(first.port, second.port, max_endpoint_connections=1)
    for each in (workers, workers.other):
        each.apply(both)
    client = await workers.client(two)
    for _ in range(10):
        answer = await client.get()
        assert answer.body == b"second"
    assert len(first.links) == 1
    call.reply()
    assert (await held.response()).status == 200


async def test_a_worker_without_any_is_lent_one(workers: Workers) -> None:
    backend = await workers.backend(say("ok"))
    one, two = await workers.serve_both(bounded(backend.port, max_endpoint_connections=1))
    for port in (one, two, one, two):
        assert (await (await workers.client(port)).get()).status == 200
        assert len(backend.open) == 1
    assert workers.other.asked and workers.asked


async def test_what_other_rules_have_counts(world: World) -> None:
    backend = await world.backend()
    port = await world.serve(bounded(backend.port, max_endpoint_connections=1, max_pending=0))
    free, more, held = [await world.client(port) for _ in range(3)]
    await free.send(make_request("/free"))
    await more.send(make_request("/free"))
    calls = await backend.calls(2)
    assert (await held.get()).status == 503
    for call, client in zip(calls, (free, more), strict=True):
        call.reply()
        assert (await client.response()).status == 200


async def test_none_at_all(world: World) -> None:
    backend = await world.backend(say("never"))
    client = await world.client_of(bounded(backend.port, max_endpoint_connections=0))
    answer = await client.get()
    assert (answer.status, answer.body) == (503, b"this backend may have no connections\n")
    assert backend.count == 0


async def test_a_full_one_is_better_than_one_that_is_out(world: World) -> None:
    """Requests wait for it; when all are out whichever has room is taken."""
    good = await world.backend(say("good"))
    bad = await world.backend(lambda call: make_response(status=500))
    outlier = ir.OutlierDetection(server=1, percent=100)
    fleet = bounded(good.port, bad.port, max_endpoint_connections=1, outlier=outlier)
    port = await world.serve(fleet)
    first, second = await world.client(port), await world.client(port)
    while not bad.count:
        await first.get()
    good.answer = bad.answer = None
    await first.send(make_request("/"))
    call = await good.call()
    await second.send(make_request("/"))
    await world.until(lambda: pending(world) == 1)
    call.reply(status=500)  # now both are out
    assert (await first.response()).status == 500
    call = await good.call()
    await first.send(make_request("/"))
    (await bad.call()).reply()
    call.reply()
    assert (await first.response()).status == (await second.response()).status == 200


async def test_http2(world: World) -> None:
    """A connection whose streams are all in use is full; another endpoint has one."""
    backends = [H2Backend(streams=1) for _ in range(2)]
    for one in backends:
        world.keep(await one.start())
    ports = [one.port for one in backends]
    port = await world.serve(bounded(*ports, protocol="h2", max_endpoint_connections=1))
    clients = [await world.client(port) for _ in range(3)]
    for client in clients:
        await client.send(make_request("/"))
    asks = [await one.ask() for one in backends]
    await world.until(lambda: pending(world) == 1)
    assert [len(one.links) for one in backends] == [1, 1]
    asks[0].reply(b"x")
    (await backends[0].ask()).reply(b"x")
    asks[1].reply(b"x")
    for client in clients:
        assert (await client.response()).status == 200
    assert [len(one.links) for one in backends] == [1, 1]


@pytest.mark.parametrize("protocol", ["http1", "h2"])
async def test_nothing_is_exceeded_or_left(workers: Workers, protocol: str) -> None:
    """Requests come to both workers at once, and all kinds of bounds meet (World.finish looks at what is left)."""
    backends: list[Any] = []
    for _ in range(2):
        if protocol == "h2":
            one: Any = H2Backend(lambda ask: ask.reply(b"ok"), streams=1)
            workers.keep(await one.start())
        else:
            one = await workers.backend(say("ok"))
        backends.append(one)
    fleet = bounded(
        *(one.port for one in backends),
        protocol=protocol,
        max_endpoint_connections=1,
        max_connections=2,
        max_requests=4,
        max_connection_requests=3,
    )
    ports = await workers.serve_both(fleet)
    done = {200: 0, 503: 0}

    async def ask(port: int) -> None:
        client = await workers.client(port)
        for _ in range(40):
            done[(await client.get()).status] += 1
            for backend in backends:
                assert (
                    len([link for link in backend.links if not link.lost]) <= 2
                )  # one is on its way out

    await asyncio.gather(*(ask(port) for port in ports * 3))
    assert done[200]


async def test_a_retry_past_the_64th_endpoint(world: World) -> None:
    """Whoever has failed is not asked again, wherever it stands."""
    good = await world.backend(say("good"))
    refusing = world.refusing_port()
    addresses = [(f"127.0.1.{at}", refusing, 0) for at in range(1, 65)]
    addresses += [
        ("127.0.0.1", good.port, 1),
        ("127.0.2.1", refusing, 1),
        ("127.0.2.2", refusing, 1),
    ]
    endpoints = tuple(
        ir.Endpoint(address=address, port=port, weight=weight)
        for address, port, weight in addresses
    )
    fleet = bounded(
        good.port,
        load_balancer=ir.LoadBalancer(type="random"),
        outlier=ir.OutlierDetection(server=0),
    )
    cluster = msgspec.structs.replace(fleet.clusters[0], endpoints=endpoints)
    port = await world.serve(msgspec.structs.replace(fleet, clusters=(cluster,)))
    client = await world.client(port)
    for _ in range(40):
        assert (await client.get()).status == 200
        assert (await client.get(headers=[("connection", "close")])).status == 200
        client = await world.client(port)
    assert world.counters["upstream_connect_failures"] > 0


async def test_one_that_was_tried_is_better_than_none(world: World) -> None:
    """All others are full: a repeat goes to where it was, though that stands past the 64th place."""
    backend = Backend()
    world.keep(await backend.start(host="0.0.0.0"))
    fleet = bounded(
        backend.port,
        load_balancer=ir.LoadBalancer(type="round_robin"),
        max_endpoint_connections=1,
        outlier=ir.OutlierDetection(server=0),
    )
    endpoints = tuple(
        ir.Endpoint(address=f"127.0.1.{at}", port=backend.port, weight=1 if at < 65 else 0)
        for at in range(1, 66)
    )
    (host,) = fleet.virtual_hosts
    retry = ir.Retry(codes=(500,), attempts=1, backoff=1)
    rules = (msgspec.structs.replace(host.rules[0], retry=retry), *host.rules[1:])
    fleet = msgspec.structs.replace(
        fleet,
        clusters=(msgspec.structs.replace(fleet.clusters[0], endpoints=endpoints),),
        virtual_hosts=(msgspec.structs.replace(host, rules=rules),),
    )
    port = await world.serve(fleet)
    clients = [await world.client(port) for _ in range(65)]
    calls = []
    for client in clients:
        await client.send(make_request("/"))
        calls.append(await backend.call())
    calls[64].reply(status=500)
    (await backend.call()).reply(b"again")
    assert (await clients[64].response()).body == b"again"
    for call, client in zip(calls[:64], clients[:64], strict=True):
        call.reply()
        assert (await client.response()).status == 200
