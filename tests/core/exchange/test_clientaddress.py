"""Which client address is believed (PROXY protocol, trusted hops, trusted CIDRs), and the headers that the proxy adds, replaces and removes."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

import pytest

from core.backend import Call, make_response
from core.client import Client, Gone, make_request
from core.fleets import CLUSTER, LISTENER, make_cluster, make_fleet, make_listener, make_rule
from core.world import World
from edgefast import ir
from origin.message import Message
from wire.harness.preambles import BAD, GOOD, V1, proxy_v2

UUID4 = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
OWN_ID = "0b5f3a52-9a4e-4d5b-8d2e-0c5d3e3a9f11"
SENDERS = ("127.0.0.0/8",)
CIDRS = ("127.0.0.0/8", "2.2.2.0/24", "2001:db8::/32")
SETTINGS: dict[str, dict[str, Any]] = {
    "off": {},
    "optional": {"proxy_protocol": "optional", "proxy_senders": SENDERS},
    "required": {"proxy_protocol": "required", "proxy_senders": SENDERS},
    "one-hop": {"trusted_hops": 1},
    "two-hops": {"trusted_hops": 2},
    "cidrs": {"trusted_cidrs": CIDRS},
    "cidrs-elsewhere": {"trusted_cidrs": ("10.0.0.0/8",)},
    "cidrs-mapped": {"trusted_cidrs": ("::ffff:127.0.0.0/104", "::ffff:2.2.2.0/120")},
    "cidrs-wide": {"trusted_cidrs": ("::/0",)},
    "hop-from-anyone-in": {"trusted_hops": 1, "trusted_cidrs": SENDERS},
    "hop-from-elsewhere": {"trusted_hops": 1, "trusted_cidrs": ("10.0.0.0/8",)},
    "proxy-and-hop": {"proxy_protocol": "required", "proxy_senders": SENDERS, "trusted_hops": 1},
}
#: A rule for X-Forwarded-Host: internal, before the rule for all requests.
HOST = ir.VirtualHost(
    listener=LISTENER,
    hostname="*",
    rules=(make_rule(), make_rule(status=418)),
    entries=(
        ir.Entry(
            match=ir.Match(
                kind="prefix",
                path="/told",
                headers=(ir.ValueMatch(name="x-forwarded-host", value="internal"),),
            ),
            rule=1,
        ),
        ir.Entry(match=ir.Match(kind="prefix", path=""), rule=0),
    ),
)


class Site:
    """A port with one setting, and what its backend received."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.seen: list[Message] = []

    async def open(self, setting: str) -> Site:
        def answer(call: Call) -> bytes:
            self.seen.append(call.message)
            return make_response(b"ok")

        backend = await self.world.backend(answer)
        listener = make_listener(client_address=ir.ClientAddress(**SETTINGS[setting]))
        self.port = await self.world.serve(make_fleet(listener, HOST, make_cluster(backend.port)))
        return self

    async def told(self, first: bytes = b"", **sent: str) -> tuple[str, str, str]:
        """(x-forwarded-for, x-edge-internal, x-edge-external-address), the same for two requests of a connection."""
        headers = [(name.replace("_", "-"), value) for name, value in sent.items()]
        client = await self.world.client(self.port)
        for data in (first + make_request(headers=headers), make_request(headers=headers)):
            assert (await client.ask(data)).status == 200
        one, two = (claims(message) for message in self.seen[-2:])
        assert one == two, "the second request of the connection differs"
        return one


def claims(message: Message) -> tuple[str, str, str]:
    names = (b"x-forwarded-for", b"x-edge-internal", b"x-edge-external-address")
    found = [(message.value(name) or b"").decode() for name in names]
    return found[0].replace(" ", ""), found[1], found[2]


async def statuses(client: Client) -> list[int]:
    """The statuses of all answers until the connection ends."""
    found: list[int] = []
    try:
        while True:
            found.append((await client.response()).status)
    except (Gone, OSError):
        return found


@pytest.mark.parametrize(
    ("setting", "forwarded", "client"),
    [
        ("off", "1.1.1.1", "127.0.0.1"),
        ("one-hop", "1.1.1.1", "1.1.1.1"),
        ("one-hop", "9.9.9.9, 1.1.1.1", "1.1.1.1"),
        ("two-hops", "9.9.9.9, 1.1.1.1, 2.2.2.2", "1.1.1.1"),
        ("cidrs", "9.9.9.9, 1.1.1.1, 2.2.2.2", "1.1.1.1"),
        ("cidrs", "1.1.1.1, 2001:db8::7, 2.2.2.9", "1.1.1.1"),
        ("cidrs", "1.1.1.1", "1.1.1.1"),
        ("cidrs", "9.9.9.9, ::ffff:1.1.1.1, ::FFFF:2.2.2.2", "1.1.1.1"),
        ("cidrs", "9.9.9.9, ::ffff:101:101, ::ffff:202:202", "1.1.1.1"),
        ("cidrs-mapped", "9.9.9.9, 1.1.1.1, 2.2.2.2", "1.1.1.1"),
        ("cidrs-wide", "1.1.1.1", "127.0.0.1"),
        ("one-hop", "::ffff:1.1.1.1", "1.1.1.1"),
        ("one-hop", "2001:DB8:0::1", "2001:db8::1"),
        ("cidrs-elsewhere", "1.1.1.1", "127.0.0.1"),
        ("hop-from-anyone-in", "9.9.9.9, 1.1.1.1", "1.1.1.1"),
        ("hop-from-elsewhere", "9.9.9.9, 1.1.1.1", "127.0.0.1"),
    ],
)
async def test_trusted_proxies(world: World, setting: str, forwarded: str, client: str) -> None:
    """The client is the first address from the right that no trusted proxy added."""
    site = await Site(world).open(setting)
    wanted = forwarded.replace(" ", "") + ",127.0.0.1"
    assert await site.told(x_forwarded_for=forwarded) == (wanted, "", client)


