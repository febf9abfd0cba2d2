"""Mirrors: copies of requests, all or a share of them, that never slow or fail the main request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from origin.answers import echo
from origin.message import Message
from origin.recording import RecordingOrigin
from origin.scripted import ScriptedOrigin
from wire.harness import objects as make
from wire.harness.ports import free_port
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


def test_two_mirrors(origin: RecordingOrigin, other: RecordingOrigin) -> None:
    """Each gets its copy."""
    with RecordingOrigin() as third:
        copies = [("two", other.port), ("three", third.port)]
        with shared(mirrored(origin, copies, mirror("two"), mirror("three"))) as site:
            other.take()
            assert site.ask("GET", "/x").status == 200
            assert [item.target for item in received(site, other, 1)] == [b"/x"]
            assert [item.target for item in received(site, third, 1)] == [b"/x"]


@pytest.mark.parametrize(
    ("share", "expected"),
    [({"percent": 20}, 0.2), ({"fraction": {"numerator": 1, "denominator": 4}}, 0.25),
     ({"percent": 0}, 0.0), ({"percent": 100}, 1.0)],
)  # fmt: skip
def test_mirrored_share(
    share: dict[str, Any], expected: float, origin: RecordingOrigin, other: RecordingOrigin
) -> None:
    """Of 500 requests, within five points."""
    with shared(mirrored(origin, [("two", other.port)], mirror("two", **share))) as site:
        other.take()
        before = site.metric("edgefast_mirrored_total")
        with site.client() as client:
            for _ in range(500):
                assert client.request("GET", "/x").status == 200
        site.turn()
        begun = site.metric("edgefast_mirrored_total") - before
        count = len(received(site, other, round(begun)))
        assert count == begun
        if expected in (0.0, 1.0):
            assert count == 500 * expected
        assert abs(count / 500 - expected) <= 0.05, count


def test_a_bad_mirror_costs_nothing(origin: RecordingOrigin) -> None:
    """Refused, hanging or talking nonsense: the main answer comes as ever."""

    def nonsense(peer: Any) -> None:
        peer.read_some()
        peer.send(b"\x00junk\r\n\r\n")

    with ScriptedOrigin(lambda peer: (peer.read_to_end(), None)[1]) as hanging:
        with ScriptedOrigin(nonsense) as silly:
            copies = [("refused", free_port()), ("hanging", hanging.port), ("silly", silly.port)]
            filters = [mirror(name) for name, _ in copies]
            with shared(mirrored(origin, copies, *filters)) as site:
                with site.client(deadline=12) as client:  # a copy that hangs does so for 15 s
                    for number in range(50):
                        got = client.request("POST", f"/{number}", body=b"z" * 20_000)
                        assert got.status == 200
