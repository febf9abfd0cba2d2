"""The tracing example: what its backend gets, and what its collector does."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from examples.running import Example, curl, get

pytestmark = pytest.mark.wire

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_spans_of_sampled_requests_go_to_the_collector(tmp_path: Path) -> None:
    with Example("tracing.yaml", tmp_path) as run:
        seen = []
        for promise in run.promises[:3]:
            status, _, body = curl(promise.command)
            assert status == 200
            seen.append(json.loads(body)["headers"]["traceparent"].split("-"))
        own, kept, unsampled = seen
        assert own[1] != TRACE and own[3] == "01"
        assert kept[1] == TRACE and kept[2] != PARENT and kept[3] == "01"
        assert unsampled[1:] == [TRACE, PARENT, "00"]
        sent = collected(run, 2)
        assert {(one["method"], one["path"]) for one in sent} == {("POST", "/v1/traces")}
        assert all(one["headers"]["content-type"] == "application/x-protobuf" for one in sent)
        assert all(one["body_bytes"] > 100 for one in sent)


def collected(run: Example, spans: int) -> list[dict[str, Any]]:
    """Wait until so many traced requests are with the collector; return what it got."""
    end = time.monotonic() + 20
    while metric(run, "edgefast_spans_exported_total") < spans:
        assert time.monotonic() < end, run.log
        time.sleep(0.05)
    assert metric(run, "edgefast_spans_recorded_total") == spans
    told: list[dict[str, Any]] = json.loads(get(run.ports[3002], "/seen")[1])
    return told


def metric(run: Example, name: str) -> float:
    page = get(run.ports[19001], "/metrics")[1].decode()
    (line,) = (one for one in page.splitlines() if one.startswith(f"{name} "))
    return float(line.split()[1])
