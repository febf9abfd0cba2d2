"""Filters end to end: header edits, redirects, rewrites, mirrors and CORS, on rules and on backends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from origin.answers import echo, response
from origin.message import Message
from origin.recording import RecordingOrigin
from origin.scripted import ScriptedOrigin
from wire.harness import objects as make
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.harness.responses import Response
from wire.harness.site import Site, shared


def pairs(**values: str) -> list[make.Object]:
    return [{"name": name.replace("_", "-"), "value": value} for name, value in values.items()]


def edit(kind: str, **ops: Any) -> make.Object:
    """A RequestHeaderModifier or ResponseHeaderModifier."""
    return {"type": kind, kind[0].lower() + kind[1:]: ops}


def redirect(**fields: Any) -> make.Object:
    return {"type": "RequestRedirect", "requestRedirect": fields}


def rewrite(**fields: Any) -> make.Object:
    return {"type": "URLRewrite", "urlRewrite": fields}


def full(path: str) -> make.Object:
    return {"type": "ReplaceFullPath", "replaceFullPath": path}


def prefix(path: str) -> make.Object:
    return {"type": "ReplacePrefixMatch", "replacePrefixMatch": path}


def answer(message: Message) -> bytes:
    """An echo that also sends headers a response filter can work on."""
    plain = echo("one")(message)
    assert plain is not None
    head, _, body = plain.partition(b"\r\n\r\n")
    return head + b"\r\nx-set: old\r\nx-add: old\r\nx-gone: 1\r\nX-Gone: 2\r\n\r\n" + body


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    with RecordingOrigin(answer) as running:
        yield running


@pytest.fixture(scope="module")
def other() -> Iterator[RecordingOrigin]:
    with RecordingOrigin(echo("two")) as running:
        yield running


def rule(match: make.Object, *filters: make.Object, backend: Any = "one") -> make.Object:
    """A rule with filters."""
    return make.rule(backend, matches=[match], filters=list(filters))


@pytest.fixture(scope="module")
def site(origin: RecordingOrigin, other: RecordingOrigin) -> Iterator[Site]:
    ops = {"set": pairs(X_Set="new"), "add": pairs(X_Add="new"), "remove": ["X-Gone"]}
    on_backend = [edit("RequestHeaderModifier", **ops), edit("ResponseHeaderModifier", **ops)]
    both = edit("RequestHeaderModifier", set=pairs(X_Set="rule"), add=pairs(X_Rule="1"))
    rules = [
        rule(make.path("/request"), edit("RequestHeaderModifier", **ops)),
        rule(make.path("/response"), edit("ResponseHeaderModifier", **ops)),
        rule(make.path("/backend"), backend=make.backend_ref("one", filters=on_backend)),
        rule(make.path("/both"), both, backend=make.backend_ref("one", filters=on_backend)),
        rule(make.path("/host"), edit("RequestHeaderModifier", set=pairs(Host="set.test"))),
        rule(make.path("/full"), rewrite(path=full("/new/path"))),
        rule(make.path("/strip"), rewrite(path=prefix("/"))),
        rule(make.path("/longer"), rewrite(path=prefix("/a/b"))),
        rule(make.path("/slash/"), rewrite(path=prefix("/n/"))),
        rule(make.path("/hostname"), rewrite(hostname="new.test")),
        rule(make.path("/hostpath"), rewrite(hostname="new.test", path=prefix("/x")),
             edit("RequestHeaderModifier", add=pairs(X_Add="1"))),
    ]  # fmt: skip
    objects = [
        make.route("filters", rules),
        *make.service("one", [("127.0.0.1", origin.port)]),
        *make.service("two", [("127.0.0.1", other.port)]),
    ]
    with Site(objects) as running:
        yield running


def told(response: Response) -> tuple[str, dict[str, list[str]]]:
    """(target, headers) that the backend saw."""
    assert response.status == 200, response
    body = json.loads(response.body)
    seen: dict[str, list[str]] = {}
    for name, value in body["headers"]:
        seen.setdefault(name, []).append(value)
    return body["target"], seen


SENT = [("X-Set", "old"), ("x-add", "old"), ("x-gone", "1"), ("X-GONE", "2"), ("X-Keep", "1")]


@pytest.mark.parametrize("path", ["/request", "/backend"])
def test_request_headers(path: str, site: Site) -> None:
    """Set replaces, add appends to the list, remove removes all, names in any case."""
    _, seen = told(site.ask("GET", path, headers=SENT))
    assert seen["x-set"] == ["new"]
    assert ",".join(seen["x-add"]).replace(" ", "") == "old,new"
    assert "x-gone" not in seen and seen["x-keep"] == ["1"]
    _, seen = told(site.ask("GET", path))
    assert seen["x-set"] == ["new"] and seen["x-add"] == ["new"]


def test_rule_and_backend_filters_together(site: Site) -> None:
    """Both are applied, the backend's last."""
    _, seen = told(site.ask("GET", "/both", headers=SENT))
    assert seen["x-set"] == ["new"] and seen["x-rule"] == ["1"] and "x-gone" not in seen


