"""Benchmark of authorizations: nanoseconds for one request's address in a list of 1 to 256 ranges.

In: the engine's own code with a loop around it, so that Python is not what is measured. Out: `ns_each` in the extra info, beside the
goal. Addresses are read from text, as for each request. Run: pytest bench/test_bench_access.py --benchmark-enable. Must never assert a
time.
"""

from __future__ import annotations

import ipaddress
import time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.test_bench_rewrite import Path
from edgefast import ir
from edgefast.core.engine import count_admitted

REQUESTS = 100_000
GOAL = 300  # ns

# CPU time: what others on the machine do costs caches, but is not counted.
pytestmark = pytest.mark.benchmark(timer=time.process_time)


def make_ranges(count: int, version: int) -> tuple[str, ...]:
    """Every second network of a size, so that no two of them become one."""
    bits, base, prefix = (32, 10 << 24, 24) if version == 4 else (128, 0x20010DB8 << 96, 48)
    step = 1 << (bits - prefix)
    kind = ipaddress.IPv4Network if version == 4 else ipaddress.IPv6Network
    return tuple(str(kind((base + 2 * i * step, prefix))) for i in range(count))


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("count", [1, 16, 256])
@pytest.mark.parametrize("inside", [True, False])
def test_addresses(benchmark: BenchmarkFixture, count: int, version: int, inside: bool) -> None:
    ranges = make_ranges(count, version)
    spec = ir.Authorization(rules=(ir.AccessRule(allow=True, sources=ranges),))
    network = ipaddress.ip_network(ranges[count // 3])
    address = network[7] if inside else network.broadcast_address + 9
    path = Path(ir.Rule(route="ns/r", index=0), ir.HttpSettings())
    try:
        admitted = benchmark.pedantic(
            count_admitted,
            (path.engine, spec, str(address).encode(), b"/", REQUESTS),
            rounds=10,
            iterations=1,
            warmup_rounds=1,
        )
    finally:
        path.close()
    assert admitted == (REQUESTS if inside else 0)
    benchmark.extra_info["goal_ns"] = GOAL
    if benchmark.stats is not None:  # None when benchmarks are disabled
        seconds = benchmark.stats.stats.as_dict()["min"]
        benchmark.extra_info["ns_each"] = round(seconds / REQUESTS * 1e9, 1)
        print(f"\n{benchmark.name}: {benchmark.extra_info}")
