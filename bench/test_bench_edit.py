"""Benchmark of an edit: a policy of a Gateway with very many routes, from its file to what is sent to the workers.

In: a folder with a Gateway and N HTTPRoutes, and a SecurityPolicy or BackendTrafficPolicy that changes each round. Out: seconds to read,
translate, compile and compare; what is sent in the extra info. Run: pytest bench/test_bench_edit.py --benchmark-enable.
Must never assert a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.certificate import make_certificate
from bench.objects import Object, make_base, make_routes
from bench.policy_objects import make_policy
from bench.scenario import Scenario
from edgefast.providers.files import FileSource
from edgefast.table import compile_fleet
from edgefast.table.shards import diff
from edgefast.translate import Settings, translate

ROUNDS = 20
GATEWAY = ("Gateway", "bench")


def admit(number: int) -> Object:
    rule = {"action": "Allow", "principal": {"clientCIDRs": [f"10.{number}.0.0/16"]}}
    return make_policy("edited", "SecurityPolicy", GATEWAY, {"authorization": {"rules": [rule]}})


def treat(number: int) -> Object:
    health = {"panicThreshold": number}
    return make_policy("edited", "BackendTrafficPolicy", GATEWAY, {"healthCheck": health})


@pytest.mark.parametrize("make", [admit, treat])
@pytest.mark.parametrize("routes", [1_000, 10_000])
def test_policy_edit(
    benchmark: BenchmarkFixture,
    make: Callable[[int], Object],
    routes: int,
    tmp_path: Path,
) -> None:
    scenario = Scenario(routes=routes)
    items = [*make_base(scenario, 80, 8080, make_certificate(tmp_path)), *make_routes(scenario)]
    folder, file = tmp_path / "objects", tmp_path / "objects" / "policy.json"
    folder.mkdir()
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    (folder / "all.json").write_text(text)
    file.write_text(json.dumps(make(0)))
    source, settings, numbers = FileSource([folder]), Settings(), count(1)
    made = translate(source.read().snapshot, settings)
    shards = compile_fleet(made.ir.fleets[0])

    def write() -> None:
        file.write_text(json.dumps(make(next(numbers))))

    def follow() -> None:
        nonlocal made, shards
        made = translate(source.read().snapshot, settings, made)
        after = compile_fleet(made.ir.fleets[0], shards)
        delta = diff(shards, after)
        benchmark.extra_info["resources_sent"] = len(delta.put) + len(delta.remove)
        benchmark.extra_info["bytes_sent"] = sum(len(one.data) for one in delta.put)
        shards = after

    benchmark.pedantic(follow, setup=write, rounds=ROUNDS, warmup_rounds=1)
