"""Filters end to end: header edits, rewrites and redirects, on rules and on backends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from origin.answers import echo
from origin.message import Message
from origin.recording import RecordingOrigin
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
