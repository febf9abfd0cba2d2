"""CORS: preflights answered by the proxy, permissions on answers, nothing for foreign origins (Fetch, HTTPCORSFilter)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from origin.answers import echo, response
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.responses import Response
from wire.harness.site import Site, shared


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    with RecordingOrigin(echo("one")) as running:
        yield running


def cors(origin: RecordingOrigin, **fields: Any) -> list[make.Object]:
    """Everything to `one` with a CORS filter."""
    filters = [{"type": "CORS", "cors": fields}]
    objects = [make.route("cors", [make.rule("one", filters=filters)])]
    return objects + make.service("one", [("127.0.0.1", origin.port)])


FULL = {
    "allowOrigins": ["https://a.test", "https://*.b.test"], "allowMethods": ["GET", "PUT"],
    "allowHeaders": ["X-One", "X-Two"], "exposeHeaders": ["X-Seen"], "allowCredentials": True,
    "maxAge": 600,
}  # fmt: skip


def preflight(site: Site, origin: str, method: str = "PUT", headers: str = "x-one") -> Response:
    """What a browser asks first."""
    sent = [("Origin", origin), ("Access-Control-Request-Method", method)]
    if headers:
        sent.append(("Access-Control-Request-Headers", headers))
    return site.ask("OPTIONS", "/x", headers=sent)


def listed(value: str | None) -> set[str]:
    return {item.strip().lower() for item in (value or "").split(",")} - {""}


@pytest.mark.parametrize("page", ["https://a.test", "https://x.b.test"])
def test_preflight_of_an_allowed_origin(page: str, origin: RecordingOrigin) -> None:
    """Answered by the proxy; the backend is not asked."""
    with shared(cors(origin, **FULL)) as site:
        origin.take()
        got = preflight(site, page)
        assert got.status in (200, 204) and got.body == b""
        assert got.value("access-control-allow-origin") == page
        assert listed(got.value("access-control-allow-methods")) >= {"get", "put"}
        assert listed(got.value("access-control-allow-headers")) >= {"x-one", "x-two"}
        assert got.value("access-control-allow-credentials") == "true"
        assert got.value("access-control-max-age") == "600"
        assert listed(got.value("access-control-expose-headers")) == {"x-seen"}
        origin.turn()
        assert origin.take().messages == []


@pytest.mark.parametrize(
    "page", ["https://c.test", "http://a.test", "https://a.test:8443", "https://a.test.evil", "null",
             "https://xa.test", "https://b.test", "https://evilb.test"],
)  # fmt: skip
def test_foreign_origins(page: str, origin: RecordingOrigin) -> None:
    """No permission in any answer."""
    with shared(cors(origin, **FULL)) as site:
        for got in (preflight(site, page), site.ask("GET", "/x", headers=[("Origin", page)])):
            assert got.value("access-control-allow-origin") is None
            assert got.value("access-control-allow-credentials") is None


def test_simple_request(origin: RecordingOrigin) -> None:
    """Forwarded, and its answer carries the permission."""
    with shared(cors(origin, **FULL)) as site:
        got = site.ask("GET", "/x", headers=[("Origin", "https://a.test")])
        assert json.loads(got.body)["origin"] == "one"
        assert got.values("access-control-allow-origin") == ["https://a.test"]
        assert got.value("access-control-allow-credentials") == "true"
        assert listed(got.value("access-control-expose-headers")) == {"x-seen"}


def test_request_without_origin(origin: RecordingOrigin) -> None:
    """No browser, no CORS headers; plain OPTIONS goes to the backend."""
    with shared(cors(origin, **FULL)) as site:
        assert site.ask("GET", "/x").value("access-control-allow-origin") is None
        assert json.loads(site.ask("OPTIONS", "/x").body)["method"] == "OPTIONS"


def test_any_origin(origin: RecordingOrigin) -> None:
    """`*` without credentials."""
    with shared(cors(origin, allowOrigins=["*"], allowMethods=["*"], allowHeaders=["*"])) as site:
        got = preflight(site, "https://anybody.test", "DELETE", "x-anything")
        assert got.status in (200, 204)
        assert got.value("access-control-allow-origin") in ("*", "https://anybody.test")
        methods = listed(got.value("access-control-allow-methods"))
        assert "*" in methods or "delete" in methods
        headers = listed(got.value("access-control-allow-headers"))
        assert "*" in headers or "x-anything" in headers
        assert got.value("access-control-allow-credentials") is None


def test_backend_cors_headers_are_replaced(origin: RecordingOrigin) -> None:
    """A backend with opinions of its own does not double the headers."""
    own = [("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Credentials", "false")]
    with shared(cors(origin, **FULL)) as site, origin.answering(lambda m: response(b"", 200, own)):
        got = site.ask("GET", "/x", headers=[("Origin", "https://a.test")])
        assert got.values("access-control-allow-origin") == ["https://a.test"]
