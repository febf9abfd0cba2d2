"""Host, path and scheme have one form for matching, authorization and forwarding; ambiguous paths are refused."""

from __future__ import annotations

import pytest

from core.backend import Call, make_response
from core.client import Client, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.asking import Asker
from core.traces import spans_since, traced
from core.world import World
from edgefast import ir

ADMIN, OPEN = "ns/admin", "ns/open"
CLOSED = ir.PolicyUnit(name="security/ns/p#authorization", authorization=ir.Authorization(()))
GUARDED = make_rule(route=ADMIN, policies=(CLOSED.name,))


class Site:
    """A client of some hosts, and the heads that their backend received."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.heads: list[tuple[str, str]] = []  # target, host

    def _answer(self, call: Call) -> bytes:
        host = call.message.value(b"host") or b""
        self.heads.append((call.path, host.decode()))
        return make_response()

    async def open(
        self, *parts: ir.Listener | ir.VirtualHost | ir.Rule | ir.PolicyUnit, **http: object
    ) -> Client:
        backend = await self.world.backend(self._answer)
        listeners = () if any(isinstance(one, ir.Listener) for one in parts) else (1,)
        made = [make_listener(**http) for _ in listeners]
        fleet = make_fleet(*made, *parts, make_cluster(backend.port))
        self.port = await self.world.serve(fleet)
        return await self.world.client(self.port)


HOSTS = (
    make_host(GUARDED, hostname="admin.example"),
    make_host(make_rule(route=OPEN), hostname="*.example"),
    CLOSED,
)


@pytest.mark.parametrize(
    ("host", "status", "forwarded"),
    [
        ("admin.example.", 403, None),
        ("ADMIN.example.:8080", 403, None),
        ("shop.example.", 200, "shop.example"),
        ("Shop.example.:8080", 200, "Shop.example:8080"),
        ("shop.example", 200, "shop.example"),
        ("admin.example..", 400, None),
        (".admin.example", 400, None),
        ("admin..example", 400, None),
        (".", 400, None),
    ],
)
async def test_a_dot_behind_a_host(
    world: World, host: str, status: int, forwarded: str | None
) -> None:
    site = Site(world)
    client = await site.open(*HOSTS)
    assert (await client.get("/a", host=host)).status == status
    assert site.heads == ([("/a", forwarded)] if forwarded else [])
    if status != 400:
        assert [line["host"] for line in world.lines()] == [host.replace(".:", ":").rstrip(".")]


async def test_a_dot_behind_an_authority(world: World) -> None:
    site = Site(world)
    await site.open(*HOSTS)
    asker = Asker(await world.client(site.port))
    found = []
    for host in (b"admin.example.", b"shop.example.:80", b"shop.example.."):
        fields = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/")]
        found.append((await asker.ask([*fields, (b":authority", host)])).status)
    assert found == [403, 200, 400]
    assert site.heads == [("/", "shop.example:80")]


async def test_a_dot_among_listeners(world: World) -> None:
    """The most specific listener owns the name."""
    narrow = make_listener("ns/gw/narrow", hostname="admin.example")
    site = Site(world)
    client = await site.open(
        narrow,
        make_listener(),
        make_host(GUARDED, listener="ns/gw/narrow"),
        make_host(make_rule(route=OPEN)),
        CLOSED,
    )
    assert (await client.get(host="admin.example.")).status == 403
    assert (await client.get(host="example.")).status == 200


PATHS = (
    make_host(
        make_rule(route=OPEN),
        ("/admin", GUARDED),
        ("/app", make_rule(route="ns/app")),
        ("/v;1", make_rule(route="ns/v1")),
        ("/v;1/admin", GUARDED),
    ),
    CLOSED,
)


@pytest.mark.parametrize(
    ("setting", "asked", "status", "forwarded"),
    [
        ("keep", "/admin;x", 400, None),
        ("keep", "/admin;x/y", 400, None),
        ("keep", "/;x/admin", 400, None),
        ("keep", "/admin/a;x", 403, None),
        ("keep", "/a;id=15", 200, "/a;id=15"),
        ("keep", "/app/login;jsessionid=1?a=;", 200, "/app/login;jsessionid=1?a=;"),
        ("keep", "/admin%3Bx", 200, "/admin%3Bx"),
        ("keep", "/a;/../b", 200, "/b"),
        ("keep", "/v;1/a", 200, "/v;1/a"),
        ("keep", "/v;1/admin;x", 400, None),
        ("keep", "/v;1/admin", 403, None),
        ("strip", "/admin;x", 403, None),
        ("strip", "/;x/admin;y/z", 403, None),
        ("strip", "/app;a/b;c/;d", 200, "/app/b/"),
        ("strip", "/%61;a|b", 200, "/a"),
        ("strip", "/a%3Bb;c", 200, "/a%3Bb"),
        ("strip", "/a;b/..;/c", 400, None),
        ("reject", "/admin;x", 400, None),
        ("reject", "/a;/../b", 400, None),
        ("reject", "/a%3B?;", 200, "/a%3B?;"),
    ],
)
async def test_path_parameters(
    world: World, setting: str, asked: str, status: int, forwarded: str | None
) -> None:
    site = Site(world)
    client = await site.open(*PATHS, path_parameters=setting)
    assert (await client.get(asked)).status == status
    assert site.heads == ([(forwarded, "test")] if forwarded else [])
    assert world.counters["path_refused"] == (status == 400)


async def test_a_regular_expression_takes_no_parameters_by_accident(world: World) -> None:
    """No rule matches the path without its parameters."""
    match = ir.Match(kind="regex", path="/files/.*\\.png")
    host = ir.VirtualHost(
        listener="ns/gw/http",
        hostname="*",
        rules=(make_rule(),),
        entries=(ir.Entry(match=match, rule=0),),
    )
    client = await Site(world).open(host)
    assert (await client.get("/files/a.png")).status == 200
    assert (await client.get("/files/secret;.png")).status == 400


@pytest.mark.parametrize(
    ("setting", "asked", "status", "forwarded"),
    [
        ("Allow", '/a?q=|{}^\\"`', 200, '/a?q=|{}^\\"`'),
        ("Allow", "/a|b", 200, "/a%7Cb"),
        ("Allow", "/admin|x/../y", 200, "/y"),
        ("Allow", "/a|b/%61dmin", 403, None),
        ("Allow", "/a%7cb/admin", 403, None),
        ("Allow", "/a{", 400, None),
        ("Allow", "/a?<", 400, None),
        ("Reject", "/a?q={}", 400, None),
        ("Reject", "/a|b", 400, None),
    ],
)
async def test_raw_characters(
    world: World, setting: str, asked: str, status: int, forwarded: str | None
) -> None:
    site = Site(world)
    host = make_host(make_rule(route=OPEN), ("/a%7Cb/admin", GUARDED))
    client = await site.open(host, CLOSED, raw_characters=setting)
    assert (await client.get(asked)).status == status
    assert site.heads == ([(forwarded, "test")] if forwarded else [])
    if status != 400:
        assert [line["path"] for line in world.lines()] == [asked]


async def test_raw_characters_in_http2(world: World) -> None:
    site = Site(world)
    await site.open(make_rule())
    asker = Asker(await world.client(site.port))
    found = []
    for path in (b'/a|b?|{}^\\"`', b"/a{", b"/?<"):
        fields = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", path)]
        found.append((await asker.ask([*fields, (b":authority", b"test")])).status)
    assert found == [200, 400, 400]
    assert site.heads == [('/a%7Cb?|{}^\\"`', "test")]


async def test_raw_characters_do_not_make_a_path_too_long_to_hold(world: World) -> None:
    """The longest possible request line, with three bytes for each character."""
    limits = {"request_line": 262144, "request_head": 262144}
    client = await Site(world).open(make_rule(), **limits)
    assert (await client.get("/" + "|" * 262000)).status == 414
    assert (await client.get("/" + "|" * 80000)).status == 200


TRUSTED = ir.ClientAddress(trusted_cidrs=("127.0.0.0/8",))


@pytest.mark.parametrize(
    ("address", "said", "https"),
    [
        (ir.ClientAddress(), [("x-forwarded-proto", "https")], False),
        (ir.ClientAddress(trusted_cidrs=("10.0.0.0/8",)), [("x-forwarded-proto", "https")], False),
        (TRUSTED, [("x-forwarded-proto", "https")], True),
        (TRUSTED, [("X-Forwarded-Proto", "HTTPS"), ("x-forwarded-for", "192.0.2.1")], True),
        (TRUSTED, [("x-forwarded-proto", "http")], False),
        (TRUSTED, [("x-forwarded-proto", "https, http")], False),
        (TRUSTED, [("x-forwarded-proto", "https")] * 2, False),
        (TRUSTED, [("x-forwarded-proto", "ftp")], False),
        (TRUSTED, [], False),
        (ir.ClientAddress(trusted_hops=1), [("x-forwarded-proto", "https")], False),
        (
            ir.ClientAddress(
                trusted_hops=1
            ),  # a balancer may append the address and pass the scheme on
            [("x-forwarded-for", "192.0.2.1"), ("x-forwarded-proto", "https")],
            False,
        ),
        (
            ir.ClientAddress(trusted_hops=1, trusted_cidrs=("127.0.0.0/8",)),
            [("x-forwarded-for", "192.0.2.1"), ("x-forwarded-proto", "https")],
            True,
        ),
    ],
)
async def test_the_scheme_of_a_trusted_proxy(
    world: World, address: ir.ClientAddress, said: list[tuple[str, str]], https: bool
) -> None:
    seen = []

    def keep(call: Call) -> bytes:
        seen.append(call.message.values(b"x-forwarded-proto"))
        return make_response()

    backend = await world.backend(keep)
    host = make_host(
        make_rule(),
        ("/old", ir.Rule(route="ns/r", index=0, redirect=ir.Redirect(status=301, hostname="new"))),
        ("/port", ir.Rule(route="ns/p", index=0, redirect=ir.Redirect(status=301, port=8443))),
    )
    fleet = make_fleet(make_listener(client_address=address), host, make_cluster(backend.port))
    client = await world.client_of(fleet)
    scheme = "https" if https else "http"
    assert (await client.get(headers=said)).status == 200
    assert seen == [[scheme.encode()]]
    found = [
        (await client.get(path, headers=said)).value("location")
        for path in ("/old", "/port", "/a%2Fb")
    ]
    port = "" if https else ":8080"
    assert found == [
        f"{scheme}://new{port}/old",
        f"{scheme}://test:8443/port",
        f"{scheme}://test/a/b",
    ]


async def test_spans_have_the_scheme_of_a_trusted_proxy(world: World) -> None:
    backend = await world.backend(lambda call: make_response())
    fleet = make_fleet(traced(client_address=TRUSTED), make_rule(), make_cluster(backend.port))
    client = await world.client_of(fleet)
    for proto in ("https", "http"):
        await client.get(headers=[("x-forwarded-proto", proto)])
    assert [one.tls for one in spans_since(world, 0) if hasattr(one, "tls")] == [1, 0]


async def test_a_session_cookie_is_secure_where_the_client_speaks_https(world: World) -> None:
    backend = await world.backend(lambda call: make_response())
    session = ir.SessionPersistence(name="s")
    fleet = make_fleet(
        make_listener(client_address=TRUSTED),
        make_rule(ir.BackendRef(cluster=CLUSTER, session=session)),
        make_cluster(backend.port),
    )
    client = await world.client_of(fleet)
    cookies = [
        (await client.ask(make_request(headers=[("x-forwarded-proto", proto)]))).value("set-cookie")
        for proto in ("http", "https")
    ]
    assert ["; Secure" in (one or "") for one in cookies] == [False, True]