@pytest.mark.parametrize("path", ["/response", "/backend"])
def test_response_headers(path: str, site: Site) -> None:
    """The same on answers."""
    got = site.ask("GET", path)
    assert got.values("x-set") == ["new"]
    assert ",".join(got.values("x-add")).replace(" ", "") == "old,new"
    assert got.values("x-gone") == [] and got.value("x-origin") == "one"


def test_host_by_header_filter(site: Site) -> None:
    """Refused as a filter error, or the backend gets exactly one Host: never two."""
    got = site.ask("GET", "/host")
    if got.status != 500:
        assert told(got)[1]["host"] in (["set.test"], ["a"])


@pytest.mark.parametrize(
    ("target", "sent", "host"),
    [
        ("/full", "/new/path", "a"), ("/full/x/y?a=b", "/new/path?a=b", "a"),
        ("/strip", "/", "a"), ("/strip/", "/", "a"), ("/strip/x", "/x", "a"),
        ("/strip/x/y/?q", "/x/y/?q", "a"), ("/longer", "/a/b", "a"), ("/longer/x", "/a/b/x", "a"),
        ("/longer/", "/a/b/", "a"), ("/slash/x", "/n/x", "a"), ("/slash", "/n", "a"),
        ("/hostname/x", "/hostname/x", "new.test"), ("/hostpath/y", "/x/y", "new.test"),
        ("/strip/%20x", "/%20x", "a"), ("/strip//x", "/x", "a"), ("/strip/../strip/x", "/x", "a"),
    ],
)  # fmt: skip
def test_rewrites(target: str, sent: str, host: str, site: Site) -> None:
    """Path by full replacement or by whole segments of the prefix, host beside it, query untouched."""
    seen_target, seen = told(site.ask("GET", target))
    if target == "/slash":
        assert seen_target in ("/n", "/n/")
    else:
        assert seen_target == sent
    assert seen["host"] == [host]


# --- redirects --------------------------------------------------------------------------------------------------------


