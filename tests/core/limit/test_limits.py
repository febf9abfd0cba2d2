"""Rate limits in the engine: who is counted, where, and what is answered."""

from __future__ import annotations

import pytest

from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_host, make_rule
from core.limited import KEY, hold, limit, serve, statuses
from core.world import World
from edgefast import ir
from edgefast.rate_limit.script import pack_words


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
    assert check.pack([check]) == pack_words([check])
    assert (check.n, check.limit, check.unit, check.sliding) == (1, 4_000_000_000, 3600, True)
    store.answer()
    assert (await client.response()).status == 200


@pytest.mark.parametrize(
    ("sources", "counted"),
    [
        (("127.0.0.0/8",), True),
        (("127.0.0.1/32",), True),
        (("10.0.0.0/8",), False),
        (("::/0",), False),
        (("::ffff:127.0.0.0/104",), True),
        (("127.0.0.0/8", "127.0.0.2/32"), False),
        (("2001:db8::/32",), False),
    ],
)
async def test_source_ranges(world: World, sources: tuple[str, ...], counted: bool) -> None:
    client = await serve(world, limit(0, sources=sources))
    assert await statuses(client, 1) == [429 if counted else 200]


@pytest.mark.parametrize(
    "block",
    [
        b"PROXY TCP6 ::ffff:10.0.0.1 ::1 1 2\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24" + bytes(10) + b"\xff\xff\n\0\0\1" + bytes(20),
    ],
)
async def test_a_mapped_address_does_not_escape_its_range(world: World, block: bytes) -> None:
    """What a PROXY protocol block calls an IPv6 address is the IPv4 address that it maps."""
    trusted = ir.ClientAddress(proxy_protocol="required", proxy_senders=("127.0.0.0/8",))
    one = limit(1, sources=("10.0.0.0/8",), distinct_source=True)
    client = await serve(world, one, client_address=trusted)
    assert (await client.ask(block + make_request())).status == 200
    assert await statuses(client, 1) == [429]


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
    client = await world.client_of(fleet)
    assert await statuses(client, 1) == [200]
    other = make_rule(route="ns/first", rate_limits=(limit(2),))
    world.apply(
        make_fleet(
            make_host(("/other", other), make_rule(rate_limits=(limit(3),))),
            make_cluster(backend.port),
        )
    )
    assert await statuses(client, 3) == [200, 200, 429]


async def test_no_byte_gets_a_request_past_an_expression(world: World) -> None:
    one = limit(0, headers=(ir.ValueMatch("x-user", ".*", regex=True),))
    client = await serve(world, one)
    assert await statuses(client, 1, ("x-user", "caf\xe9")) == [429]
    assert await statuses(client, 1) == [200]


async def test_shadow_limits_are_not_told(world: World) -> None:
    quiet = limit(1, shadow=True, counter="a")
    told = limit(9, counter="b", name="ns/limits#1")
    client = await serve(world, quiet, told, rate_limit_headers=True)
    answers = [await client.ask(make_request()) for _ in range(3)]
    assert [one.value("ratelimit-remaining") for one in answers] == ["8", "7", "6"]
    assert {line["limit"] for line in world.lines()} == {"ns/limits#1"}
