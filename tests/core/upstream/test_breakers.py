"""Circuit breakers: bounds that hold for all workers together, whatever rules their requests are of."""

from __future__ import annotations

import asyncio

from core.backend import Backend, Call, say
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.policies import TRAFFIC, traffic
from core.upstream.workers import Workers
from core.world import World
from edgefast import ir

BUSY = b"too many requests are on their way to this backend\n"


def bounded(backend: Backend, *, retry: ir.Retry | None = None, **bounds: int) -> ir.Fleet:
    """A rule with a breaker, and one on /free without."""
    host = make_host(make_rule(traffic=(TRAFFIC,), retry=retry), ("/free", make_rule()))
    return make_fleet(make_listener(), host, make_cluster(backend.port), traffic(**bounds))


def pending(world: World) -> int:
    return sum(one["pending"] for one in world.engine.dump()["clusters"])


async def test_requests_are_counted_in_all_workers(workers: Workers) -> None:
    backend = await workers.backend()
    one, two = await workers.serve_both(bounded(backend, max_requests=3))
    clients = [await workers.client(port) for port in (one, two, one, two, two)]
    calls = []
    for client in clients[:3]:
        await client.send(make_request("/"))
        calls.append(await backend.call())
    for client in clients[3:]:
        answer = await client.get()
        assert (answer.status, answer.body) == (503, BUSY)
    assert [line["flags"] for line in workers.other.lines()] == ["UO", "UO"]
    calls[0].reply()
    assert (await clients[0].response()).status == 200
    await clients[4].send(make_request("/"))
    calls.append(await backend.call())
    for call in calls[1:]:
        call.reply()
    for client in (clients[1], clients[2], clients[4]):
        assert (await client.response()).status == 200


async def test_what_other_rules_have_counts(workers: Workers) -> None:
    backend = await workers.backend()
    one, two = await workers.serve_both(bounded(backend, max_requests=1))
    free, held = await workers.client(two), await workers.client(one)
    await free.send(make_request("/free"))
    call = await backend.call()
    assert (await held.get()).status == 503
    second = await workers.client(two)
    await second.send(make_request("/free"))  # which has no bound
    (await backend.call()).reply()
    call.reply()
    assert (await free.response()).status == (await second.response()).status == 200
    await held.send(make_request("/"))
    (await backend.call()).reply()
    assert (await held.response()).status == 200


async def test_none_at_all(world: World) -> None:
    backend = await world.backend(say("never"))
    client = await world.client_of(bounded(backend, max_requests=0))
    assert (await client.get()).status == 503
    assert backend.count == 0


async def test_those_who_wait_are_counted_in_all_workers(workers: Workers) -> None:
    backend = await workers.backend()
    fleet = bounded(backend, max_connections=1, max_pending=2)
    one, two = await workers.serve_both(fleet)
    clients = [await workers.client(port) for port in (one, one, two, one, two)]
    await clients[0].send(make_request("/0"))
    first = await backend.call()
    for number, client in enumerate(clients[1:3], 1):
        await client.send(make_request(f"/{number}"))
    await workers.until(lambda: pending(workers) == pending(workers.other) == 1)
    for client in clients[3:]:
        assert (await client.get()).status == 503
    first.reply()
    assert (await clients[0].response()).status == 200
    for _ in range(2):
        call = await backend.call()
        assert len([link for link in backend.links if not link.lost]) == 1
        call.reply()
    assert (await clients[1].response()).status == (await clients[2].response()).status == 200


async def test_connections_move_to_the_worker_that_waits(workers: Workers) -> None:
    """One has all of them, idle; the other one gets them, one at a time, and never are there more."""
    backend = await workers.backend()
    one, two = await workers.serve_both(bounded(backend, max_connections=2))
    first = [await workers.client(one) for _ in range(2)]
    for client in first:
        await client.send(make_request("/"))
    for _ in range(2):
        (await backend.call()).reply()
    for client in first:
        assert (await client.response()).status == 200
    await workers.until(lambda: workers.cluster(CLUSTER)["endpoints"][0]["idle"] == 2)
    for _ in range(3):
        client = await workers.client(two)
        await client.send(make_request("/"))
        (await backend.call()).reply()
        assert (await client.response()).status == 200
        assert len([link for link in backend.links if not link.lost]) <= 2
    assert workers.other.asked


async def test_a_busy_worker_lends_what_is_free_next(workers: Workers) -> None:
    backend = await workers.backend(say("ok"))
    one, two = await workers.serve_both(bounded(backend, max_connections=1))
    done = False

    async def keep_busy() -> int:
        client, count = await workers.client(one), 0
        while not done:
            assert (await client.get()).status == 200
            count += 1
        return count

    busy = [asyncio.create_task(keep_busy()) for _ in range(3)]
    await workers.until(lambda: backend.count > 20)
    other = await workers.client(two)
    for _ in range(5):
        assert (await other.get()).status == 200
    done = True
    assert all([await task for task in busy])


