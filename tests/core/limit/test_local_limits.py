"""Limits of this machine in the engine: token buckets, requests in progress, statuses, exempt clients, two workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.client import Client, make_request
from core.conftest import check
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.limited import limit, serve, statuses
from core.upstream.workers import Workers
from core.world import World
from edgefast import ir
from edgefast._csrc import ffi, lib

ANYBODY = ir.ClientAddress(trusted_hops=1)  # x-forwarded-for has the client's address
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def bucket(requests: int = 1, burst: int = 1, unit: int = 3600, **settings: Any) -> ir.RateLimit:
    one = limit(requests, **{"distinct_source": True, **settings})
    return _replace(one, kind="Bucket", burst=burst, unit=unit)


def parallel(requests: int = 1, **settings: Any) -> ir.RateLimit:
    return _replace(limit(requests, **{"distinct_source": True, **settings}), kind="Parallel")


def _replace(one: ir.RateLimit, **settings: Any) -> ir.RateLimit:
    values = {name: getattr(one, name) for name in one.__struct_fields__}
    return ir.RateLimit(**{**values, **settings})


def pass_time(world: World, milliseconds: int) -> None:
    """Move the clock of the store on: its epoch is what is added to the machine's."""
    view = ffi.from_buffer(world.limits)
    before = lib.ef_store_now(ffi.cast("ef_store *", view), 0)
    names = ffi.cast("ef_limit *", view + 64)  # the first segment behind the header
    lib.ef_limit_set_epoch(names, before + milliseconds)


async def test_the_burst_passes_and_comes_back_with_time(world: World) -> None:
    client = await serve(world, bucket(2, burst=5, unit=1))
    pass_time(world, 1_000_000)
    assert await statuses(client, 5) == [200] * 5
    one = bucket(1, burst=3, unit=3600)
    client = await serve_again(world, one)
    pass_time(world, 3_600_000)
    assert await statuses(client, 4) == [200, 200, 200, 429]
    pass_time(world, 2 * 3_600_000)
    assert await statuses(client, 3) == [200, 200, 429]
    pass_time(world, 100 * 3_600_000)
    assert await statuses(client, 4) == [200, 200, 200, 429]


async def serve_again(world: World, *limits: ir.RateLimit, **http: Any) -> Client:
    """Serve other limits in place of those before."""
    backend = await world.backend(lambda call: OK)
    rule = make_rule(rate_limits=limits)
    world.apply(make_fleet(make_listener(**http), make_host(rule), make_cluster(backend.port)))
    return await world.client(await world.listen())


async def test_the_status_and_the_log_of_a_refusal(world: World) -> None:
    client = await serve(world, bucket(status=503), retry_after=True, rate_limit_headers=True)
    first, refused = [await client.ask(make_request()) for _ in range(2)]
    assert (first.value("ratelimit-limit"), first.value("ratelimit-remaining")) == ("1", "0")
    assert refused.status == 503
    assert refused.value("x-edge-ratelimited") == "true"
    assert 1 <= int(refused.value("retry-after") or 0) <= 3600
    assert [(one["flags"], one["limit"]) for one in world.lines()] == [
        ("", "ns/limits#0"),
        ("RL", "ns/limits#0"),
    ]
    assert world.counters.limit("ns/limits#0") == {"ok": 1, "over": 1}


async def test_no_requests_are_allowed(world: World) -> None:
    client = await serve(world, bucket(0, burst=1))
    assert await statuses(client, 2) == [429, 429]


async def test_each_client_has_a_bucket_and_exempt_ones_none(world: World) -> None:
    one = bucket(excepts=("192.0.2.0/24", "2001:db8::/32"))
    client = await serve(world, one, client_address=ANYBODY)
    for address in ("198.51.100.1", "198.51.100.2", "2001:db9::1"):
        assert await statuses(client, 2, ("x-forwarded-for", address)) == [200, 429]
    for address in ("192.0.2.200", "2001:db8:7::1"):
        assert await statuses(client, 3, ("x-forwarded-for", address)) == [200] * 3


async def test_a_window_has_exempt_clients_too(world: World) -> None:
    client = await serve(world, limit(0, excepts=("127.0.0.0/8",)))
    assert await statuses(client, 2) == [200, 200]


async def test_a_refusal_costs_no_token_of_another_limit(world: World) -> None:
    wide = bucket(1, burst=3, counter="a", name="ns/limits#0")
    tight = bucket(1, burst=1, counter="b", name="ns/limits#1")
    client = await serve(world, wide, tight)
    assert await statuses(client, 5) == [200, 429, 429, 429, 429]
    client = await serve_again(world, wide)
    assert await statuses(client, 3) == [200, 200, 429]


