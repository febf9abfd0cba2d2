"""Authorization: who is let in by address, headers, method and path, and by which rule; what is in doubt lets nobody in."""

from __future__ import annotations

import ipaddress
import random

import pytest

from core.backend import Call
from core.client import make_request
from core.fleets import encode, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.policies import CELLS, NAME, access, guarded, serve, status
from core.world import World
from edgefast import ir
from edgefast.explain.access import evaluate_access
from edgefast.explain.head import Head, scan_head
from edgefast.table.shards import make_resource

LOCAL = ("127.0.0.0/8",)
TRUST = {"client_address": ir.ClientAddress(trusted_hops=1)}


async def test_who_is_not_let_in_gets_403_without_a_body(world: World) -> None:
    client = await guarded(world, ir.AccessRule(allow=True, sources=("10.0.0.0/8",)))
    answer = await client.ask(make_request())
    assert (answer.status, answer.body, answer.value("content-length")) == (403, b"", "0")
    (line,) = world.lines()
    assert (line["flags"], line["policy"]) == ("DENY", NAME)
    assert "policy_rule" not in line  # none held
    assert "backend" not in line or line["tries"] == 0
    assert world.counters.policy(CELLS) == {"denied": 1}


async def test_the_first_rule_that_holds_decides(world: World) -> None:
    client = await guarded(
        world,
        ir.AccessRule(allow=False, name='no "guests"', headers=(("x-user", ("guest", "nobody")),)),
        ir.AccessRule(allow=True, methods=("GET", "PUT")),
        ir.AccessRule(allow=False, paths=(("exact", "/"),)),
        allow=True,
    )
    assert await status(client) == 200
    assert await status(client, headers=[("X-User", "guest")]) == 403
    assert await status(client, headers=[("x-user", "Guest")]) == 200
    assert await status(client, method="DELETE") == 403
    assert await status(client, "/a", method="DELETE") == 200
    lines = world.lines()
    assert [line.get("policy_rule") for line in lines] == [None, 'no "guests"', None, 2, None]
    assert [line.get("policy") for line in lines] == [None, NAME, None, NAME, None]
    assert world.counters.policy(CELLS) == {"allowed": 3, "denied": 2}


@pytest.mark.parametrize(
    ("kind", "path", "held", "missed"),
    [
        ("exact", "/a", ["/a", "/%61", "/b/../a"], ["/a/", "/", "/A", "/ab"]),
        ("prefix", "/a", ["/a", "/a/", "/a/b", "/a?q=/", "/b/%2e%2e/a/c"], ["/ab", "/", "/b/a"]),
        ("prefix", "", ["/", "/a", "/a/b"], []),
        ("prefix", "/", ["/", "/a", "/a/b"], []),
        ("regex", "/v[0-9]+/.*", ["/v1/", "/v12/a"], ["/v/", "/x/v1/", "/v1"]),
    ],
)
async def test_paths(
    world: World, kind: ir.PathKind, path: str, held: list[str], missed: list[str]
) -> None:
    client = await guarded(world, ir.AccessRule(allow=True, paths=(("exact", "/0"), (kind, path))))
    assert [await status(client, one) for one in held] == [200] * len(held)
    assert [await status(client, one) for one in missed] == [403] * len(missed)


async def test_an_asterisk_is_what_the_match_saw(world: World) -> None:
    client = await guarded(world, ir.AccessRule(allow=False, paths=(("exact", "/"),)), allow=True)
    assert await status(client, "*", method="OPTIONS") == 403


async def test_all_conditions_must_hold(world: World) -> None:
    rule = ir.AccessRule(
        allow=True,
        sources=LOCAL,
        headers=(("x-a", ("1",)), ("x-b", ("1", "2"))),
        methods=("POST",),
        paths=(("prefix", "/a"),),
    )
    client = await guarded(world, rule)
    both = [("x-a", "1"), ("x-b", "2")]
    assert await status(client, "/a", method="POST", headers=both) == 200
    assert await status(client, "/b", method="POST", headers=both) == 403
    assert await status(client, "/a", method="GET", headers=both) == 403
    assert await status(client, "/a", method="POST", headers=both[:1]) == 403


