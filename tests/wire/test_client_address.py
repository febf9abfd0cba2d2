"""Whom the proxy believes about the client's address: PROXY protocol v1 and v2, trusted hops, trusted CIDRs."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from origin.message import Message
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.client import Client, build_request
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.harness.preambles import BAD, GOOD, V1, proxy_v2

SETTINGS: dict[str, dict[str, object]] = {
    "off": {},
    "optional": {"proxyProtocol": "optional", "proxyProtocolCIDRs": ["127.0.0.0/8"]},
    "required": {"proxyProtocol": "required", "proxyProtocolCIDRs": ["127.0.0.0/8"]},
    "one-hop": {"trustedHops": 1},
    "two-hops": {"trustedHops": 2},
    "cidrs": {"trustedCIDRs": ["127.0.0.0/8", "2.2.2.0/24", "2001:db8::/32"]},
    "cidrs-elsewhere": {"trustedCIDRs": ["10.0.0.0/8"]},
    "cidrs-mapped": {"trustedCIDRs": ["::ffff:127.0.0.0/104", "::ffff:2.2.2.0/120"]},
    "cidrs-wide": {"trustedCIDRs": ["::/0"]},
    "hop-from-anyone-in": {"trustedHops": 1, "trustedCIDRs": ["127.0.0.0/8"]},
    "hop-from-elsewhere": {"trustedHops": 1, "trustedCIDRs": ["10.0.0.0/8"]},
    "proxy-and-hop": {
        "proxyProtocol": "required",
        "proxyProtocolCIDRs": ["127.0.0.1/32"],
        "trustedHops": 1,
    },
}


class Sites(Gateway):
    """One Gateway per setting."""

    def __init__(self, origin: int) -> None:
        self.ports = {name: free_port() for name in SETTINGS}
        objects = make.service("origin", [("127.0.0.1", origin)])
        match = {
            **make.path("/told"),
            "headers": [{"name": "X-Forwarded-Host", "value": "internal"}],
        }
        redirect = {"type": "RequestRedirect", "requestRedirect": {"hostname": "told.test"}}
        told = make.rule(matches=[match], filters=[redirect])
        for name, settings in SETTINGS.items():
            objects += [
                make.gateway(name, [make.listener(self.ports[name])], name if settings else ""),
                make.route(name, [make.rule("origin"), told], parent=name),
            ]
            if settings:
                objects.append(make.edge_proxy(name, clientAddress=settings))
        super().__init__(objects)


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    with RecordingOrigin() as running:
        yield running


@pytest.fixture(scope="module")
def sites(origin: RecordingOrigin) -> Iterator[Sites]:
    with Sites(origin.port) as running:
        yield running


def seen(
    sites: Sites, origin: RecordingOrigin, setting: str, first: bytes = b"", forwarded: str = ""
) -> tuple[str, str, str]:
    """(x-forwarded-for, x-edge-internal, x-edge-external-address) as the backend got them."""
    origin.take()
    headers = [("X-Forwarded-For", forwarded)] if forwarded else []
    with Client(("127.0.0.1", sites.ports[setting]), first=first) as client:
        assert client.request("GET", "/", headers=headers).status == 200
        assert client.request("GET", "/", headers=headers).status == 200
    origin.turn()
    first_seen, second_seen = origin.take().messages
    assert told(first_seen) == told(second_seen), "the second request on the connection differs"
    return told(first_seen)


def told(message: Message) -> tuple[str, str, str]:
    names = (b"x-forwarded-for", b"x-edge-internal", b"x-edge-external-address")
    found = [(message.value(name) or b"").decode() for name in names]
    return found[0].replace(" ", ""), found[1], found[2]


def test_without_settings_the_peer_counts(sites: Sites, origin: RecordingOrigin) -> None:
    """Nobody is believed."""
    assert seen(sites, origin, "off") == ("127.0.0.1", "true", "")
    assert seen(sites, origin, "off", forwarded="1.1.1.1") == ("1.1.1.1,127.0.0.1", "", "127.0.0.1")


@pytest.mark.parametrize(
    ("setting", "forwarded", "client"),
    [
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
def test_trusted_proxies(
    setting: str, forwarded: str, client: str, sites: Sites, origin: RecordingOrigin
) -> None:
    """The trusted client address is the first from the right that no trusted proxy added."""
    wanted = forwarded.replace(" ", "") + ",127.0.0.1"
    assert seen(sites, origin, setting, forwarded=forwarded) == (wanted, "", client)


#: What backends take for a proxy's word about a request.
CLAIMS = [
    ("Forwarded", "for=9.9.9.9;host=internal"),
    ("X-Real-IP", "9.9.9.9"),
    ("x-forwarded-host", "internal"),
    ("X-Forwarded-Port", "443"),
    ("X-FORWARDED-CLIENT-CERT", "By=spiffe://me"),
    ("X-Original-URL", "/admin"),
    ("X-Original-URI", "/admin"),
    ("X-Original-Host", "internal"),
    ("X-Rewrite-URL", "/admin"),
]
#: Alike, and no proxy's word.
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
def test_what_a_proxy_says_counts_when_the_proxy_is_trusted(
    setting: str, forwarded: str, passed: bool, sites: Sites, origin: RecordingOrigin
) -> None:
    """As x-forwarded-for does: matches see it and the backend gets it as it came, or neither does."""
    headers = [("X-Forwarded-For", forwarded)] if forwarded else []
    origin.take()
    with Client(("127.0.0.1", sites.ports[setting])) as client:
        assert client.request("GET", "/", headers=[*CLAIMS, *INNOCENT, *headers]).status == 200
        told = client.request("GET", "/told", headers=[("x-forwarded-host", "internal"), *headers])
        assert told.status == (302 if passed else 200)
    origin.turn()
    message = origin.take().messages[0]
    for name, value in CLAIMS:
        assert message.value(name.lower().encode()) == (value.encode() if passed else None), name
    for name, value in INNOCENT:
        assert message.value(name.lower().encode()) == value.encode(), name


@pytest.mark.parametrize("setting", ["one-hop", "two-hops", "cidrs"])
@pytest.mark.parametrize("forwarded", ["junk", "1.1.1.1, junk", ", ,", "unknown", "1.1.1.1:80"])
def test_unreadable_lists_do_no_harm(
    forwarded: str, setting: str, sites: Sites, origin: RecordingOrigin
) -> None:
    """The request is served, the list kept, the address told is a readable one."""
    _, internal, external = seen(sites, origin, setting, forwarded=forwarded)
    assert internal == ""
    ipaddress.ip_address(external)


@pytest.mark.parametrize("setting", ["optional", "required"])
@pytest.mark.parametrize("name", GOOD)
def test_proxy_protocol(name: str, setting: str, sites: Sites, origin: RecordingOrigin) -> None:
    """The named source is the peer from then on, for all requests of the connection."""
    block, client = GOOD[name]
    internal = client.startswith(("10.", "127."))
    wanted = (client, "true" if internal else "", "" if internal else client)
    assert seen(sites, origin, setting, block) == wanted


@pytest.mark.parametrize("name", ["v1-tcp4", "v2-tlv", "v1-unknown", "v2-local"])
def test_proxy_protocol_in_pieces(name: str, sites: Sites, origin: RecordingOrigin) -> None:
    """Cut at every byte, with the request right behind it."""
    block, address = GOOD[name]
    data = block + build_request()
    with ExitStack() as stack:
        clients = [
            stack.enter_context(Client(("127.0.0.1", sites.ports["required"])))
            for _ in range(len(block) + 2)
        ]
        for at, client in enumerate(clients, 1):
            client.expect("GET")
            client.send(data[:at])
        with Client(sites.void) as probe:
            probe.request("GET", "/turn")
        origin.take()
        for at, client in enumerate(clients, 1):
            client.send(data[at:])
        assert all(client.read_response().status == 200 for client in clients)
    origin.turn()
    messages = origin.take().messages
    assert len(messages) == len(block) + 2
    assert {told(message)[0] for message in messages} == {address}


@pytest.mark.parametrize("setting", ["optional", "required"])
@pytest.mark.parametrize("name", BAD)
def test_broken_proxy_protocol(
    name: str, setting: str, sites: Sites, origin: RecordingOrigin
) -> None:
    """Nothing reaches the backend; the connection ends, at most with an error."""
    origin.take()
    with Client(("127.0.0.1", sites.ports[setting]), first=BAD[name]) as client:
        client.expect("GET")
        client.send(build_request())
        found = client.read_to_end(5)
        assert client.ended in ("eof", "reset")
        assert all(400 <= item.status < 500 for item in found)
    origin.turn()
    assert origin.take().messages == []


def test_required_means_required(sites: Sites, origin: RecordingOrigin) -> None:
    """A plain request is not served: anybody could claim to be a proxy's friend."""
    origin.take()
    with Client(("127.0.0.1", sites.ports["required"])) as client:
        client.expect("GET")
        client.send(build_request())
        found = client.read_to_end(5)
        assert client.ended in ("eof", "reset") and all(item.status == 400 for item in found)
    origin.turn()
    assert origin.take().messages == []


def test_optional_means_optional(sites: Sites, origin: RecordingOrigin) -> None:
    """A plain request is served as from its peer; a method that begins like PROXY is no PROXY line."""
    assert seen(sites, origin, "optional") == ("127.0.0.1", "true", "")
    with Client(("127.0.0.1", sites.ports["optional"])) as client:
        assert client.request("PROPFIND", "/").status == 200


@pytest.mark.parametrize("block", [V1, proxy_v2("192.0.2.8")])
def test_off_means_off(block: bytes, sites: Sites, origin: RecordingOrigin) -> None:
    """Without the setting a PROXY line is a bad request."""
    origin.take()
    with Client(("127.0.0.1", sites.ports["off"]), first=block) as client:
        client.expect("GET")
        client.send(build_request())
        assert [item.status for item in client.read_to_end(5)] == [400]
    origin.turn()
    assert origin.take().messages == []


def test_proxy_protocol_and_a_hop(sites: Sites, origin: RecordingOrigin) -> None:
    """Both together: the named source is the peer, the hop before it is believed."""
    assert seen(sites, origin, "proxy-and-hop", V1, "1.1.1.1") == (
        "1.1.1.1,192.0.2.7",
        "",
        "1.1.1.1",
    )
