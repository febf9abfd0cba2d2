"""Headers about the certificate of a client: X-Forwarded-Client-Cert in each mode, those of nginx, forged ones, authorization services."""

from __future__ import annotations

import hashlib
import ssl
import tempfile
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from core.backend import Call, make_response
from core.certificates import Site
from core.client import make_request
from core.fleets import PORT, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.asking import Asker
from core.policy.authorized import AUTH, fleet_of, make_auth
from core.world import World
from edgefast import ir
from edgefast.core import TlsContext
from origin.message import Message
from proxy.pki import Authority, Pair

NGINX = ("ssl-client-cert", "ssl-client-issuer-dn", "ssl-client-subject-dn", "ssl-client-verify")
XFCC = "x-forwarded-client-cert"
FORGED = [(name, "forged") for name in (*NGINX, XFCC)]
ALL = ("cert", "dns", "subject", "uri")


@pytest.fixture(scope="module")
def site() -> Site:
    return Site("a.test")


@pytest.fixture(scope="module")
def clients() -> Authority:
    return Authority("clients")


@pytest.fixture(scope="module")
def pair(clients: Authority) -> Pair:
    return clients.issue("c.test", uris=("spiffe://a.test/ns/x",), common="one")


def context_of(site: Site, pair: Pair | None, protocol: str = "http/1.1") -> ssl.SSLContext:
    context = site.client()
    context.set_alpn_protocols([protocol])
    if pair is not None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(pair.certificate + pair.key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def side(site: Site, bundle: bytes, verify: str) -> TlsContext:
    """The engine's context, which asks clients for certificates of `bundle`."""
    made = TlsContext(server=True, verify=verify, protocols=("h2", "http/1.1"))
    made.add_pair(site._pair.certificate, site._pair.key)
    if verify:
        made.trust(bundle)
    return made


class Case:
    """A backend behind a listener, and the requests that it got."""

    def __init__(self, world: World, site: Site) -> None:
        self.world, self.site = world, site
        self.seen: list[Message] = []
        self.port = 0

    def answer(self, call: Call) -> bytes:
        self.seen.append(call.message)
        return make_response(b"ok")

    async def serve(
        self, about: dict[str, Any], bundle: bytes, verify: str = "any", **http: Any
    ) -> None:
        backend = await self.world.backend(self.answer)
        listener = make_listener(protocol="HTTPS", forwarded=ir.ForwardedHeaders(**about), **http)
        rule = make_rule(request_headers=http.pop("ops", None))
        self.world.apply(make_fleet(listener, make_host(rule), make_cluster(backend.port)))
        context = side(self.site, bundle, verify)
        self.port = await self.world.listen(PORT, lambda name: context)

    async def ask(
        self, pair: Pair | None, headers: Iterable[tuple[str, str]] = (), raw: bytes = b""
    ) -> dict[str, list[str]]:
        """Send a request; the values of its headers about certificates."""
        context = context_of(self.site, pair)
        client = await self.world.tls_client(self.port, context, "a.test")
        request = raw or make_request(host="a.test", headers=list(headers))
        assert (await client.ask(request)).status == 200
        return values(self.seen[-1])


def values(message: Message) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in message.headers:
        folded = name.decode().lower()
        if folded.replace("_", "-") in (*NGINX, XFCC):
            found.setdefault(folded, []).append(value.decode())
    return found


def pem_of(pair: Pair) -> str:
    return quote(pair.certificate.decode(), safe="")


def hash_of(pair: Pair) -> str:
    der = x509.load_pem_x509_certificate(pair.certificate).public_bytes(Encoding.DER)
    return hashlib.sha256(der).hexdigest()


def element_of(pair: Pair) -> str:
    return f"Hash={hash_of(pair)}"


async def test_headers_of_nginx(world: World, site: Site, clients: Authority, pair: Pair) -> None:
    case = Case(world, site)
    await case.serve({"names": NGINX}, clients.bundle)
    assert await case.ask(pair, FORGED) == {
        "ssl-client-verify": ["SUCCESS"],
        "ssl-client-subject-dn": ["CN=one"],
        "ssl-client-issuer-dn": ["CN=clients"],
        "ssl-client-cert": [pem_of(pair)],
    }
    assert await case.ask(None, FORGED) == {"ssl-client-verify": ["NONE"]}
    other = Authority("clients").issue("c.test", common="mine")
    found = await case.ask(other, FORGED)
    assert found["ssl-client-verify"][0].startswith("FAILED:")
    assert found["ssl-client-subject-dn"] == ["CN=mine"]
    assert found["ssl-client-cert"] == [pem_of(other)]


async def test_only_named_headers_are_written(
    world: World, site: Site, clients: Authority, pair: Pair
) -> None:
    case = Case(world, site)
    await case.serve({"names": ("ssl-client-verify",)}, clients.bundle)
    assert await case.ask(pair) == {"ssl-client-verify": ["SUCCESS"]}


async def test_a_listener_without_client_certificates_writes_none(
    world: World, site: Site, clients: Authority, pair: Pair
) -> None:
    case = Case(world, site)
    about = {"names": NGINX, "client_cert": "append", "client_cert_details": ALL}
    await case.serve(about, clients.bundle, "")
    assert await case.ask(pair, FORGED) == {}


async def test_an_expired_certificate_is_not_verified(
    world: World, site: Site, clients: Authority
) -> None:
    case = Case(world, site)
    await case.serve({"names": NGINX, "client_cert": "set"}, clients.bundle)
    found = await case.ask(clients.issue("c.test", seconds=-60))
    assert found["ssl-client-verify"] == ["FAILED:certificate has expired"]
    assert XFCC not in found


@pytest.mark.parametrize(
    ("mode", "verified", "unverified"),
    [
        ("sanitize", [], []),
        ("forward", ["forged"], []),
        ("append", ["forged,{own}"], []),
        ("set", ["{own}"], []),
        ("always", ["forged"], ["forged"]),
    ],
)
async def test_modes(
    world: World,
    site: Site,
    clients: Authority,
    pair: Pair,
    mode: str,
    verified: list[str],
    unverified: list[str],
) -> None:
    case = Case(world, site)
    await case.serve({"client_cert": mode}, clients.bundle)
    sent = [("X-Forwarded-Client-Cert", "forged")]
    expected = [one.format(own=element_of(pair)) for one in verified]
    assert (await case.ask(pair, sent)).get(XFCC, []) == expected
    assert (await case.ask(None, sent)).get(XFCC, []) == unverified
    other = Authority("clients").issue("c.test")
    assert (await case.ask(other, sent)).get(XFCC, []) == unverified


async def test_several_elements_are_one_line(
    world: World, site: Site, clients: Authority, pair: Pair
) -> None:
    case = Case(world, site)
    await case.serve({"client_cert": "append"}, clients.bundle)
    sent = [(XFCC, "Hash=1"), (XFCC, "Hash=2;URI=x")]
    assert (await case.ask(pair, sent))[XFCC] == [f"Hash=1,Hash=2;URI=x,{element_of(pair)}"]
    assert (await case.ask(pair))[XFCC] == [element_of(pair)]


async def test_details(world: World, site: Site, clients: Authority, pair: Pair) -> None:
    case = Case(world, site)
    await case.serve({"client_cert": "set", "client_cert_details": ALL}, clients.bundle)
    assert (await case.ask(pair))[XFCC] == [
        f'{element_of(pair)};Cert="{pem_of(pair)}";Subject="CN=one";'
        "URI=spiffe://a.test/ns/x;DNS=c.test"
    ]


async def test_a_name_never_reads_as_another_element(
    world: World, site: Site, clients: Authority
) -> None:
    """An authority may sign names with the separators of the header."""
    case = Case(world, site)
    about = {
        "names": ("ssl-client-subject-dn",),
        "client_cert": "set",
        "client_cert_details": ("subject", "uri"),
    }
    await case.serve(about, clients.bundle)
    uris = ("spiffe://a;URI=spiffe://admin", 'spiffe://"b"', "spiffe://c\\", "spiffe://d e")
    pair = clients.issue(uris=uris, common='x";URI=y,\u00e4\r\n')
    found = await case.ask(pair)
    subject = 'CN=x\\"\\;URI=y\\,\\C3\\A4\\0D\\0A'
    assert found["ssl-client-subject-dn"] == [subject]
    assert found[XFCC] == [
        f'{element_of(pair)};Subject="{subject}";URI="spiffe://a;URI=spiffe://admin";'
        'URI="spiffe://\\"b\\"";URI="spiffe://c\\\\"'
    ]


async def test_a_certificate_that_is_too_large(
    world: World, site: Site, clients: Authority
) -> None:
    case = Case(world, site)
    await case.serve({"names": NGINX, "client_cert": "set"}, clients.bundle)
    names = [f"{number}.{'a' * 60}.test" for number in range(250)]
    found = await case.ask(clients.issue(*names, common="many"))
    assert found == {"ssl-client-verify": ["FAILED:certificate is too large"]}


@pytest.mark.parametrize("mode", ["sanitize", "forward", "append", "set", "always"])
async def test_underscores_do_not_hide_a_forged_header(
    world: World, site: Site, clients: Authority, pair: Pair, mode: str
) -> None:
    case = Case(world, site)
    about = {"names": NGINX, "client_cert": mode}
    await case.serve(about, clients.bundle, underscores="Allow")
    forged = [(name.replace("-", "_"), "forged") for name, _ in FORGED]
    forged += [(name.replace("-", "_", 1).upper(), "forged") for name, _ in FORGED]
    found = await case.ask(pair, forged)
    assert all("_" not in name and "forged" not in one for name, one in found.items())


async def test_no_trailer_has_one_of_the_names(
    world: World, site: Site, clients: Authority, pair: Pair
) -> None:
    case = Case(world, site)
    await case.serve({"names": NGINX, "client_cert": "always"}, clients.bundle)
    fields = "".join(f"{name}: {value}\r\n" for name, value in FORGED)
    raw = (
        "POST / HTTP/1.1\r\nhost: a.test\r\ntransfer-encoding: chunked\r\n\r\n"
        f"0\r\n{fields}x-more: kept\r\n\r\n"
    )
    await case.ask(pair, raw=raw.encode())
    assert [name.lower() for name, _ in case.seen[-1].trailers] == [b"x-more"]


async def test_a_trusted_peer_cannot_set_them(
    world: World, site: Site, clients: Authority, pair: Pair
) -> None:
    case = Case(world, site)
    trusted = ir.ClientAddress(trusted_cidrs=("127.0.0.0/8",))
    about = {"names": NGINX, "client_cert": "set"}
    await case.serve(about, clients.bundle, client_address=trusted)
    found = await case.ask(None, FORGED)
    assert found == {"ssl-client-verify": ["NONE"]}


async def test_http2_and_grpc(world: World, site: Site, clients: Authority, pair: Pair) -> None:
    case = Case(world, site)
    await case.serve({"names": NGINX, "client_cert": "append"}, clients.bundle)
    client = await world.tls_client(case.port, context_of(site, pair, "h2"), "a.test")
    asker = Asker(client)
    for kind in (b"text/plain", b"application/grpc"):
        fields = [
            (b":method", b"POST"),
            (b":scheme", b"https"),
            (b":authority", b"a.test"),
            (b":path", b"/"),
            (b"content-type", kind),
            *((name.encode(), b"forged") for name, _ in FORGED),
        ]
        await asker.ask(fields)
        found = values(case.seen[-1])
        assert found["ssl-client-verify"] == ["SUCCESS"]
        assert found["ssl-client-cert"] == [pem_of(pair)]
        assert found[XFCC] == [f"forged,{element_of(pair)}"]


async def test_plain_http_has_none(world: World) -> None:
    seen: list[Message] = []

    def answer(call: Call) -> bytes:
        seen.append(call.message)
        return make_response(b"ok")

    backend = await world.backend(answer)
    about = ir.ForwardedHeaders(names=NGINX, client_cert="append")
    fleet = make_fleet(make_listener(forwarded=about), make_cluster(backend.port))
    client = await world.client_of(fleet)
    assert (await client.ask(make_request(headers=FORGED))).status == 200
    assert values(seen[-1]) == {}


async def test_a_filter_has_priority(
    world: World, site: Site, clients: Authority, pair: Pair
) -> None:
    case = Case(world, site)
    backend = await world.backend(case.answer)
    about = ir.ForwardedHeaders(names=NGINX, client_cert="set")
    ops = ir.HeaderOps(remove=("SSL-Client-Cert", XFCC))
    listener = make_listener(protocol="HTTPS", forwarded=about)
    host = make_host(make_rule(request_headers=ops))
    world.apply(make_fleet(listener, host, make_cluster(backend.port)))
    context = side(site, clients.bundle, "trusted")
    case.port = await world.listen(PORT, lambda name: context)
    assert sorted(await case.ask(pair, FORGED)) == [*NGINX[1:]]


async def test_authorization_services_get_them_too(
    world: World, site: Site, clients: Authority, pair: Pair
) -> None:
    """Also in the key of cached answers: one client never gets the answer for another."""
    asked: list[Message] = []

    def decide(call: Call) -> bytes:
        asked.append(call.message)
        mine = call.message.value(b"ssl-client-subject-dn") == b"CN=one"
        return make_response(b"", 200 if mine else 403)

    service = await world.backend(decide)
    backend = await world.backend(lambda call: make_response(b"ok"))
    auth = make_auth(
        headers=(*NGINX, XFCC), cache=ir.AuthCache(ttl=60_000, key_headers=("x-user",))
    )
    about = ir.ForwardedHeaders(names=NGINX, client_cert="set")
    fleet = fleet_of(auth, backend.port, make_cluster(service.port, name=AUTH))
    listener = make_listener(protocol="HTTPS", forwarded=about)
    world.apply(msgspec.structs.replace(fleet, listeners=(listener,)))
    context = side(site, clients.bundle, "any")
    port = await world.listen(PORT, lambda name: context)
    statuses = []
    for one in (pair, None, pair, clients.issue(common="two")):
        client = await world.tls_client(port, context_of(site, one), "a.test")
        request = make_request(host="a.test", headers=FORGED)
        statuses.append((await client.ask(request)).status)
    assert statuses == [200, 403, 200, 403]
    assert [values(one).get("ssl-client-subject-dn") for one in asked] == [
        ["CN=one"],
        None,
        ["CN=two"],
    ]
    assert values(asked[0])[XFCC] == [element_of(pair)]
    assert XFCC not in values(asked[1])
