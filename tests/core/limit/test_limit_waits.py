"""Rate limits in the engine: what becomes of requests that wait for the counters' store, and of a store that does not answer."""

from __future__ import annotations

from typing import Any

import pytest

from core.apart import apart, shift
from core.backend import Call
from core.client import Client, Response, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_rule
from core.limit_store import HeldStore
from core.limited import KEY, hold, limit, serve, statuses
from core.world import World
from edgefast import ir
from rate_limit.answers import pack_answer


async def ask_many(world: World, port: int, count: int, *headers: tuple[str, str]) -> list[Client]:
    clients = [await world.client(port) for _ in range(count)]
    for client in clients:
        await client.send(make_request(headers=headers))
    return clients


async def held_world(world: World, *limits: ir.RateLimit, **settings: Any) -> tuple[HeldStore, int]:
    store = hold(world, **settings)
    backend = await world.backend(lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    rule = make_rule(rate_limits=limits, timeouts=ir.Timeouts(request=0))
    return store, await world.serve(make_fleet(rule, make_cluster(backend.port)))


def under_way(store: HeldStore) -> int:
    return sum(check.n for checks in store.batches for check in checks)


async def test_while_few_wait_the_next_batch_follows_at_once(world: World) -> None:
    store, port = await held_world(world, limit(1))
    first = await ask_many(world, port, 1)
    await world.until(lambda: store.batches)
    second = await ask_many(world, port, 1)
    await world.until(lambda: len(store.batches) == 2)
    store.answer()
    assert (await first[0].response()).status == 200
    store.answer()
    assert (await second[0].response()).status == 429
    assert world.counters["limit_batches"] == 2
    assert world.counters["limit_store_us"] > 0


async def test_while_many_wait_the_next_batch_grows_and_equal_keys_are_one_check(
    world: World,
) -> None:
    store, port = await held_world(world, limit(6))
    first = await ask_many(world, port, 4)
    await world.until(lambda: under_way(store) == 4)
    rest = await ask_many(world, port, 5)
    await world.until(lambda: world.engine.active == 9)
    await world.turns()
    assert under_way(store) == 4
    before = len(store.batches)
    for _ in range(before):
        store.answer()
    await world.until(lambda: store.batches)
    (check,) = store.batches[0]
    assert (check.n, check.limit, check.unit, check.sliding) == (5, 6, 3600, False)
    store.answer()
    assert [(await client.response()).status for client in first + rest] == [200] * 6 + [429] * 3
    assert world.counters["limit_batches"] == before + 1


@apart(clock=True)
async def test_the_one_that_waits_longest_has_the_deadline(world: World) -> None:
    store, port = await held_world(world, limit(9), timeout=10_000)
    (first,) = await ask_many(world, port, 1)
    await world.until(lambda: store.batches)
    shift(6)
    (second,) = await ask_many(world, port, 1)
    await world.until(lambda: len(store.batches) == 2)
    store.answer()
    assert (await first.response()).status == 200
    shift(6)  # that one's time would be over, the other one's is not
    await world.turns()
    assert not store.expired and world.engine.active == 1
    shift(6)
    assert (await second.response()).status == 200  # passes, by policy
    assert len(store.expired) == 1
    assert [line["flags"] for line in world.lines()] == ["", "RLSE"]


@apart(clock=True)
async def test_a_late_answer_costs_those_who_wait_for_it(world: World) -> None:
    """The others go on waiting on the same connection, and are counted."""
    users = limit(9, distinct_headers=("x-user",))
    store, port = await held_world(world, users, timeout=10_000, fail_closed=True)
    first = await ask_many(world, port, 2, ("x-user", "early"))
    await world.until(lambda: under_way(store) == 2)
    shift(6)
    later = await ask_many(world, port, 3, ("x-user", "later"))
    await world.until(lambda: under_way(store) == 5)
    shift(5)
    assert [(await client.response()).status for client in first] == [500, 500]
    assert world.engine.active == 3
    assert sum(check.n for checks in store.expired for check in checks) == 2
    while store.batches:
        store.answer()
    assert [(await client.response()).status for client in later] == [200] * 3
    assert world.counters["limit_store_errors"] == 0
    assert world.counters.limit("ns/limits#0")["error"] == 2


@apart(clock=True)
async def test_a_slow_store_is_asked_before_it_has_answered(world: World) -> None:
    """Who comes while many wait is asked for after a part of the store's time: the store has the rest of it."""
    store, port = await held_world(world, limit(99), timeout=1_600)
    await ask_many(world, port, 4)
    await world.until(lambda: under_way(store) == 4)
    await ask_many(world, port, 1)
    await world.until(lambda: world.engine.active == 5)
    await world.turns()
    assert under_way(store) == 4
    shift(0.11)
    await world.until(lambda: under_way(store) == 5)


async def test_spent_counters_are_not_asked_for(world: World) -> None:
    store, port = await held_world(world, limit(1))
    (client,) = await ask_many(world, port, 1)
    await world.until(lambda: store.batches)
    store.answer()
    assert (await client.response()).status == 200
    assert await statuses(client, 5) == [429] * 5
    assert store.batches == []
    assert world.counters.limit("ns/limits#0")["over_local"] == 5


async def test_a_request_refused_by_one_limit_still_counts_in_the_others(world: World) -> None:
    store, port = await held_world(world, limit(0, counter="never"), limit(5, name="ns/limits#1"))
    (client,) = await ask_many(world, port, 1)
    assert (await client.response()).status == 429
    await world.until(lambda: store.batches)
    store.answer()
    assert store.counts == {KEY.encode(): 1}
    assert world.counters.limit("ns/limits#1")["ok"] == 1


@pytest.mark.parametrize("fail_closed", [False, True])
async def test_a_store_that_is_silent(world: World, fail_closed: bool) -> None:
    store, port = await held_world(world, limit(5), timeout=20, fail_closed=fail_closed)
    clients = await ask_many(world, port, 2)
    answers = [await client.response() for client in clients]
    assert [one.status for one in answers] == [500 if fail_closed else 200] * 2
    assert len(store.expired) == world.counters["limit_timeouts"] >= 1
    assert {line["flags"] for line in world.lines()} == {"RLSE"}
    assert world.counters.limit("ns/limits#0")["error"] == 2
    for checks in store.batches:  # a late answer changes nothing
        world.engine.limiter.settle(checks, pack_answer(1, 0, 1000, 0) * len(checks))


@pytest.mark.parametrize("fail_closed", [False, True])
async def test_a_store_that_breaks(world: World, fail_closed: bool) -> None:
    store, port = await held_world(world, limit(5), fail_closed=fail_closed)
    (client,) = await ask_many(world, port, 1)
    await world.until(lambda: store.batches)
    store.fail()
    assert (await client.response()).status == (500 if fail_closed else 200)
    assert world.counters["limit_store_errors"] == 1


@pytest.mark.parametrize("fail_closed", [False, True])
async def test_a_store_that_is_known_to_be_down(world: World, fail_closed: bool) -> None:
    store, port = await held_world(world, limit(5), fail_closed=fail_closed)
    store.available = False
    (client,) = await ask_many(world, port, 1)
    assert (await client.response()).status == (500 if fail_closed else 200)
    assert store.batches == []


async def test_a_client_that_goes_away_while_it_waits(world: World) -> None:
    store, port = await held_world(world, limit(5))
    leaving, staying = await ask_many(world, port, 2)
    await world.until(lambda: world.engine.active == 2)
    leaving.close()
    await world.until(lambda: world.engine.active == 1)
    await world.until(lambda: store.batches)
    while store.batches:
        store.answer()
        await world.turns()
    assert (await staying.response()).status == 200
    assert sum(store.counts.values()) == 2


async def test_a_store_that_is_replaced(world: World) -> None:
    store, port = await held_world(world, limit(1))
    (client,) = await ask_many(world, port, 1)
    await world.until(lambda: store.batches)
    world.engine.limiter.use(None, 20, False)
    assert (await client.response()).status == 200
    assert await statuses(client, 2) == [200, 429]  # the new store starts from nothing


async def test_bodies_and_mirrors_wait_too(world: World) -> None:
    store = hold(world)
    calls: list[Call] = []

    def note(call: Call) -> bytes:
        calls.append(call)
        return b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"

    main, copy = await world.backend(note), await world.backend(note)
    rule = make_rule(rate_limits=(limit(1),), mirrors=(ir.Mirror(cluster="copy"),))
    fleet = make_fleet(
        make_host(rule), make_cluster(main.port), make_cluster(copy.port, name="copy")
    )
    client = await world.client_of(fleet)
    for expected in (200, 429):
        body = b"x" * 1000
        await client.send(make_request(method="POST", body=body)[:-500])
        await world.until(lambda expected=expected: store.batches or expected == 429)
        assert len(calls) == (0 if expected == 200 else 2)
        await client.send(body[:500])
        await world.turns()
        if store.batches:
            store.answer()
        assert (await client.response()).status == expected
        if expected == 200:
            await world.until(lambda: len(calls) == 2)
    assert [call.message.body for call in calls] == [b"x" * 1000] * 2


async def test_a_large_body_stops_at_its_bound_while_it_waits(world: World) -> None:
    store = hold(world)
    client = await serve(world, limit(1))
    await client.send(make_request(method="POST", body=b"x" * 2_000_000)[: 1 << 16])
    await world.until(lambda: store.batches)
    store.answer()
    await client.send(
        b"x"
        * (
            2_000_000
            + len(make_request(method="POST", body=b"x" * 2_000_000))
            - 2_000_000
            - (1 << 16)
        )
    )
    assert (await client.response()).status == 200


async def test_redirects_are_limited(world: World) -> None:
    store = hold(world)
    rule = ir.Rule(
        route="ns/web",
        index=0,
        redirect=ir.Redirect(hostname="other.test"),
        rate_limits=(limit(1),),
    )
    client = await world.client_of(make_fleet(rule))
    await client.send(make_request())
    await world.until(lambda: store.batches)
    store.answer()
    assert (await client.response()).status == 302
    assert await statuses(client, 1) == [429]


async def test_preflights_are_not_counted(world: World) -> None:
    rule = make_rule(cors=ir.Cors(allow_origins=("*",)), rate_limits=(limit(1),))
    _, client = await world.pair(lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", rule)
    preflight = make_request(
        method="OPTIONS",
        headers=[("origin", "http://a.test"), ("access-control-request-method", "PUT")],
    )
    answers: list[Response] = [await client.ask(preflight) for _ in range(3)]
    assert {one.status for one in answers} == {204}
    plain = make_request(headers=[("origin", "http://a.test")])
    assert [(await client.ask(plain)).status for _ in range(2)] == [200, 429]


async def test_a_full_memory_store_is_an_error(world: World) -> None:
    client = await serve(world, limit(1, distinct_headers=("x-user",)))
    world.engine.limiter.use(None, 20, True)
    seen = set()
    for number in range(world.limit_room + 1):
        seen.add((await client.ask(make_request(headers=[("x-user", str(number))]))).status)
        if 500 in seen:
            break
    assert 500 in seen
    assert world.counters["limit_store_full"] >= 1


assert CLUSTER


async def test_nobody_is_forgotten_when_the_store_goes_down_behind_a_full_batch(
    world: World,
) -> None:
    store, port = await held_world(world, limit(5, distinct_headers=("x-user",)))
    first = await ask_many(world, port, 4, ("x-user", "first"))
    await world.until(lambda: under_way(store) == 4)
    clients = []
    for number in range(600):
        clients += await ask_many(world, port, 1, ("x-user", str(number)))
    await world.until(lambda: world.engine.active == 604)
    store.available = False
    while store.batches:
        store.answer()
    for client in first + clients:
        assert (await client.response()).status == 200
    assert store.batches == []


@apart(clock=True)
async def test_the_time_of_a_request_begins_when_it_comes(world: World) -> None:
    """Not when the batch before it has been given up."""
    store, port = await held_world(world, limit(5, distinct_headers=("x-user",)), timeout=10_000)
    first = await ask_many(world, port, 4, ("x-user", "one"))
    await world.until(lambda: under_way(store) == 4)
    last = await ask_many(world, port, 1, ("x-user", "two"))
    await world.until(lambda: world.engine.active == 5)
    shift(11)
    answers = [(await client.response()).status for client in first + last]
    assert answers == [200] * 5
    assert under_way(store) == 4, "the last was never asked for: its time was over as well"


async def test_a_new_store_has_its_own_deadline(world: World) -> None:
    store, port = await held_world(world, limit(5), timeout=60_000)
    waiting = await ask_many(world, port, 1)
    await world.until(lambda: store.batches)
    quick = hold(world, timeout=20)
    assert (await waiting[0].response()).status == 200
    (client,) = await ask_many(world, port, 1)
    assert (await client.response()).status == 200
    assert len(quick.expired) == 1


async def test_the_client_is_told_to_continue_after_its_limits(world: World) -> None:
    store = hold(world)
    client = await serve(world, limit(1))
    head = make_request(method="POST", headers=[("expect", "100-continue")], body=b"12345")[:-5]
    for expected in (200, 429):
        await client.send(head)
        if expected == 200:
            await world.until(lambda: store.batches)
            assert client.received == 0
            store.answer()
            assert (await client.response()).status == 100
            await client.send(b"12345")
        assert (await client.response()).status == expected
