"""Filters of rules and backendRefs: header edits, rewrites, redirects and CORS. Of a rule and its backendRef both apply; the backendRef decides what both set."""

from __future__ import annotations

from typing import Any

import pytest

from core.backend import Call, make_response, say
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir

HOST = ir.Rewrite(hostname="backend.internal")
PATH = ir.Rewrite(path=ir.PathRewrite("full", "/new"))


@pytest.mark.parametrize(
    ("outer", "inner", "host", "path"),
    [
        (PATH, HOST, "backend.internal", "/new"),
        (HOST, PATH, "backend.internal", "/new"),
        (HOST, ir.Rewrite(hostname="other.internal"), "other.internal", "/old"),
        (PATH, ir.Rewrite(path=ir.PathRewrite("full", "/newer")), "test", "/newer"),
        (None, HOST, "backend.internal", "/old"),
        (PATH, None, "test", "/new"),
    ],
)
async def test_rewrites_add_up(
    world: World, outer: ir.Rewrite | None, inner: ir.Rewrite | None, host: str, path: str
) -> None:
    calls: list[Call] = []

    def note(call: Call) -> bytes:
        calls.append(call)
        return say("x")(call)

    backend = await world.backend(note)
    rule = make_rule(ir.BackendRef(cluster=CLUSTER, rewrite=inner), rewrite=outer)
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    await client.ask(make_request("/old"))
    (call,) = calls
    assert call.message.value(b"host") == host.encode()
    assert call.message.target == path.encode()


async def test_no_star_is_exposed_with_credentials(world: World) -> None:
    """Browsers would take it for a header's name (HTTPCORSFilter.exposeHeaders)."""
    backend = await world.backend(say("x"))
    cors = ir.Cors(allow_origins=("http://a.test",), expose_headers=("*",), allow_credentials=True)
    client = await world.client_of(make_fleet(make_rule(cors=cors), make_cluster(backend.port)))
    answer = await client.ask(make_request(headers=[("origin", "http://a.test")]))
    assert answer.value("access-control-allow-credentials") == "true"
    assert answer.value("access-control-expose-headers") is None


def replace(kind: Any, value: str) -> ir.PathRewrite:
    return ir.PathRewrite(kind, value)


REWRITES: dict[str, tuple[str, ir.Rewrite]] = {
    "full": ("/full", ir.Rewrite(path=replace("full", "/new/path"))),
    "strip": ("/strip", ir.Rewrite(path=replace("prefix", ""))),
    "longer": ("/longer", ir.Rewrite(path=replace("prefix", "/a/b"))),
    "hostname": ("/hostname", ir.Rewrite(hostname="new.test")),
    "hostpath": ("/hostpath", ir.Rewrite(hostname="new.test", path=replace("prefix", "/x"))),
}


@pytest.mark.parametrize(
    ("kind", "target", "sent", "host"),
    [
        ("full", "/full", "/new/path", "test"), ("full", "/full/x/y?a=b", "/new/path?a=b", "test"),
        ("strip", "/strip", "/", "test"), ("strip", "/strip/", "/", "test"), ("strip", "/strip/x", "/x", "test"),
        ("strip", "/strip/x/y/?q", "/x/y/?q", "test"), ("strip", "/strip/%20x", "/%20x", "test"),
        ("strip", "/strip//x", "/x", "test"), ("strip", "/strip/../strip/x", "/x", "test"),
        ("longer", "/longer", "/a/b", "test"), ("longer", "/longer/x", "/a/b/x", "test"),
        ("longer", "/longer/", "/a/b/", "test"), ("hostname", "/hostname/x", "/hostname/x", "new.test"),
        ("hostpath", "/hostpath/y", "/x/y", "new.test"),
    ],
)  # fmt: skip
async def test_rewrites(world: World, kind: str, target: str, sent: str, host: str) -> None:
    """The whole path, or the whole segments of a prefix; the query stays."""
    prefix, rewrite = REWRITES[kind]
    calls: list[Call] = []

    def note(call: Call) -> bytes:
        calls.append(call)
        return make_response()

    backend = await world.backend(note)
    fleet = make_fleet(
        make_listener(), make_host((prefix, make_rule(rewrite=rewrite))), make_cluster(backend.port)
    )
    client = await world.client_of(fleet)
    assert (await client.get(target)).status == 200
    (call,) = calls
    assert (call.message.target, call.message.value(b"host")) == (sent.encode(), host.encode())


FULL, PREFIX = replace("full", "/new"), replace("prefix", "/new")


@pytest.mark.parametrize(
    ("redirect", "target", "location"),
    [
        (ir.Redirect(hostname="b.test"), "/x?y=1", "http://b.test:8080/x?y=1"),
        (ir.Redirect(301, hostname="b.test"), "/x", "http://b.test:8080/x"),
        (ir.Redirect(303, hostname="b.test"), "/x", "http://b.test:8080/x"),
        (ir.Redirect(307, hostname="b.test"), "/x", "http://b.test:8080/x"),
        (ir.Redirect(308, hostname="b.test"), "/x", "http://b.test:8080/x"),
        (ir.Redirect(scheme="https"), "/x", "https://a/x"),
        (ir.Redirect(scheme="https", port=8443), "/x", "https://a:8443/x"),
        (ir.Redirect(scheme="https", port=443), "/x", "https://a/x"),
        (ir.Redirect(scheme="http", port=80), "/x", "http://a/x"),
        (ir.Redirect(port=80), "/x", "http://a/x"),
        (ir.Redirect(port=9000), "/x", "http://a:9000/x"),
        (ir.Redirect(port=443), "/x", "http://a:443/x"),
        (ir.Redirect(scheme="http"), "/x", "http://a/x"),
        (ir.Redirect(path=FULL), "/x/y?q", "http://a:8080/new?q"),
        (ir.Redirect(path=PREFIX), "/x/y?q", "http://a:8080/new/y?q"),
        (ir.Redirect(path=replace("prefix", "")), "/x/y", "http://a:8080/y"),
        (ir.Redirect(path=replace("prefix", "")), "/x", "http://a:8080/"),
        (ir.Redirect(302, "https", "b.test", 81, PREFIX), "/x/y", "https://b.test:81/new/y"),
    ],
)
async def test_redirects(world: World, redirect: ir.Redirect, target: str, location: str) -> None:
    """Default ports are left out; the host is that of the request, without its port."""
    rule = ir.Rule(route="ns/r", index=0, redirect=redirect)
    client = await world.client_of(make_fleet(make_listener(), make_host(("/x", rule))))
    for method, host in (("GET", "a"), ("HEAD", "a:9999"), ("POST", "a")):
        body = b"x" if method == "POST" else None
        answer = await client.ask(
            make_request(target, method=method, host=host, body=body), head=method == "HEAD"
        )
        assert (answer.status, answer.value("location")) == (redirect.status, location)
        assert (answer.value("content-length"), answer.value("connection")) == ("0", None)