@pytest.mark.parametrize("setting", ["one-hop", "two-hops", "cidrs"])
@pytest.mark.parametrize("forwarded", ["junk", "1.1.1.1, junk", ", ,", "unknown", "1.1.1.1:80"])
async def test_unreadable_lists_do_no_harm(world: World, setting: str, forwarded: str) -> None:
    site = await Site(world).open(setting)
    _, internal, external = await site.told(x_forwarded_for=forwarded)
    assert internal == ""
    ipaddress.ip_address(external)


#: Headers in which a proxy describes the client's request.
CLAIMS = [
    ("Forwarded", "for=9.9.9.9;host=internal"), ("X-Real-IP", "9.9.9.9"), ("x-forwarded-host", "internal"),
    ("X-Forwarded-Port", "443"), ("X-FORWARDED-CLIENT-CERT", "By=spiffe://me"), ("X-Original-URL", "/admin"),
    ("X-Original-URI", "/admin"), ("X-Original-Host", "internal"), ("X-Rewrite-URL", "/admin"),
]  # fmt: skip
INNOCENT = [("X-Forwarded", "1"), ("X-Original-Name", "a.txt"), ("X-Real-IPs", "2"), ("From", "me")]


@pytest.mark.parametrize(
    ("setting", "forwarded", "passed"),
    [
        ("off", "", False),
        ("off", "1.1.1.1", False),
        ("one-hop", "1.1.1.1", True),
        ("one-hop", "", False),
        ("two-hops", "1.1.1.1", False),
        ("two-hops", "1.1.1.1, 2.2.2.2", True),
        ("cidrs", "", True),
        ("cidrs", "1.1.1.1", True),
        ("cidrs-elsewhere", "1.1.1.1", False),
        ("hop-from-anyone-in", "1.1.1.1", True),
        ("hop-from-elsewhere", "1.1.1.1", False),
    ],
)
async def test_headers_of_a_proxy_count_when_it_is_trusted(
    world: World, setting: str, forwarded: str, passed: bool
) -> None:
    """Matches use them and the backend gets them unchanged, or neither does."""
    site = await Site(world).open(setting)
    headers = [("X-Forwarded-For", forwarded)] if forwarded else []
    client = await world.client(site.port)
    request = make_request(headers=[*CLAIMS, *INNOCENT, *headers])
    assert (await client.ask(request)).status == 200
    matched = await client.get("/told", headers=[("x-forwarded-host", "internal"), *headers])
    assert matched.status == (418 if passed else 200)
    message = site.seen[0]
    for name, value in CLAIMS:
        assert message.value(name.lower().encode()) == (value.encode() if passed else None), name
    for name, value in INNOCENT:
        assert message.value(name.lower().encode()) == value.encode(), name


@pytest.mark.parametrize("setting", ["optional", "required"])
@pytest.mark.parametrize("name", GOOD)
async def test_proxy_protocol(world: World, name: str, setting: str) -> None:
    """The source that it names is the peer for all requests of the connection."""
    block, client = GOOD[name]
    internal = client.startswith(("10.", "127."))
    wanted = (client, "true" if internal else "", "" if internal else client)
    assert await (await Site(world).open(setting)).told(block) == wanted


@pytest.mark.parametrize("name", ["v1-tcp4", "v2-tlv", "v1-unknown", "v2-local"])
async def test_proxy_protocol_in_pieces(world: World, name: str) -> None:
    """Cut at every byte, with the request directly behind it."""
    site = await Site(world).open("required")
    block, address = GOOD[name]
    data = block + make_request()
    clients = [await world.client(site.port) for _ in range(len(block) + 2)]
    for at, client in enumerate(clients, 1):
        await client.send(data[:at])
    await world.turns()
    for at, client in enumerate(clients, 1):
        await client.send(data[at:])
        assert (await client.response()).status == 200
    assert {claims(message)[0] for message in site.seen} == {address}


@pytest.mark.parametrize("setting", ["optional", "required"])
@pytest.mark.parametrize("name", BAD)
async def test_broken_proxy_protocol(world: World, name: str, setting: str) -> None:
    """The connection ends, with a 4xx answer at most; the backend gets no request."""
    site = await Site(world).open(setting)
    client = await world.client(site.port)
    client.sock.send(BAD[name] + make_request())
    assert all(400 <= status < 500 for status in await statuses(client))
    assert site.seen == []


