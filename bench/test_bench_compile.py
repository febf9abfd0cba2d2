"""Benchmark of the compiler: a whole fleet, and one change in it, at 1,000 to 100,000 routes.

In: fleets of one host with many routes, or of many hosts with one. Out: seconds; table bytes per route and the bytes that
one change sends in the extra info. Run: pytest bench/test_bench_compile.py --benchmark-enable. Must never assert a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from edgefast import ir
from edgefast.table import Shards, compile_fleet, decode_blob, diff

LISTENER = "ns/gw/http"

# CPU time: what others on the machine do costs caches, but is not counted.
pytestmark = pytest.mark.benchmark(timer=time.process_time)
SIZES = [1_000, 10_000, 100_000]


def make_rule(i: int) -> ir.Rule:
    backend = ir.BackendRef(cluster=f"service/team-{i}/web/8080")
    return ir.Rule(route=f"team-{i}/web", index=0, source="generation 1", backends=(backend,))


def make_host(hostname: str, routes: range) -> ir.VirtualHost:
    return ir.VirtualHost(
        listener=LISTENER,
        hostname=hostname,
        rules=tuple(make_rule(i) for i in routes),
        entries=tuple(
            ir.Entry(match=ir.Match(kind="prefix", path=f"/team-{i}/service"), rule=place)
            for place, i in enumerate(routes)
        ),
    )


def one_host(n: int) -> ir.Fleet:
    return ir.Fleet(name="bench", virtual_hosts=(make_host("www", range(n)),))


def many_hosts(n: int) -> ir.Fleet:
    hosts = tuple(make_host(f"h{i}.example.com", range(i, i + 1)) for i in range(n))
    return ir.Fleet(name="bench", virtual_hosts=hosts)


def change_one(fleet: ir.Fleet) -> ir.Fleet:
    """One route of the fleet points elsewhere; everything else stays the same object."""
    hosts = fleet.virtual_hosts
    at = len(hosts) // 2
    rules = hosts[at].rules
    rule = len(rules) // 2
    changed = msgspec.structs.replace(
        hosts[at], rules=(*rules[:rule], make_rule(10**6), *rules[rule + 1 :])
    )
    return msgspec.structs.replace(fleet, virtual_hosts=(*hosts[:at], changed, *hosts[at + 1 :]))


FLEETS: list[Callable[[int], ir.Fleet]] = [one_host, many_hosts]


@pytest.mark.parametrize("make", FLEETS)
@pytest.mark.parametrize("routes", SIZES)
def test_compile(benchmark: BenchmarkFixture, make: Callable[[int], ir.Fleet], routes: int) -> None:
    fleet = make(routes)
    shards: Shards = benchmark.pedantic(compile_fleet, (fleet,), rounds=3, iterations=1)
    total = sum(len(resource.data) for resource in shards.resources.values())
    benchmark.extra_info["table_bytes_per_route"] = total // routes
    benchmark.extra_info["resources"] = len(shards.resources)


@pytest.mark.parametrize("make", FLEETS)
@pytest.mark.parametrize("routes", SIZES)
def test_one_change(
    benchmark: BenchmarkFixture, make: Callable[[int], ir.Fleet], routes: int
) -> None:
    fleet = make(routes)
    old = compile_fleet(fleet)
    changed = change_one(fleet)
    new: Shards = benchmark.pedantic(compile_fleet, (changed, old), rounds=10, iterations=1)
    benchmark.extra_info["bytes_sent"] = sum(len(r.data) for r in diff(old, new).put)


def test_decode(benchmark: BenchmarkFixture) -> None:
    """Reading one fragment back, as dump and explain do."""
    shards = compile_fleet(one_host(10_000))
    data = next(r.data for key, r in shards.resources.items() if key[0] == "fragment")
    benchmark(decode_blob, data)
