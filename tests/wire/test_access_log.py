"""The access log of a process: one whole line of JSON per request. Fields, escaping, flags and cuts: core/telemetry/test_accesslog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.site import Site


@pytest.fixture(scope="module")
def site(origin: RecordingOrigin) -> Iterator[Site]:
    rules = [
        make.rule("origin", name="main"),
    ]
    objects = [
        make.route("all", rules, ["a"]),
        *make.service("origin", [("127.0.0.1", origin.port)]),
    ]
    with Site(objects) as running:
        yield running


def lines_about(site: Site, mark: str, count: int = 1) -> list[dict[str, Any]]:
    """Wait for the lines of requests whose path holds the mark."""
    found: list[dict[str, Any]] = []

    def enough() -> bool:
        text = site.access_log
        whole = text[: text.rfind("\n") + 1]
        found[:] = [json.loads(line) for line in whole.splitlines() if mark in line]
        return len(found) >= count

    site.wait_until(enough, f"{count} lines about {mark}")
    assert len(found) == count
    return found


def test_a_served_request(site: Site, origin: RecordingOrigin) -> None:
    """Who, what, where to, how long."""
    origin.take()
    site.ask("POST", "/served?q=1", headers=[("User-Agent", "test/1")], body=b"12345")
    origin.turn()
    (message,) = origin.take().messages
    (line,) = lines_about(site, "/served")
    assert line["client"] == "127.0.0.1" and line["method"] == "POST" and line["host"] == "a"
    assert line["path"].startswith("/served") and line["status"] == 200
    assert line["route"] == "default/all" and line["rule"] == "main"
    assert line["backend"] == "service/default/origin/80"
    assert line["endpoint"] == f"127.0.0.1:{origin.port}"
    assert line["request_id"].encode() == message.value(b"x-request-id")
    assert line["user_agent"] == "test/1"
    assert line["bytes_received"] >= 5 and line["bytes_sent"] > 0
    assert 0 <= line["upstream_ms"] <= line["duration_ms"] + 1