#: Lines of a request; whether a rule that allows x-role lets it in, and whether one that denies it keeps it out.
LINES = [
    ([("x-role", "admin")], True, True),
    ([("x-role", "admin"), ("X-Role", "admin")], False, True),
    ([("x-role", "admin"), ("x-role", "")], False, True),
    ([("x-role", "user"), ("x-role", "admin")], False, True),
    ([("x-role", "user, admin")], False, True),
    ([("x-role", "user,admin"), ("x-role", "guest")], False, True),
    ([("x-role", "a"), ("x-role", "b")], False, True),  # joined: "a,b"
    ([("x-role", "a,b")], True, True),
    ([("x-role", "administrator")], False, False),
    ([("x-role", "")], False, False),
    ([], False, False),
]
#: The same where names with underscores reach the backend, which may take them for x-role.
SPELLINGS = [
    ([("X_Role", "admin")], False, True),
    ([("x.role", "admin")], False, True),
    ([("x-role", "user"), ("x_role", "admin")], False, True),
    ([("x-role", "admin"), ("X_Role", "user")], False, True),
    ([("x_role", "user"), ("x-role", "admin")], False, True),
    ([("x-role", "a"), ("x_role", "b")], False, True),  # joined: "a,b"
    ([("x_role", "a")], False, False),
    ([("x_rol", "admin"), ("xxrole", "admin")], False, False),
    ([("x-role", "admin"), ("x-roles", "user")], True, True),
]


@pytest.mark.parametrize(
    ("headers", "allowed", "denied", "underscores"),
    [*((*row, "Reject") for row in LINES), *((*row, "Allow") for row in SPELLINGS)],
)
async def test_lines_and_spellings_of_one_name_let_nobody_in(
    world: World, headers: list[tuple[str, str]], allowed: bool, denied: bool, underscores: str
) -> None:
    wanted = (("x-role", ("admin", "a,b")),)
    client = await guarded(
        world,
        ir.AccessRule(allow=True, headers=wanted, paths=(("exact", "/allow"),)),
        ir.AccessRule(allow=False, headers=wanted, paths=(("exact", "/deny"),)),
        ir.AccessRule(allow=True, paths=(("exact", "/deny"),)),
        underscores=underscores,
    )
    assert await status(client, "/allow", headers=headers) == (200 if allowed else 403)
    assert await status(client, "/deny", headers=headers) == (403 if denied else 200)


@pytest.mark.parametrize("name", ["host", ":authority"])
async def test_hosts_are_no_condition(world: World, name: str) -> None:
    """A.Example, a.example. and a.example:80 are one."""
    bad = access(ir.AccessRule(allow=False, headers=((name, ("a",)),)), allow=True)
    client = await serve(world, rule={"policies": (NAME,)})
    ((_, refused, error),) = world.send([make_resource("policy", NAME, encode(bad))], [], "v")
    assert (refused, "hostnames" in error) == (NAME, True)
    assert await status(client) == 500


