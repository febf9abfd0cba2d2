"""Mirrors, from YAML to two backends. Shares, failures and bounds: core/exchange/test_mirror."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from origin.answers import echo
from origin.message import Message
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.site import Site, shared


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    with RecordingOrigin(echo("one")) as running:
        yield running


@pytest.fixture(scope="module")
def other() -> Iterator[RecordingOrigin]:
    with RecordingOrigin(echo("two")) as running:
        yield running


def mirror(name: str, **share: Any) -> make.Object:
    ref = {"name": name, "port": 80}
    return {"type": "RequestMirror", "requestMirror": {"backendRef": ref, **share}}


def mirrored(
    origin: RecordingOrigin, copies: list[tuple[str, int]], *filters: make.Object
) -> list[make.Object]:
    """Everything to `one`, with mirrors."""
    objects = [make.route("all", [make.rule("one", filters=list(filters))])]
    objects += make.service("one", [("127.0.0.1", origin.port)])
    for name, port in copies:
        objects += make.service(name, [("127.0.0.1", port)])
    return objects


def received(site: Site, origin: RecordingOrigin, count: int) -> list[Message]:
    """Wait for copies, which may come later than the answer."""
    found: list[Message] = []

    def enough() -> bool:
        found.extend(origin.take().messages)
        return len(found) >= count

    site.wait_until(enough, f"{count} copies")
    return found


def test_mirror_gets_a_copy(origin: RecordingOrigin, other: RecordingOrigin) -> None:
    """Same method, target, headers and body; the client hears the main backend only."""
    with shared(mirrored(origin, [("two", other.port)], mirror("two"))) as site:
        other.take()
        for number in range(10):
            body = b"y" * (number * 1000)
            got = site.ask("POST", f"/{number}?q", headers=[("X-Any", "1")], body=body)
            assert json.loads(got.body)["origin"] == "one"
        copies = sorted(received(site, other, 10), key=lambda message: message.target)
        for number, message in enumerate(copies):
            assert message.target == b"/%d?q" % number and message.method == b"POST"
            assert message.body == b"y" * (number * 1000)
            assert message.value(b"x-any") == b"1"
