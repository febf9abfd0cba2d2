"""Answers the proxy gives by itself: which status, what shape, which connection (spec 4, 7; routing answers)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.ports import free_port
from wire.harness.responses import Response
from wire.harness.site import Site


@pytest.fixture(scope="module")
def site(origin: RecordingOrigin) -> Iterator[Site]:
    half = [make.backend_ref("origin", 1), make.backend_ref("missing", 1)]
    limit = {"type": "ExtensionRef", "extensionRef": {
        "group": make.EDGE, "kind": "RateLimitFilter", "name": "limit"}}  # fmt: skip
    missing = {"type": "ExtensionRef", "extensionRef": {
        "group": make.EDGE, "kind": "RateLimitFilter", "name": "missing"}}  # fmt: skip
    rules = [
        make.rule("origin", matches=[make.path("/ok")]),
        make.rule("missing", matches=[make.path("/missing")]),
        {"matches": [make.path("/nothing")]},
        make.rule(make.backend_ref("origin", 0), matches=[make.path("/zero")]),
        make.rule(make.backend_ref("origin", port=81), matches=[make.path("/wrong-port")]),
        make.rule(make.backend_ref("origin", namespace="other"), matches=[make.path("/no-grant")]),
        make.rule(*half, matches=[make.path("/half")]),
        make.rule("empty", matches=[make.path("/empty")]),
        make.rule("refused", matches=[make.path("/refused")]),
        make.rule("origin", matches=[make.path("/limited")], filters=[limit]),
        make.rule("origin", matches=[make.path("/no-limit")], filters=[missing]),
    ]
    limited = {"type": "Global", "global": {"rules": [{"limit": {"requests": 0, "unit": "Hour"}}]}}
    unready = make.service("empty", [("127.0.0.1", origin.port)])
    unready[1]["endpoints"][0]["conditions"] = {"ready": False, "serving": False}
    objects = [
        make.route("all", rules, hostnames=["a"]),
        *make.service("origin", [("127.0.0.1", origin.port)]),
        *unready,
        *make.service("refused", [("127.0.0.1", free_port())]),
        {"apiVersion": f"{make.EDGE}/v1alpha1", "kind": "RateLimitFilter",
         "metadata": {"name": "limit", "namespace": "default"}, "spec": limited},
    ]  # fmt: skip
    with Site(objects) as running:
        yield running


def check_own(answer: Response, status: int, *, empty: bool, head: bool = False) -> None:
    """Status, marks of an own answer, and its shape."""
    assert answer.status == status
    assert answer.value("server") == "edgefast" and answer.value("date")
    assert answer.value("x-edge-upstream-service-time") is None
    assert answer.framing in ("length", "none")
    if empty:
        assert answer.value("content-length") == "0" and answer.body == b""
    else:
        assert (answer.value("content-type") or "").startswith("text/plain")
        assert head or 0 < len(answer.body) < 200


EMPTY = {
    "/missing": 500, "/nothing": 500, "/zero": 500, "/wrong-port": 500, "/no-grant": 500,
    "/no-limit": 500, "/none": 404, "/ok-not": 404, "/": 404, "/OK": 404,
}  # fmt: skip
WORDS = {"/empty": 503, "/refused": 503}


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE", "HEAD"])
@pytest.mark.parametrize(("target", "status"), [*EMPTY.items(), *WORDS.items()])
def test_status_and_shape(
    target: str, status: int, method: str, site: Site, origin: RecordingOrigin
) -> None:
    """The connection stays usable, no backend is asked, and a body that was sent is not read as a request."""
    origin.take()
    with site.client() as client:
        body = b"GET /ok HTTP/1.1\r\nHost: a\r\n\r\n" if method == "POST" else b""
        answer = client.request(method, target, body=body)
        check_own(answer, status, empty=target in EMPTY, head=method == "HEAD")
        assert not answer.closes
        following = client.request("GET", "/ok/next")
        assert following.status == 200 and following.body == b"/ok/next"
    origin.turn()
    assert [message.target for message in origin.take().messages] == [b"/ok/next"]


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_a_limited_request(method: str, site: Site, origin: RecordingOrigin) -> None:
    """Chunked and empty, marked, and the backend hears nothing (spec 7)."""
    origin.take()
    with site.client() as client:
        answer = client.request(method, "/limited", body=b"x" * 100 if method == "POST" else b"")
        assert answer.status == 429
        assert answer.value("x-edge-ratelimited") == "true"
        assert answer.value("x-edge-upstream-service-time") is None
        assert answer.value("transfer-encoding") == "chunked" and answer.body == b""
        assert client.request("GET", "/ok").status == 200
    origin.turn()
    assert [message.target for message in origin.take().messages] == [b"/ok"]


def test_head_404_says_length_zero(site: Site) -> None:
    """Unmatched: `content-length: 0` to both methods."""
    assert site.ask("HEAD", "/none").value("content-length") == "0"


@pytest.mark.parametrize("host", ["b", "aa", "a.a", "127.0.0.1", "[::1]", "x.a"])
def test_unknown_host(host: str, site: Site) -> None:
    """404, empty."""
    check_own(site.ask("GET", "/ok", host), 404, empty=True)


def test_half_of_the_weight_is_invalid(site: Site) -> None:
    """That share gets 500, the other is served."""
    statuses = [site.ask("GET", "/half").status for _ in range(20)]
    assert sorted(statuses) == [200] * 10 + [500] * 10


def test_nothing_reached_the_backend(site: Site, origin: RecordingOrigin) -> None:
    """Own answers are given without asking anybody."""
    origin.take()
    for target in EMPTY:
        site.ask("GET", target)
    origin.turn()
    assert origin.take().messages == []
