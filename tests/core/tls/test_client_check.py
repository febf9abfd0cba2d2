"""Client certificates of one listener: answers to requests, and listeners of one port with different rules."""

from __future__ import annotations

import datetime
import ssl
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from core.backend import make_response
from core.certificates import Site
from core.client import Response, make_request
from core.fleets import PORT, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.tls.test_certificate_headers import context_of
from core.world import World
from edgefast import ir
from edgefast.core import TlsContext
from proxy.pki import Authority, Pair

HOSTS = ("a.test", "b.test", "free.test")


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(*HOSTS)


@pytest.fixture(scope="module")
def clients() -> Authority:
    return Authority("clients")


def revoked(authority: Authority, *pairs: Pair) -> bytes:
    """A revocation list of an authority with these certificates."""
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateRevocationListBuilder()
    builder = builder.issuer_name(authority._name)
    builder = builder.last_update(now - datetime.timedelta(hours=1))
    builder = builder.next_update(now + datetime.timedelta(hours=1))
    for pair in pairs:
        serial = x509.load_pem_x509_certificate(pair.certificate).serial_number
        one = x509.RevokedCertificateBuilder().serial_number(serial)
        builder = builder.add_revoked_certificate(one.revocation_date(now).build())
    found = builder.sign(authority._key, hashes.SHA256())
    return found.public_bytes(serialization.Encoding.PEM)


class Port:
    """Listeners of one port, with the rules for clients of each name."""

    def __init__(self, world: World, site: Site) -> None:
        self.world, self.site, self.port = world, site, 0
        self.parts: list[Any] = []

    async def serve(
        self,
        rules: dict[str, tuple[ir.ClientRule, Authority] | None],
        crl: bytes = b"",
        depth: int = 1,
    ) -> None:
        """`rules`: by hostname; "*" is the listener of clients without SNI, too."""
        backend = await self.world.backend(lambda call: make_response(b"ok"))
        contexts: dict[str, TlsContext] = {}
        parts: list[Any] = [make_cluster(backend.port)]
        for hostname, found in rules.items():
            context = TlsContext(server=True, verify="any" if found else "")
            context.add_pair(self.site._pair.certificate, self.site._pair.key)
            if found is not None:
                context.trust(found[1].bundle)
                context.bound_depth(depth)
                context.authorities = (found[0].ca, found[0].depth)
                if crl:
                    context.revoke(crl)
            contexts[hostname] = context
            name = f"ns/gw/{hostname}"
            tls = ir.ListenerTls(certificates=("c",), client_rule=found[0] if found else None)
            listener = make_listener(name, hostname=hostname, protocol="HTTPS")
            parts.append(msgspec.structs.replace(listener, tls=tls))
            parts.append(make_host(make_rule(), hostname=hostname, listener=name))
        self.parts = parts
        self.world.apply(make_fleet(*parts))
        choose = lambda name: contexts.get(name) or contexts.get("*")  # noqa: E731
        self.port = await self.world.listen(PORT, choose)

    def change(self, hostname: str, rule: ir.ClientRule) -> None:
        """Give a listener another rule; open connections stay."""
        for at, one in enumerate(self.parts):
            if isinstance(one, ir.Listener) and one.hostname == hostname:
                assert one.tls is not None
                tls = msgspec.structs.replace(one.tls, client_rule=rule)
                self.parts[at] = msgspec.structs.replace(one, tls=tls)
        self.world.apply(make_fleet(*self.parts))

    async def ask(self, pair: Pair | None, host: str = "a.test", sni: str | None = "") -> Response:
        """One request; `sni` "": the host."""
        context = context_of(self.site, pair)
        if sni is None:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        name = host if sni == "" else sni
        client = await self.world.tls_client(self.port, context, name)
        return await client.ask(make_request(host=host))

    async def status(self, pair: Pair | None, host: str = "a.test", sni: str | None = "") -> int:
        return (await self.ask(pair, host, sni)).status