REDIRECTS: list[tuple[dict[str, Any], str, int, str]] = [
    # (filter, request target, status, location; {port} is the listener's port, {own} that with its colon)
    ({"hostname": "b.test"}, "/x?y=1", 302, "http://b.test{own}/x?y=1"),
    ({"hostname": "b.test", "statusCode": 301}, "/x", 301, "http://b.test{own}/x"),
    ({"statusCode": 303, "hostname": "b.test"}, "/x", 303, "http://b.test{own}/x"),
    ({"statusCode": 307, "hostname": "b.test"}, "/x", 307, "http://b.test{own}/x"),
    ({"statusCode": 308, "hostname": "b.test"}, "/x", 308, "http://b.test{own}/x"),
    ({"scheme": "https"}, "/x", 302, "https://a/x"),
    ({"scheme": "https", "port": 8443}, "/x", 302, "https://a:8443/x"),
    ({"scheme": "https", "port": 443}, "/x", 302, "https://a/x"),
    ({"scheme": "http", "port": 80}, "/x", 302, "http://a/x"),
    ({"port": 80}, "/x", 302, "http://a/x"),
    ({"port": 8080}, "/x", 302, "http://a:8080/x"),
    ({"port": 443}, "/x", 302, "http://a:443/x"),
    ({"scheme": "https", "hostname": "b.test", "port": 9443}, "/x", 302, "https://b.test:9443/x"),
    ({"scheme": "http"}, "/x", 302, "http://a/x"),
    ({"path": full("/new")}, "/x/y?q", 302, "http://a{own}/new?q"),
    ({"path": prefix("/new")}, "/x/y?q", 302, "http://a{own}/new/y?q"),
    ({"path": prefix("/")}, "/x/y", 302, "http://a{own}/y"),
    ({"path": prefix("/")}, "/x", 302, "http://a{own}/"),
    ({"path": prefix("/new/")}, "/x/y", 302, "http://a{own}/new/y"),
    ({"hostname": "b.test", "path": prefix("/n"), "port": 8080, "scheme": "https"}, "/x/y", 302,
     "https://b.test:8080/n/y"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "target", "status", "location"), REDIRECTS)
def test_redirects(fields: dict[str, Any], target: str, status: int, location: str) -> None:
    """Scheme, host, port, path and status by the rules of the API; default ports are left out."""
    objects = [make.route("r", [{"matches": [make.path("/x")], "filters": [redirect(**fields)]}])]
    with shared(objects) as site:
        own = f":{site.port}"
        got = site.ask("GET", target)
        assert got.status == status
        assert got.value("location") == location.replace("{own}", own)
        assert got.value("content-length") == "0" and not got.closes
        assert site.ask("HEAD", target).status == status
        assert site.ask("POST", target, body=b"x").status == status


def test_redirect_goes_back_to_the_host_that_was_asked() -> None:
    """Host as sent, without its port; the listener's port instead."""
    objects = [make.route("r", [{"filters": [redirect(statusCode=301, path=full("/new"))]}])]
    with shared(objects) as site:
        for host in ("x.test", "x.test:9999", "[::1]:80"):
            name = host if host == "x.test" else host.rpartition(":")[0]
            location = site.ask("GET", "/", host).value("location")
            assert location == f"http://{name}:{site.port}/new"


# --- mirrors ----------------------------------------------------------------------------------------------------------


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
        with site.client() as client:
            for _ in range(500):
                assert client.request("GET", "/x").status == 200
        site.wait_until(lambda: site.metric("edgefast_requests_active") == 0, "rest")
        other.turn()
        count = len(other.take().messages)
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
            with shared(mirrored(origin, copies, *filters)) as site, site.client() as client:
                began = time.monotonic()
                for number in range(50):
                    got = client.request("POST", f"/{number}", body=b"z" * 20_000)
                    assert got.status == 200
                assert time.monotonic() - began < 10


# --- CORS -------------------------------------------------------------------------------------------------------------


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


def test_several_gateways_in_one_process(origin: RecordingOrigin) -> None:
    """Two Gateways on two ports; the route of one does not answer on the other."""
    first, second = free_port(), free_port()
    objects = [
        make.gateway("g1", [make.listener(first)]), make.gateway("g2", [make.listener(second)]),
        make.route("r1", [make.rule("one")], ["one.test"], "g1"),
        make.route("r2", [make.rule("one")], ["two.test"], "g2"),
        *make.service("one", [("127.0.0.1", origin.port)]),
    ]  # fmt: skip
    with Gateway(objects):
        for port, host, status in ((first, "one.test", 200), (first, "two.test", 404),
                                   (second, "two.test", 200), (second, "one.test", 404)):  # fmt: skip
            with Client(("127.0.0.1", port)) as client:
                assert client.request("GET", "/", host).status == status