async def test_repeats_are_counted_in_all_workers(workers: Workers) -> None:
    """One repeat at a time: who comes second is answered with what its first try got."""
    backend = await workers.backend()
    retry = ir.Retry(codes=(500,), attempts=1, backoff=1)
    one, two = await workers.serve_both(bounded(backend, retry=retry, max_retries=1))
    first, second = await workers.client(one), await workers.client(two)

    async def fail() -> Call:
        call = await backend.call()
        call.send(b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n")
        return call

    await first.send(make_request("/"))
    await fail()
    again = await backend.call()  # the repeat, which is held
    await second.send(make_request("/"))
    await fail()
    assert (await second.response()).status == 500
    again.reply()
    assert (await first.response()).status == 200
    await second.send(make_request("/"))
    await fail()
    (await backend.call()).reply()
    assert (await second.response()).status == 200
    assert workers.other.counters["retries_over_budget"] == 1


async def test_a_budget_is_a_part_of_all_requests(workers: Workers) -> None:
    backend = await workers.backend()
    budget = ir.RetryBudget(numerator=50, least=0)
    unit = ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(retry_budget=budget))
    retry = ir.Retry(codes=(500,), attempts=1, backoff=1)
    fleet = make_fleet(
        make_listener(),
        make_host(make_rule(traffic=(TRAFFIC,), retry=retry)),
        make_cluster(backend.port),
        unit,
    )
    one, two = await workers.serve_both(fleet)
    alone = await workers.client(one)
    await alone.send(make_request("/"))
    (await backend.call()).send(b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n")
    assert (await alone.response()).status == 500  # half of one is none
    held = [await workers.client(two) for _ in range(2)]
    calls = []
    for client in held:
        await client.send(make_request("/held"))
        calls.append(await backend.call())
    await alone.send(make_request("/"))
    (await backend.call()).send(b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n")
    (await backend.call()).reply()
    assert (await alone.response()).status == 200
    for client, call in zip(held, calls, strict=True):
        call.reply()
        assert (await client.response()).status == 200


async def test_nothing_is_left_when_a_cluster_goes(workers: Workers) -> None:
    backend = await workers.backend(say("ok"))
    one, two = await workers.serve_both(bounded(backend, max_requests=1))
    for port in (one, two):
        assert (await (await workers.client(port)).get()).status == 200
    assert workers.used() == 2
    for each in (workers, workers.other):
        each.apply(make_fleet(make_listener(), make_host(make_rule(status=404))))
    await workers.until(lambda: workers.used() == 0)


def two_bounds(backend: Backend, **bounds: dict[str, int]) -> ir.Fleet:
    """A rule for each name, on /name, with those bounds."""
    units = [traffic(f"traffic/ns/{name}", **said) for name, said in bounds.items()]
    rules = [(f"/{name}", make_rule(traffic=(f"traffic/ns/{name}",))) for name in bounds]
    return make_fleet(make_listener(), make_host(*rules), make_cluster(backend.port), *units)


async def test_nobody_gives_way_to_who_cannot_stay(world: World) -> None:
    """A rule with a small bound sends none away that others' bounds let wait."""
    backend = await world.backend()
    small, large = {"max_connections": 1, "max_pending": 1}, {"max_connections": 1}
    port = await world.serve(two_bounds(backend, small=small, large=large))
    clients = [await world.client(port) for _ in range(5)]
    await clients[0].send(make_request("/large"))
    calls = [await backend.call()]
    for client in clients[1:4]:
        await client.send(make_request("/large"))
    await world.until(lambda: pending(world) == 3)
    assert (await clients[4].get("/small")).status == 503
    assert pending(world) == 3
    for at, client in enumerate(clients[:4]):
        calls[at].reply()
        assert (await client.response()).status == 200
        if at < 3:
            calls.append(await backend.call())


async def test_who_may_connect_does_not_wait_behind_who_may_not(world: World) -> None:
    backend = await world.backend()
    fleet = two_bounds(backend, one={"max_connections": 1}, three={"max_connections": 3})
    port = await world.serve(fleet)
    held = [await world.client(port) for _ in range(3)]
    calls = []
    for client in held:
        await client.send(make_request("/three"))
        calls.append(await backend.call())
    first, second = await world.client(port), await world.client(port)
    await first.send(make_request("/one"))
    await world.until(lambda: pending(world) == 1)
    await second.send(make_request("/three"))
    await world.until(lambda: pending(world) == 2)
    for call, client in zip(calls[:2], held[:2], strict=True):  # these connections are no more
        call.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        call.link.close()
        assert (await client.response()).status == 200
    call = await backend.call()
    assert call.path == "/three"
    call.reply()
    assert (await second.response()).status == 200
    calls[2].reply()
    assert (await held[2].response()).status == 200
    (await backend.call()).reply()
    assert (await first.response()).status == 200


async def test_counts_are_even_when_bounds_meet(workers: Workers) -> None:
    """Connections and requests bounded at once, in both workers at once: nothing is left of them (World.finish looks)."""
    backend = await workers.backend(say("ok"))
    one, two = await workers.serve_both(
        bounded(backend, max_connections=2, max_requests=3, max_pending=2)
    )
    done = {200: 0, 503: 0}

    async def ask(port: int) -> None:
        client = await workers.client(port)
        for _ in range(60):
            done[(await client.get()).status] += 1

    await asyncio.gather(*(ask(port) for port in (one, two) * 4))
    assert done[200] and done[503]