@pytest.mark.parametrize(
    ("kind", "path", "denied", "passed"),
    [
        (
            "prefix",
            "/admin",
            [
                "/admin;a/x",
                "/admin;",
                "/;a/admin/",
                "/admin%3Ba/x",
                "/%61dmin;a=b;c/x",
                "/admin;/x",
            ],
            ["/adminx;a", "/a;/admin", "/x;y=/admin", "/admi%6E1;"],
        ),
        ("exact", "/admin", ["/admin;a=b", "/;x/admin", "/admin%3bv"], ["/admin;a/x", "/admin/;"]),
        ("exact", "/a@b", ["/a%40b", "/a%40b;x", "/a@b"], ["/a%2540b", "/ab"]),
        ("exact", "/a%40b", ["/a@b", "/a%40b"], ["/a"]),
        ("prefix", "/caf%C3%A9", ["/caf%c3%a9/x", "/caf%C3%A9;"], ["/caf", "/cafe"]),
        ("exact", "/a;b", ["/a;b", "/a%3Bb"], ["/a", "/a;c", "/a%3Bc"]),
        (
            "regex",
            "/admin(/.*)?",
            ["/admin;a/x", "/admin;", "/admin/;x"],
            ["/adminx;", "/x;/admin"],
        ),
        ("regex", "/a@b", ["/a%40b"], ["/a%2540b"]),
        ("prefix", "", ["/;", "/a;b", "/%40"], []),
    ],
)
async def test_paths_that_servers_read_as_another_are_denied(
    world: World, kind: ir.PathKind, path: str, denied: list[str], passed: list[str]
) -> None:
    """And let in by no rule that they would not have been let in by."""
    deny = ir.AccessRule(allow=False, methods=("GET",), paths=((kind, path),))
    allow = ir.AccessRule(allow=True, methods=("PUT",), paths=((kind, path),))
    client = await guarded(world, deny, allow, ir.AccessRule(allow=True, methods=("GET",)))
    assert [await status(client, one) for one in denied] == [403] * len(denied)
    assert [await status(client, one) for one in passed] == [200] * len(passed)
    read = [one for one in denied if judge_path(kind, path, one) is False]
    assert [await status(client, one, method="PUT") for one in read] == [403] * len(read)


def judge_path(kind: ir.PathKind, path: str, asked: str) -> bool:
    """Tell whether it is the rule's as it is written, once its escapes are in normal form."""
    rules = (ir.AccessRule(allow=True, paths=((kind, path),)),)
    raw = b"GET %b HTTP/1.1\r\nhost: a\r\n\r\n" % asked.encode()
    head = scan_head(raw, ir.HttpSettings(), tls=False)
    assert isinstance(head, Head)
    return evaluate_access(ir.Authorization(rules), head.request(), "").allow


@pytest.mark.parametrize(
    ("path", "want"),
    [("/admin%2Fx", 403), ("/x%2F..%2Fadmin", 403), ("/x%5C..%5Cadmin/", 403)]
    + [("/x%2F..;%2Fy", 403), ("/x%2Fadmin", 200), ("/x%2F..", 200)],
)
async def test_slashes_that_stay_escaped(world: World, path: str, want: int) -> None:
    client = await guarded(
        world,
        ir.AccessRule(allow=False, paths=(("prefix", "/admin"),)),
        allow=True,
        escaped_slashes="KeepUnchanged",
    )
    assert await status(client, path) == want


async def test_what_rules_ask_for_is_not_brought_in_behind_a_body(world: World) -> None:
    seen: list[Call] = []

    def keep(call: Call) -> bytes:
        seen.append(call)
        return b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"

    backend = await world.backend(keep)
    rules = (
        ir.AccessRule(allow=False, headers=(("x-role", ("guest",)),)),
        ir.AccessRule(allow=True, headers=(("x-plan", ("gold",)),), methods=("GET",)),
    )
    rule = make_rule(policies=(NAME,))
    fleet = make_fleet(
        make_listener(underscores="Allow"),
        make_host(rule),
        make_cluster(backend.port),
        access(*rules, allow=True),
    )
    client = await world.client_of(fleet)
    lines = b"x-role: guest\r\nX_Role: guest\r\nx-sum: 1\r\nX-Plan: gold\r\nx-sum2: 2\r\n"
    head = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
    assert (await client.ask(head + b"0\r\n" + lines + b"\r\n")).status == 200
    assert [one.message.trailers for one in seen] == [((b"x-sum", b"1"), (b"x-sum2", b"2"))]


async def test_the_client_is_whom_the_settings_believe(world: World) -> None:
    client = await guarded(world, ir.AccessRule(allow=True, sources=("192.0.2.0/24",)), **TRUST)
    for address, want in (("192.0.2.9", 200), ("192.0.3.9", 403), ("::ffff:192.0.2.1", 200)):
        assert await status(client, headers=[("x-forwarded-for", address)]) == want
    assert await status(client, headers=[("x-forwarded-for", "192.0.2.9, 198.51.100.1")]) == 403


