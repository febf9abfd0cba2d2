"""Benchmark of the matcher: nanoseconds per match at 1 to 100,000 routes, on tables that compile_fleet made.

In: csrc/route.c and its like, compiled here with a C loop around them, so that Python is not what is measured. Out: a row
per table; `ns_per_match` in the extra info, and goal 5 of the performance page beside it. Requests are spread evenly over
all routes: large tables are met as cold as the machine's caches allow.
Run: pytest bench/test_bench_match.py --benchmark-enable. Must never assert a time.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cffi import FFI
from pytest_benchmark.fixture import BenchmarkFixture

from edgefast import ir
from edgefast.table import Resource, compile_fleet

ROOT = Path(__file__).resolve().parents[1]
REQUESTS = 32_768
LISTENER = "ns/gw/http"

# CPU time: what others on the machine do costs caches, but is not counted.
pytestmark = pytest.mark.benchmark(timer=time.process_time)
GOALS = {1: 40, 10: 40, 1_000: 100, 10_000: 100, 100_000: 200}  # ns, "must"

LOOP = """
uint64_t match_all(const ef_vhost *vhost, const ef_request *requests, uint32_t n) {
    uint64_t hits = 0;
    for (uint32_t i = 0; i < n; i++) {
        ef_route it;
        ef_hit hit;
        ef_route_begin(&it, vhost, requests + i);
        hits += (uint64_t)ef_route_next(&it, &hit);
    }
    return hits;
}
uint64_t match_hosts(const ef_vhost *vhosts, const ef_request *requests, uint32_t n) {
    uint64_t hits = 0;
    for (uint32_t i = 0; i < n; i++) hits += match_all(vhosts + i, requests + i, 1);
    return hits;
}
"""


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The matcher with a loop around it, compiled as the product is."""
    from edgefast.table.csrc_build import order_headers, read_declarations

    csrc = ROOT / "csrc"
    sources = sorted(csrc.glob("*.c"))
    headers = order_headers(csrc)
    builder = FFI()
    builder.cdef(read_declarations(headers, sources))
    builder.cdef(
        "uint64_t match_all(const ef_vhost *, const ef_request *, uint32_t);"
        "uint64_t match_hosts(const ef_vhost *, const ef_request *, uint32_t);"
    )
    includes = "".join(f'#include "{csrc / path.name}"\n' for path in headers)
    builder.set_source(
        "edgefast_bench_match",
        includes + LOOP,
        sources=[str(path) for path in sources],
        extra_compile_args=["-O3", "-std=c11"],
    )
    built = builder.compile(tmpdir=str(tmp_path_factory.mktemp("match")))
    spec = importlib.util.spec_from_file_location("edgefast_bench_match", built)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Tables:
    """Blobs, virtual hosts and requests in C memory, kept alive."""

    def __init__(self, native: Any) -> None:
        self.ffi = native.ffi
        self.keep: list[Any] = []

    def blob(self, resource: Resource) -> Any:
        """A copy at a cache line, as in the arena."""
        size = len(resource.data)
        memory = self.ffi.new("uint8_t[]", size + 64)
        self.keep.append(memory)
        address = int(self.ffi.cast("uintptr_t", memory))
        place = self.ffi.cast("uint8_t *", (address + 63) & ~63)
        self.ffi.memmove(place, resource.data, size)
        return self.ffi.cast("const ef_blob *", place)

    def fill(self, vhost: Any, resources: dict[tuple[str, str], Resource], name: str) -> None:
        vhost.root = self.blob(resources["virtual_host", name])
        parts = [r for key, r in resources.items() if key[0] == "fragment"]
        parts.sort(key=lambda r: int(r.name.rpartition("#")[2]))
        fragments = self.ffi.new("ef_blob const *[]", [self.blob(r) for r in parts] or 1)
        self.keep.append(fragments)
        vhost.fragments = fragments
        vhost.n_fragments = max(1, len(parts))

    def requests(self, paths: list[str]) -> Any:
        requests = self.ffi.new("ef_request[]", len(paths))
        self.keep.append(requests)
        for request, path in zip(requests, paths, strict=True):
            text = self.ffi.new("uint8_t[]", path.encode())
            self.keep.append(text)
            request.path, request.path_len, request.method = text, len(path), 7
        return requests


def run(benchmark: BenchmarkFixture, loop: Any, vhosts: Any, requests: Any, goal: int) -> None:
    hits = benchmark.pedantic(
        loop, (vhosts, requests, REQUESTS), rounds=25, iterations=1, warmup_rounds=2
    )
    assert hits == REQUESTS
    benchmark.extra_info["matches"] = REQUESTS
    benchmark.extra_info["goal_ns"] = goal
    if benchmark.stats is not None:  # None when benchmarks are disabled
        for name in ("min", "median"):
            seconds = benchmark.stats.stats.as_dict()[name]
            benchmark.extra_info[f"ns_per_match_{name}"] = round(seconds / REQUESTS * 1e9, 1)
        print(f"\n{benchmark.name}: {benchmark.extra_info}")


def make_rule(i: int) -> ir.Rule:
    backend = ir.BackendRef(cluster=f"service/team-{i}/web/8080")
    return ir.Rule(route=f"team-{i}/web", index=0, source="generation 1", backends=(backend,))


@pytest.mark.parametrize("routes", [1, 10, 1_000, 10_000, 100_000])
def test_one_host(benchmark: BenchmarkFixture, native: Any, routes: int) -> None:
    host = ir.VirtualHost(
        listener=LISTENER,
        hostname="www",
        rules=tuple(make_rule(i) for i in range(routes)),
        entries=tuple(
            ir.Entry(match=ir.Match(kind="prefix", path=f"/team-{i}/service/api"), rule=i)
            for i in range(routes)
        ),
    )
    shards = compile_fleet(ir.Fleet(name="bench", virtual_hosts=(host,)))
    tables = Tables(native)
    vhost = native.ffi.new("ef_vhost *")
    tables.fill(vhost, dict(shards.resources), f"{LISTENER}/www")
    draw = random.Random(routes)
    paths = [
        f"/team-{draw.randrange(routes)}/service/api/v1/users/{draw.randrange(1000)}"
        for _ in range(REQUESTS)
    ]
    run(benchmark, native.lib.match_all, vhost, tables.requests(paths), GOALS[routes])


@pytest.mark.parametrize("hosts", [100, 10_000, 100_000])
def test_many_hosts(benchmark: BenchmarkFixture, native: Any, hosts: int) -> None:
    """A match in the right one of many hosts; finding the host is the map's work and not in here."""
    draw = random.Random(hosts)
    entries = tuple(
        ir.Entry(match=ir.Match(kind="prefix", path=path), rule=0) for path in ("/api", "")
    )
    virtual_hosts = tuple(
        ir.VirtualHost(listener=LISTENER, hostname=f"h{i}", rules=(make_rule(i),), entries=entries)
        for i in range(hosts)
    )
    shards = compile_fleet(ir.Fleet(name="bench", virtual_hosts=virtual_hosts))
    tables = Tables(native)
    resources = dict(shards.resources)
    places = {name: tables.blob(r) for (_, name), r in resources.items()}
    vhosts = native.ffi.new("ef_vhost[]", REQUESTS)
    for vhost in vhosts:
        vhost.root = places[f"{LISTENER}/h{draw.randrange(hosts)}"]
        vhost.n_fragments = 1
    paths = [f"/api/v1/users/{draw.randrange(1000)}" for _ in range(REQUESTS)]
    run(benchmark, native.lib.match_hosts, vhosts, tables.requests(paths), GOALS[100_000])