async def test_a_limit_without_headers_is_before_authentication(world: World) -> None:
    backend = await world.backend(lambda call: OK)
    nobody = ir.PolicyUnit(
        name="security/ns/p#authorization", authorization=ir.Authorization(rules=())
    )
    rule = make_rule(policies=(nobody.name,), rate_limits=(bucket(burst=2),))
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port), nobody))
    assert await statuses(client, 3) == [403, 403, 429]
    late = bucket(burst=2, distinct_headers=("x-user",), counter="late")
    rule = make_rule(policies=(nobody.name,), rate_limits=(late,))
    world.apply(make_fleet(rule, make_cluster(backend.port), nobody))
    assert await statuses(client, 3, ("x-user", "a")) == [403, 403, 403]


async def test_shadow_buckets_refuse_nothing(world: World) -> None:
    client = await serve(world, bucket(shadow=True))
    assert await statuses(client, 3) == [200] * 3
    assert world.counters.limit("ns/limits#0") == {"ok": 1, "shadow_over": 2}


async def test_requests_in_progress(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(rate_limits=(parallel(2, status=503),))
    port = await world.serve(make_fleet(rule, make_cluster(backend.port)))
    clients = [await world.client(port) for _ in range(3)]
    for client in clients[:2]:
        await client.send(make_request())
    calls = await backend.calls(2)
    assert await statuses(clients[2], 2) == [503, 503]
    calls[0].reply()
    await world.until(lambda: world.engine.active == 1)
    await clients[2].send(make_request())
    calls.append(await backend.call())
    assert await statuses(await world.client(port), 1) == [503]
    for call in calls[1:]:
        call.reply()
    assert [(await client.response()).status for client in clients] == [200] * 3
    assert world.counters.limit("ns/limits#0") == {"ok": 3, "over": 3}


async def test_a_client_that_goes_away_is_no_longer_in_progress(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(rate_limits=(parallel(1),))
    port = await world.serve(make_fleet(rule, make_cluster(backend.port)))
    gone, client = await world.client(port), await world.client(port)
    await gone.send(make_request())
    await backend.call()
    assert await statuses(client, 1) == [429]
    gone.close()
    await world.until(lambda: world.engine.active == 0)
    await client.send(make_request())
    (await backend.call()).reply()
    assert (await client.response()).status == 200


async def test_a_request_without_a_token_is_not_in_progress(world: World) -> None:
    both = (parallel(1, counter="a"), bucket(burst=1, counter="b", name="ns/limits#1"))
    client = await serve(world, *both)
    assert await statuses(client, 3) == [200, 429, 429]
    assert world.counters.limit("ns/limits#0") == {"ok": 1}


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Two workers of one proxy."""
    yield from check(Workers())  # type: ignore[misc]


async def test_two_workers_share_a_bucket(workers: Workers) -> None:
    clients = [await serve(one, bucket(burst=4)) for one in (workers, workers.other)]
    found = [(await statuses(clients[turn % 2], 1))[0] for turn in range(6)]
    assert found == [200] * 4 + [429] * 2


async def test_two_workers_count_together_what_is_in_progress(workers: Workers) -> None:
    backend = await workers.backend()
    rule = make_rule(rate_limits=(parallel(1),))
    ports = await workers.serve_both(make_fleet(rule, make_cluster(backend.port)))
    first, second = [await workers.client(port) for port in ports]
    await first.send(make_request())
    call = await backend.call()
    assert await statuses(second, 1) == [429]
    call.reply()
    assert (await first.response()).status == 200
    await workers.until(lambda: workers.engine.active == 0)
    await second.send(make_request())
    (await backend.call()).reply()
    assert (await second.response()).status == 200


async def test_many_addresses_do_not_free_one_that_is_refused(world: World) -> None:
    """The store of tests has 60 buckets; csrc/tests/test_limit_local.c sends 100,000."""
    client = await serve(world, bucket(burst=3), client_address=ANYBODY)
    mine = ("x-forwarded-for", "192.0.2.1")
    assert await statuses(client, 4, mine) == [200, 200, 200, 429]
    for number in range(2_000):
        other = ("x-forwarded-for", f"2001:db8:{number:x}::1")
        assert await statuses(client, 1, other) == [200]
    assert await statuses(client, 1, mine) == [429]