@pytest.mark.parametrize(
    ("mode", "none", "good", "other", "expired"),
    [
        ("required", 400, 200, 400, 400),
        ("optional", 200, 200, 400, 400),
        ("any_issuer", 200, 200, 200, 400),
    ],
)
async def test_modes(
    world: World,
    site: Site,
    clients: Authority,
    mode: Any,
    none: int,
    good: int,
    other: int,
    expired: int,
) -> None:
    port = Port(world, site)
    await port.serve({"a.test": (ir.ClientRule(ca="ca", mode=mode), clients)})
    assert await port.status(None) == none
    assert await port.status(clients.issue("c.test")) == good
    assert await port.status(Authority("others").issue("c.test")) == other
    assert (
        await port.status(Authority("clients").issue("c.test")) == 400
    )  # the same name, another key
    assert await port.status(clients.issue("c.test", seconds=-60)) == expired


async def test_an_error_page(world: World, site: Site, clients: Authority) -> None:
    port = Port(world, site)
    rule = ir.ClientRule(ca="ca", error_page="https://help.test/cert")
    await port.serve({"a.test": (rule, clients)})
    for pair in (None, Authority("others").issue("c.test")):
        answer = await port.ask(pair)
        assert (answer.status, answer.value("location")) == (302, "https://help.test/cert")
    assert await port.status(clients.issue("c.test")) == 200


async def test_a_subject(world: World, site: Site, clients: Authority) -> None:
    port = Port(world, site)
    rule = ir.ClientRule(ca="ca", mode="optional", subject="CN=(one|two)$")
    await port.serve({"a.test": (rule, clients)})
    found = {name: await port.status(clients.issue(common=name)) for name in ("one", "twofold")}
    assert found == {"one": 200, "twofold": 403}
    assert await port.status(None) == 403


async def test_a_revoked_certificate(world: World, site: Site, clients: Authority) -> None:
    port = Port(world, site)
    good, bad = clients.issue("c.test"), clients.issue("c.test")
    rule = ir.ClientRule(ca="ca")
    await port.serve({"a.test": (rule, clients)}, revoked(clients, bad))
    assert (await port.status(good), await port.status(bad)) == (200, 400)


async def test_revocation_lists_of_another_authority(
    world: World, site: Site, clients: Authority
) -> None:
    """Without a list of its issuer a certificate is not verified."""
    port = Port(world, site)
    await port.serve({"a.test": (ir.ClientRule(ca="ca"), clients)}, revoked(Authority("others")))
    assert await port.status(clients.issue("c.test")) == 400


async def test_listeners_of_one_port(world: World, site: Site, clients: Authority) -> None:
    """Nothing gets in under the rule of another name, with or without SNI."""
    port, others = Port(world, site), Authority("others")
    rule = ir.ClientRule(ca="ca")
    await port.serve({"a.test": (rule, clients), "b.test": (rule, others), "*": None})
    mine, foreign = clients.issue("c.test"), others.issue("c.test")
    assert await port.status(mine, "a.test") == 200
    assert await port.status(mine, "b.test") == 400
    assert await port.status(foreign, "b.test") == 200
    assert await port.status(None, "free.test") == 200
    for host, sni in (("a.test", "free.test"), ("a.test", "b.test"), ("b.test", "a.test")):
        assert await port.status(mine, host, sni) == 421
    assert await port.status(mine, "free.test", "a.test") == 421
    assert await port.status(mine, "a.test", None) == 421
    assert await port.status(None, "free.test", None) == 200


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        (ir.ClientRule(ca="other"), 421),
        (ir.ClientRule(ca="ca", depth=0), 421),
        (ir.ClientRule(ca="ca", mode="optional"), 200),
    ],
)
async def test_a_certificate_that_an_earlier_rule_verified(
    world: World, site: Site, clients: Authority, rule: ir.ClientRule, status: int
) -> None:
    """Authorities that a listener no longer has admit no request of an open connection."""
    port = Port(world, site)
    await port.serve({"a.test": (ir.ClientRule(ca="ca"), clients)})
    context = context_of(site, clients.issue("c.test"))
    client = await world.tls_client(port.port, context, "a.test")
    assert (await client.ask(make_request(host="a.test"))).status == 200
    port.change("a.test", rule)
    assert (await client.ask(make_request(host="a.test"))).status == status


async def test_no_session_is_resumed(world: World, site: Site, clients: Authority) -> None:
    port = Port(world, site)
    await port.serve({"a.test": (ir.ClientRule(ca="ca"), clients)})
    context = context_of(site, clients.issue("c.test"))
    for _ in range(2):
        client = await world.tls_client(port.port, context, "a.test")
        assert (await client.ask(make_request(host="a.test"))).status == 200
        found = client._writer.get_extra_info("ssl_object")
        assert not found.session_reused