@pytest.mark.parametrize(
    ("setting", "first"), [("required", b""), ("off", V1), ("off", proxy_v2("192.0.2.8"))]
)
async def test_a_block_is_needed_or_refused(world: World, setting: str, first: bytes) -> None:
    site = await Site(world).open(setting)
    client = await world.client(site.port)
    await client.send(first + make_request())
    assert set(await statuses(client)) <= {400}
    assert site.seen == []


async def test_optional_means_optional(world: World) -> None:
    """A method that begins like PROXY is not a PROXY line."""
    site = await Site(world).open("optional")
    assert await site.told() == ("127.0.0.1", "true", "")
    client = await world.client(site.port)
    assert (await client.ask(make_request(method="PROPFIND"))).status == 200


async def test_proxy_protocol_and_a_hop(world: World) -> None:
    site = await Site(world).open("proxy-and-hop")
    told = await site.told(V1, x_forwarded_for="1.1.1.1")
    assert told == ("1.1.1.1,192.0.2.7", "", "1.1.1.1")


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, {"x-edge-internal": "true", "x-forwarded-proto": "http", "host": "A.test:1"}),
        ({"x-request-id": OWN_ID}, {"x-request-id": OWN_ID}),  # internal clients may correlate
        ({"x-edge-internal": "false"}, {"x-edge-internal": "true"}),
        ({"x-edge-external-address": "1.2.3.4"}, {"x-edge-external-address": None}),
        (
            {
                "x-forwarded-for": "8.8.8.8", "x-forwarded-proto": "https", "x-edge-internal": "true",
                "x-edge-external-address": "6.6.6.6", "x-edge-expected-rq-timeout-ms": "1",
            },
            {
                "x-forwarded-for": "8.8.8.8,127.0.0.1", "x-forwarded-proto": "http", "x-edge-internal": None,
                "x-edge-external-address": "127.0.0.1", "x-edge-expected-rq-timeout-ms": "15000",
            },
        ),
        (dict.fromkeys(
            ("accept", "accept-encoding", "authorization", "cookie", "range", "if-none-match", "user-agent",
             "x-any", "max-forwards", "content-type", "proxy-authorization", "dnt"), "a=b; c"
         ), None),
    ],
)  # fmt: skip
async def test_headers_of_a_request(
    world: World, sent: dict[str, str], expected: dict[str, str | None] | None
) -> None:
    """expected: headers that the backend gets; None: those that were sent."""
    site = await Site(world).open("off")
    client = await world.client(site.port)
    request = make_request(host="A.test:1", headers=list(sent.items()))
    assert (await client.ask(request)).status == 200
    (message,) = site.seen
    for name, value in (sent if expected is None else expected).items():
        got = [one.replace(b" ", b"") for one in message.values(name.encode())]
        assert got == ([] if value is None else [value.replace(" ", "").encode()]), name
    if "x-request-id" not in sent:
        assert UUID4.fullmatch(message.value(b"x-request-id") or b"")
    assert message.value(b"via") is None


async def test_the_id_of_an_external_request_is_replaced(world: World) -> None:
    site = await Site(world).open("off")
    await site.told(x_forwarded_for="8.8.8.8", x_request_id=OWN_ID)
    ids = {message.value(b"x-request-id") for message in site.seen}
    assert len(ids) == 2 and OWN_ID.encode() not in ids


async def test_several_forwarded_for_lines_are_one_list(world: World) -> None:
    site = await Site(world).open("off")
    client = await world.client(site.port)
    lines = [("X-Forwarded-For", "1.1.1.1, 2.2.2.2"), ("x-forwarded-for", "3.3.3.3")]
    await client.ask(make_request(headers=lines))
    joined = b",".join(site.seen[0].values(b"x-forwarded-for")).replace(b" ", b"")
    assert joined == b"1.1.1.1,2.2.2.2,3.3.3.3,127.0.0.1"


async def test_headers_of_an_answer(world: World) -> None:
    """`server` names the proxy, a `date` of the backend is kept, the upstream's time is added, all else passes."""
    date = "Sun, 06 Nov 1994 08:49:37 GMT"
    passed = (
        ("x-any", "1"),
        ("set-cookie", "a"),
        ("set-cookie", "b"),
        ("vary", "*"),
        ("date", date),
    )
    replaced = (("server", "backend/1"), ("x-edge-upstream-service-time", "mine"))
    backend = await world.backend(lambda call: make_response(b"x", 401, (*passed, *replaced)))
    client = await world.client_of(make_fleet(make_rule(CLUSTER), make_cluster(backend.port)))
    answer = await client.get()
    assert (answer.status, answer.body, answer.value("server")) == (401, b"x", "edgefast")
    assert [one for one in answer.headers if one[0] in dict(passed)] == list(passed)
    (took,) = [value for name, value in answer.headers if name == "x-edge-upstream-service-time"]
    assert took.isdigit()