@pytest.mark.parametrize("inner", [False, True])
async def test_header_edits(world: World, inner: bool) -> None:
    """Set replaces, add appends, remove removes all lines, for names in any case; a backendRef's edits come last."""
    ops = ir.HeaderOps(set=(("x-set", "new"),), add=(("x-add", "new"),), remove=("x-gone",))
    edits: dict[str, Any] = {"request_headers": ops, "response_headers": ops}
    outer = {"request_headers": ir.HeaderOps(set=(("x-set", "rule"), ("x-rule", "1")))}
    ref = ir.BackendRef(cluster=CLUSTER, **(edits if inner else {}))
    sent = [("X-Set", "old"), ("x-add", "old"), ("x-gone", "1"), ("X-GONE", "2"), ("X-Keep", "1")]
    calls: list[Call] = []

    def note(call: Call) -> bytes:
        calls.append(call)
        return make_response(headers=sent)

    backend = await world.backend(note)
    rule = make_rule(ref, **(outer if inner else edits))
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    answer = await client.ask(make_request(headers=sent))
    message = calls[0].message
    got = {name: message.values(name.encode()) for name in ("x-set", "x-gone", "x-keep", "x-rule")}
    rules = [b"1"] if inner else []
    assert got == {"x-set": [b"new"], "x-gone": [], "x-keep": [b"1"], "x-rule": rules}
    assert b",".join(message.values(b"x-add")).replace(b" ", b"") == b"old,new"
    said = [
        (name, value) for name, value in answer.headers if name in ("x-set", "x-gone", "x-keep")
    ]
    assert sorted(said) == [("x-keep", "1"), ("x-set", "new")]
    added = ",".join(value for name, value in answer.headers if name == "x-add")
    assert added.replace(" ", "") == "old,new"
    await client.get()
    assert calls[1].message.values(b"x-add") == [b"new"]


CORS = ir.Cors(
    allow_origins=("https://a.test", "https://*.b.test"),
    allow_methods=("GET", "PUT"),
    allow_headers=("X-One", "X-Two"),
    expose_headers=("X-Seen",),
    allow_credentials=True,
    max_age=600,
)
PERMITTED = {"access-control-allow-credentials": "true", "access-control-expose-headers": "X-Seen"}
ANY = ir.Cors(allow_origins=("*",), allow_methods=("*",), allow_headers=("*",))


@pytest.mark.parametrize(
    ("cors", "page", "allowed"),
    [
        *[(CORS, page, page) for page in ("https://a.test", "https://x.b.test")],
        *[
            (CORS, page, None)
            for page in (
                "https://c.test", "http://a.test", "https://a.test:8443", "https://a.test.evil", "null",
                "https://xa.test", "https://b.test", "https://evilb.test",
            )
        ],
        (ANY, "https://x.test", "*"),
    ],
)  # fmt: skip
async def test_cors(world: World, cors: ir.Cors, page: str, allowed: str | None) -> None:
    """Preflights are answered by the proxy, answers get the permission in place of the backend's own, other origins get none."""
    own = (("Access-Control-Allow-Origin", "https://z.test"), ("access-control-max-age", "1"))
    backend = await world.backend(lambda call: make_response(b"x", headers=own if allowed else ()))
    client = await world.client_of(make_fleet(make_rule(cors=cors), make_cluster(backend.port)))
    asked = [
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "x-one"),
        ("origin", page),
    ]
    preflight = await client.ask(make_request(method="OPTIONS", headers=asked))
    assert (preflight.status, preflight.body, backend.count) == (204, b"", 0)
    answer = await client.get(headers=[("origin", page)])
    assert backend.count == 1
    for one in (preflight, answer):
        origins = [value for name, value in one.headers if name == "access-control-allow-origin"]
        assert origins == ([allowed] if allowed else [])
        for name, value in PERMITTED.items():
            assert one.value(name) == (value if allowed == page else None)
    expected = {page: ("GET, PUT", "X-One, X-Two", "600"), "*": ("*", "*", "5"), None: (None,) * 3}
    names = ("allow-methods", "allow-headers", "max-age")
    got = tuple(preflight.value(f"access-control-{name}") for name in names)
    assert got == expected[allowed]


async def test_requests_without_an_origin_are_no_cors(world: World) -> None:
    backend = await world.backend(say("x"))
    client = await world.client_of(make_fleet(make_rule(cors=CORS), make_cluster(backend.port)))
    for method in ("GET", "OPTIONS"):
        answer = await client.ask(make_request(method=method))
        assert (answer.body, answer.value("access-control-allow-origin")) == (b"x", None)