async def test_ranges_are_those_of_a_list(world: World) -> None:
    """A binary search over merged ranges says what a look at each of them says."""
    chance = random.Random(17)
    texts = ["0.0.0.0/32", "255.255.255.255/32", "::/128", "ffff::/16", "::ffff:198.51.100.0/120"]
    for _ in range(120):
        first = chance.randrange(1 << 32)
        texts.append(f"{ipaddress.IPv4Address(first)}/{chance.choice((4, 8, 16, 24, 31, 32))}")
        wide = ipaddress.IPv6Address(chance.randrange(1 << 128))
        texts.append(f"{wide}/{chance.choice((7, 16, 48, 64, 65, 127, 128))}")
    texts = [str(ipaddress.ip_network(one, strict=False)) for one in texts]
    client = await guarded(world, ir.AccessRule(allow=True, sources=tuple(texts)), **TRUST)
    nets = [ipaddress.ip_network(one) for one in texts if not one.startswith("::ffff:")]
    nets.append(ipaddress.ip_network("198.51.100.0/24"))
    asked: list[ipaddress.IPv4Address | ipaddress.IPv6Address] = []
    for _ in range(150):
        net = chance.choice(nets)
        last = int(net.broadcast_address) + chance.choice((-1, 0, 1))
        asked.append(type(net.broadcast_address)(min(last, (1 << net.max_prefixlen) - 1)))
    asked += [ipaddress.IPv4Address(chance.randrange(1 << 32)) for _ in range(50)]
    for address in asked:
        want = any(address in net for net in nets if net.version == address.version)
        got = await status(client, headers=[("x-forwarded-for", str(address))])
        assert got == (200 if want else 403), address


async def test_a_range_of_ipv6_has_no_ipv4_in_it(world: World) -> None:
    client = await guarded(world, ir.AccessRule(allow=True, sources=("::/0",)), **TRUST)
    assert await status(client, headers=[("x-forwarded-for", "2001:db8::1")]) == 200
    assert await status(client, headers=[("x-forwarded-for", "192.0.2.1")]) == 403


async def test_all_authorizations_of_a_rule_must_let_in(world: World) -> None:
    other = "security/infra/q#authorization"
    client = await serve(
        world,
        access(ir.AccessRule(allow=False, methods=("PUT",)), allow=True, name=other),
        access(ir.AccessRule(allow=True, headers=(("x-a", ("1",)),))),
        rule={"policies": (other, NAME)},
    )
    assert await status(client, headers=[("x-a", "1")]) == 200
    assert await status(client, method="PUT", headers=[("x-a", "1")]) == 403
    assert await status(client) == 403
    assert [line.get("policy") for line in world.lines()] == [None, other, NAME]
    assert world.counters.policy("security/infra/q\tauthorization") == {"allowed": 2, "denied": 1}


async def test_who_is_refused_is_counted_by_no_limit(world: World) -> None:
    limit = ir.RateLimit(name="ns/l#0", counter="c", requests=1, unit=3600)
    rule = {"policies": (NAME,), "rate_limits": (limit,)}
    client = await serve(world, access(ir.AccessRule(allow=True, methods=("GET",))), rule=rule)
    assert [await status(client, method=one) for one in ("PUT", "PUT", "GET", "GET")] == [
        403,
        403,
        200,
        429,
    ]


async def test_redirects_are_for_those_who_are_let_in(world: World) -> None:
    rule = {"policies": (NAME,), "redirect": ir.Redirect(status=301, hostname="other.test")}
    client = await serve(world, access(ir.AccessRule(allow=True, methods=("GET",))), rule=rule)
    assert await status(client) == 301
    assert await status(client, method="PUT") == 403


async def test_grpc_hears_it_as_grpc(world: World) -> None:
    client = await guarded(world)
    grpc = [("content-type", "application/grpc"), ("te", "trailers")]
    answer = await client.ask(make_request(method="POST", headers=grpc))
    assert (answer.status, answer.value("grpc-status")) == (200, "7")
