"""Benchmark of the choice of an endpoint: nanoseconds by each balancer among 2 to 1,000 endpoints, equal or of two weights, in one zone
or in three.

In: the engine's own code with a loop around it, so that Python is not what is measured. Out: `ns_each` in the extra info, beside the
goal. Run: pytest bench/test_bench_pick.py --benchmark-enable. Must never assert a time.
"""

from __future__ import annotations

import time

import msgspec
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.test_bench_rewrite import Path
from edgefast import ir
from edgefast.core.engine import count_choices

CHOICES = {
    2: 1_000_000,
    100: 100_000,
    1_000: 20_000,
}  # so many that making the cluster does not count
GOALS = {2: 100, 100: 1_000, 1_000: 10_000}  # ns

# CPU time: what others on the machine do costs caches, but is not counted.
pytestmark = pytest.mark.benchmark(timer=time.process_time)


def make_cluster(count: int, *, uneven: bool) -> ir.Cluster:
    """Addresses that nobody asks."""
    endpoints = tuple(
        ir.Endpoint(address=f"10.0.{at >> 8}.{at & 255}", port=80, weight=1 + uneven * (at % 2))
        for at in range(count)
    )
    return ir.Cluster(name="service/ns/web/80", endpoints=endpoints)


def measure(benchmark: BenchmarkFixture, cluster: ir.Cluster, balance: str) -> None:
    """The time of each choice; the engine is in zone a, where three of five proxies are."""
    path = Path(ir.Rule(route="ns/r", index=0), ir.HttpSettings())
    count = len(cluster.endpoints)
    times = CHOICES[count]
    try:
        path.engine.zones.settle("a", {"a": 3, "b": 1, "c": 1})
        found = benchmark.pedantic(
            count_choices,
            (path.engine, cluster, balance, 0, times),
            rounds=5,
            iterations=1,
            warmup_rounds=1,
        )
    finally:
        path.close()
    assert sum(found) == times
    benchmark.extra_info["goal_ns"] = GOALS[count]
    if benchmark.stats is not None:  # None when benchmarks are disabled
        seconds = benchmark.stats.stats.as_dict()["min"]
        benchmark.extra_info["ns_each"] = round(seconds / times * 1e9, 1)
        print(f"\n{benchmark.name}: {benchmark.extra_info}")


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("count", GOALS)
@pytest.mark.parametrize("balance", ["least_request", "hash", "round_robin", "random"])
def test_choices(benchmark: BenchmarkFixture, balance: str, count: int, uneven: bool) -> None:
    measure(benchmark, make_cluster(count, uneven=uneven), balance)


@pytest.mark.parametrize("force", [0, 1])
@pytest.mark.parametrize("count", [100, 1_000])
@pytest.mark.parametrize("balance", ["least_request", "round_robin", "random"])
def test_choices_of_zones(
    benchmark: BenchmarkFixture, balance: str, count: int, force: int
) -> None:
    """All stay in zone a, or a part of them."""
    plain = make_cluster(count, uneven=False)
    placed = tuple(
        msgspec.structs.replace(one, zone="abc"[at % 3]) for at, one in enumerate(plain.endpoints)
    )
    rule = ir.ZoneAware(min_endpoints=1, force=force)
    measure(benchmark, msgspec.structs.replace(plain, endpoints=placed, zones=rule), balance)
