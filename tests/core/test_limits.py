"""Rate limits in the engine: who is counted, where, and what becomes of a request that waits for its store."""

from __future__ import annotations

from typing import Any

import pytest

from core.backend import Call
from core.client import Client, Response, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.limit_store import HeldStore
from core.world import World
from edgefast import ir
from edgefast.ratelimit.script import name_words, term_words

KEY = "6:ns/web3:m=04:test"


def limit(
    requests: int = 1, *, counter: str = KEY, name: str = "ns/limits#0", **settings: Any
) -> ir.RateLimit:
    return ir.RateLimit(name=name, counter=counter, requests=requests, unit=3600, **settings)


def hold(world: World, *, timeout: int = 60_000, fail_closed: bool = False) -> HeldStore:
    store = HeldStore(world.engine.limiter)
    world.engine.limiter.use(store, timeout, fail_closed)
    return store


async def serve(world: World, *limits: ir.RateLimit, **http: Any) -> Client:
    backend = await world.backend(lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    rule = make_rule(rate_limits=limits)
    port = await world.serve(
        make_fleet(make_listener(**http), make_host(rule), make_cluster(backend.port))
    )
    return await world.client(port)


async def statuses(client: Client, count: int, *headers: tuple[str, str]) -> list[int]:
    return [(await client.ask(make_request(headers=headers))).status for _ in range(count)]


# --- who is counted -------------------------------------------------------------------------------


async def test_the_first_n_pass(world: World) -> None:
    client = await serve(world, limit(3))
    assert await statuses(client, 5) == [200, 200, 200, 429, 429]
    lines = world.lines()
    assert [line["flags"] for line in lines] == ["", "", "", "RL", "RL"]
    assert {line["limit"] for line in lines} == {"ns/limits#0"}
    assert [line["limit_remaining"] for line in lines] == [2, 1, 0, 0, 0]
    assert all(line["limit_window"] % 3600 == 0 for line in lines)
    assert all(
        "backend" not in line or line["status"] == 200 for line in lines if line["status"] == 200
    )


async def test_a_refusal_is_chunked_and_empty(world: World) -> None:
    client = await serve(world, limit(0))
    refused = await client.ask(make_request())
    assert refused.status == 429
    assert refused.value("x-edge-ratelimited") == "true"
    assert refused.value("transfer-encoding") == "chunked"
    assert refused.value("x-edge-upstream-service-time") is None
    assert refused.body == b""


async def test_exact_headers(world: World) -> None:
    client = await serve(world, limit(1, headers=(ir.ValueMatch("x-user", "one"),)))
    assert await statuses(client, 3, ("x-user", "two")) == [200] * 3
    assert await statuses(client, 2) == [200] * 2
    assert await statuses(client, 2, ("X-User", "one")) == [200, 429]


async def test_all_headers_must_hold(world: World) -> None:
    both = ir.ValueMatch("x-user", "one"), ir.ValueMatch("x-plan", "free|trial", regex=True)
    client = await serve(world, limit(0, headers=both))
    assert await statuses(client, 1, ("x-user", "one")) == [200]
    assert await statuses(client, 1, ("x-user", "one"), ("x-plan", "freemium")) == [200]
    assert await statuses(client, 1, ("x-user", "one"), ("x-plan", "trial")) == [429]


async def test_repeated_headers_are_joined_first(world: World) -> None:
    client = await serve(world, limit(0, headers=(ir.ValueMatch("x-user", "a,b"),)))
    assert await statuses(client, 1, ("x-user", "a"), ("x-user", "b")) == [429]
    assert await statuses(client, 1, ("x-user", "a")) == [200]


async def test_distinct_values_have_their_own_counters(world: World) -> None:
    client = await serve(world, limit(1, distinct_headers=("x-user",)))
    assert await statuses(client, 2, ("x-user", "one")) == [200, 429]
    assert await statuses(client, 2, ("x-user", "two")) == [200, 429]
    assert await statuses(client, 3) == [200] * 3


async def test_distinct_values_cannot_be_taken_for_each_other(world: World) -> None:
    store = hold(world)
    client = await serve(world, limit(5, distinct_headers=("x-a", "x-b")))
    for a, b in (("a_b", "c"), ("a", "b_c"), ("1:x", "2:y"), ("1:x2:y", "")):
        await client.send(make_request(headers=[("x-a", a), ("x-b", b)]))
        await world.until(lambda: store.batches)
        assert store.batches[0][0].key == f"{KEY}{len(a)}:{a}{len(b)}:{b}".encode()
        store.answer()
        assert (await client.response()).status == 200


async def test_a_long_value_has_a_short_key(world: World) -> None:
    store = hold(world)
    client = await serve(world, limit(5, distinct_headers=("x-a",)))
    keys = []
    for value in ("v" * 128, "v" * 129, "v" * 130):
        await client.send(make_request(headers=[("x-a", value)]))
        await world.until(lambda: store.batches)
        keys.append(store.batches[0][0].key)
        store.answer()
        await client.response()
    assert keys[0].endswith(b"128:" + b"v" * 128)
    assert keys[1].startswith(KEY.encode() + b"41:#") and keys[2].startswith(KEY.encode() + b"41:#")
    assert keys[1] != keys[2]


@pytest.mark.parametrize("value", ["", "x", "y" * 100, "\xff{}:5"])
async def test_checks_come_packed_as_the_script_reads_them(world: World, value: str) -> None:
    store = hold(world)
    one = limit(4_000_000_000, distinct_headers=("x-a",), sliding=True)
    client = await serve(world, one)
    await client.send(make_request(headers=[("x-a", value)]))
    await world.until(lambda: store.batches)
    (check,) = store.batches[0]
    assert check.name == name_words(check.key)
    assert check.terms == term_words(1, 4_000_000_000, 3600, True)
    store.answer()
    assert (await client.response()).status == 200


@pytest.mark.parametrize(
    ("sources", "counted"),
    [
        (("127.0.0.0/8",), True),
        (("127.0.0.1/32",), True),
        (("10.0.0.0/8",), False),
        (("::/0",), True),  # IPv4 is a part of IPv6's mapped range
        (("127.0.0.0/8", "127.0.0.2/32"), False),
        (("2001:db8::/32",), False),
    ],
)
async def test_source_ranges(world: World, sources: tuple[str, ...], counted: bool) -> None:
    client = await serve(world, limit(0, sources=sources))
    assert await statuses(client, 1) == [429 if counted else 200]


async def test_distinct_sources_are_addresses_not_spellings(world: World) -> None:
    trusted = ir.ClientAddress(trusted_hops=1)
    one = limit(1, sources=("2001:db8::/32",), distinct_source=True)
    client = await serve(world, one, client_address=trusted)
    assert await statuses(client, 1, ("x-forwarded-for", "2001:db8::1")) == [200]
    assert await statuses(client, 1, ("x-forwarded-for", "2001:DB8:0::1")) == [429]
    assert await statuses(client, 1, ("x-forwarded-for", "2001:db8::2")) == [200]
    assert await statuses(client, 2, ("x-forwarded-for", "192.0.2.1")) == [200, 200]


async def test_every_limit_counts_and_any_refuses(world: World) -> None:
    tight = limit(1, counter="a")
    wide = limit(3, counter="b", name="ns/limits#1")
    client = await serve(world, tight, wide)
    assert await statuses(client, 4) == [200, 429, 429, 429]
    # The wide one counted the refused requests too: nothing is left of it.
    store = world.counters
    assert store.limit("ns/limits#0") == {"ok": 1, "over": 3}
    assert store.limit("ns/limits#1") == {"ok": 3, "over": 1}


async def test_shadow_limits_count_and_let_pass(world: World) -> None:
    client = await serve(world, limit(1, shadow=True))
    assert await statuses(client, 3) == [200] * 3
    assert world.counters.limit("ns/limits#0") == {"ok": 1, "shadow_over": 2}


async def test_headers_tell_when_they_are_asked_for(world: World) -> None:
    client = await serve(world, limit(2), rate_limit_headers=True, retry_after=True)
    first, second, third = [await client.ask(make_request()) for _ in range(3)]
    assert [one.value("ratelimit-limit") for one in (first, second, third)] == ["2"] * 3
    assert [one.value("ratelimit-remaining") for one in (first, second, third)] == ["1", "0", "0"]
    assert 1 <= int(third.value("ratelimit-reset") or 0) <= 3600
    assert second.value("retry-after") is None
    assert third.value("retry-after") == third.value("ratelimit-reset")


async def test_no_headers_otherwise(world: World) -> None:
    client = await serve(world, limit(1))
    for _ in range(2):
        answer = await client.ask(make_request())
        assert [name for name, _ in answer.headers if name.startswith(("ratelimit", "retry"))] == []


async def test_counters_survive_a_new_table(world: World) -> None:
    backend = await world.backend(lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    fleet = make_fleet(make_rule(rate_limits=(limit(2),)), make_cluster(backend.port))
    client = await world.client(await world.serve(fleet))
    assert await statuses(client, 1) == [200]
    other = make_rule(route="ns/first", rate_limits=(limit(2),))
    world.apply(
        make_fleet(
            make_host(("/other", other), make_rule(rate_limits=(limit(3),))),
            make_cluster(backend.port),
        )
    )
    assert await statuses(client, 3) == [200, 200, 429]


# --- a store that has to be waited for --------------------------------------------------------------


async def ask_many(world: World, port: int, count: int, *headers: tuple[str, str]) -> list[Client]:
    clients = [await world.client(port) for _ in range(count)]
    for client in clients:
        await client.send(make_request(headers=headers))
    return clients


async def held_world(world: World, *limits: ir.RateLimit, **settings: Any) -> tuple[HeldStore, int]:
    store = hold(world, **settings)
    backend = await world.backend(lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    fleet = make_fleet(make_rule(rate_limits=limits), make_cluster(backend.port))
    return store, await world.serve(fleet)


async def test_one_batch_is_under_way_and_equal_keys_are_one_check(world: World) -> None:
    store, port = await held_world(world, limit(4))
    first = await ask_many(world, port, 1)
    await world.until(lambda: store.batches)
    rest = await ask_many(world, port, 5)
    await world.until(lambda: world.engine.active == 6)
    await world.turns()
    assert len(store.batches) == 1
    store.answer()
    await world.until(lambda: store.batches)
    (check,) = store.batches[0]
    assert (check.n, check.limit, check.unit, check.sliding) == (5, 4, 3600, False)
    store.answer()
    assert [(await client.response()).status for client in first + rest] == [200] * 4 + [429] * 2
    assert world.counters["limit_batches"] == 2
    assert world.counters["limit_store_us"] > 0


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
    assert store.abandoned == world.counters["limit_timeouts"] >= 1
    assert {line["flags"] for line in world.lines()} == {"RLSE"}
    assert world.counters.limit("ns/limits#0")["error"] == 2
    for checks in store.batches:  # a late answer changes nothing
        world.engine.limiter.settle(checks, [1, 0, 1000, 0] * len(checks))


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
    client = await world.client(await world.serve(fleet))
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
    client = await world.client(await world.serve(make_fleet(rule)))
    await client.send(make_request())
    await world.until(lambda: store.batches)
    store.answer()
    assert (await client.response()).status == 302
    assert await statuses(client, 1) == [429]


async def test_preflights_are_not_counted(world: World) -> None:
    rule = make_rule(cors=ir.Cors(allow_origins=("*",)), rate_limits=(limit(1),))
    backend = await world.backend(lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    client = await world.client(await world.serve(make_fleet(rule, make_cluster(backend.port))))
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
