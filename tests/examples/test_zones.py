"""The example of zones: near endpoints first, all of them where a policy wants that, and the far ones by weight."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.running import Example, curl

pytestmark = pytest.mark.wire


def where(run: Example, path: str, times: int = 24) -> set[int]:
    """The ports of the endpoints that answer."""
    found = set()
    for _ in range(times):
        status, _, body = curl(f"curl http://127.0.0.1:{run.ports[8080]}{path}")
        assert status == 200, run.log
        found.add(int(json.loads(body)["endpoint"].rpartition(":")[2]))
    return found


def test_zones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEFAST_ZONE", "a")
    with Example("zones.yaml", tmp_path) as run:
        near, far = {run.ports[3001], run.ports[3002]}, {run.ports[3003]}
        assert where(run, "/") == near
        assert where(run, "/anywhere") == near | far
        assert where(run, "/far") == far
        assert "ZoneNotKnown" not in run.log


def test_a_proxy_of_no_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGEFAST_ZONE", raising=False)
    with Example("zones.yaml", tmp_path) as run:
        assert len(where(run, "/", 60)) == 3
        assert "ZoneNotKnown" in run.log and "--zone" in run.log
