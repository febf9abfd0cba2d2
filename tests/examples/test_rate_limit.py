"""examples/ratelimit.yaml as an operator sees it: `edgefast limits`, `edgefast dump`, metrics and the access log agree."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.calling import call
from examples.running import Example, get, leave_the_hour

pytestmark = pytest.mark.wire

HOUR = 3600


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Example]:
    leave_the_hour()
    with Example("ratelimit.yaml", tmp_path) as example:
        yield example


def send(run: Example, path: str, count: int, user: str = "") -> list[int]:
    headers = {"x-user-id": user} if user else {}
    return [get(run.ports[8080], path, headers)[0] for _ in range(count)]


def counters(run: Example, *options: str) -> list[Any]:
    admin = f"127.0.0.1:{run.ports[19000]}"
    outcome = call("limits", "-o", "json", "--admin", admin, *options)
    assert (outcome.status, outcome.err) == (0, "")
    listed: list[Any] = json.loads(outcome.out)["counters"]
    return listed


def test_the_three_cases_as_an_operator_sees_them(run: Example) -> None:
    began = time.time() // HOUR * HOUR
    assert send(run, "/all", 3) == [200, 200, 429]
    assert send(run, "/one", 3, "one") == [200, 200, 429]
    assert send(run, "/one", 3, "two") == [200] * 3
    assert send(run, "/each", 1, "two") == [200]
    assert send(run, "/each", 3, "one") == [200, 200, 429]
    assert send(run, "/unlimited", 2) == [200, 200]

    seen = [
        (one["rule"], one["limit"], one["values"], one["used"], one["remaining"])
        for one in counters(run)
    ]
    assert seen == [
        ("all", "default/all-requests#0", {}, 2, 0),
        ("each", "default/each-value#0", {"x-user-id": "one"}, 2, 0),
        ("one", "default/one-value#0", {}, 2, 0),
        ("each", "default/each-value#0", {"x-user-id": "two"}, 1, 1),
    ]
    assert len(counters(run, "--limited")) == 3
    assert {one["window"] for one in counters(run)} == {began}

    lines = get(run.ports[19001], "/metrics")[1].decode().splitlines()
    labels = 'route="default/limited",limit="default/each-value#0"'
    for result, count in (("ok", 3), ("over", 1), ("shadow_over", 0), ("error", 0)):
        name = "edgefast_ratelimit_requests_total"
        assert f'{name}{{{labels},result="{result}"}} {count}' in lines

    logged = wait_for_log(run, 15)
    refused = [line for line in logged if line["status"] == 429]
    assert [(line["limit"], line["flags"]) for line in refused] == [
        ("default/all-requests#0", "RL"),
        ("default/one-value#0", "RL"),
        ("default/each-value#0", "RL"),
    ]
    assert {line["limit_window"] for line in refused} == {began}
    assert [line["limit_remaining"] for line in logged[:3]] == [1, 0, 0]
    assert not [line for line in logged if line["path"] == "/unlimited" and "limit" in line]


def wait_for_log(run: Example, count: int) -> list[Any]:
    """Lines of the access log, once there are so many."""
    end = time.monotonic() + 30
    while True:
        found = [json.loads(line) for line in run.log.splitlines() if line.startswith('{"time":')]
        if len(found) >= count:
            return found
        assert time.monotonic() < end, run.log
        time.sleep(0.02)


def test_dump_names_the_store(run: Example) -> None:
    outcome = call("dump", "-o", "table", "--admin", f"127.0.0.1:{run.ports[19000]}")
    assert outcome.status == 0
    rows = [line.split() for line in outcome.out.splitlines()]
    assert "LIMIT STORE" in outcome.out
    assert ["0", "memory", "pass"] in rows
