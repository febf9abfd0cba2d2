"""Sessions: where none may be resumed, none are given; what a client was verified by is looked at with each connection."""

from __future__ import annotations

import socket
import ssl
import tempfile
from collections.abc import Callable

import msgspec
import pytest

from core.apart import apart, shift
from core.certificates import Site
from core.fleets import PORT, make_fleet, make_host, make_listener
from core.ticket_ring import make_ring
from core.world import World
from edgefast import ir
from edgefast.core import TlsContext
from edgefast.core.engine import tls_library
from proxy.pki import Authority, Pair

REQUEST = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"
VERSIONS = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
LIFETIME = 7200
DAYS = 1 << 50  # ms: as long as any test


async def serve(world: World, context: TlsContext) -> int:
    host = make_host(ir.Rule(route="ns/web", index=0, status=204))
    world.apply(make_fleet(make_listener(protocol="HTTPS"), host))
    return await world.listen(PORT, lambda _: context)


def client(site: Site, version: ssl.TLSVersion, pair: Pair | None = None) -> ssl.SSLContext:
    context = site.client()
    context.minimum_version = context.maximum_version = version
    if pair is not None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(pair.certificate + pair.key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


async def visit(
    world: World,
    port: int,
    context: ssl.SSLContext,
    session: ssl.SSLSession | None = None,
    between: Callable[[], None] = lambda: None,
) -> ssl.SSLObject:
    """A handshake and an answered request; `between`: when the server has begun and waits for the client."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(to_client, to_server, server_hostname="a.test", session=session)
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setblocking(False)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await world.loop.sock_sendall(sock, to_server.read())
                data = await world.loop.sock_recv(sock, 65536)
                between()
                if not data:
                    raise EOFError from None
                to_client.write(data)
        tls.write(REQUEST)
        await world.loop.sock_sendall(sock, to_server.read())
        while data := await world.loop.sock_recv(sock, 65536):
            to_client.write(data)
    assert tls.read(4096).startswith(b"HTTP/1.1 204")
    return tls


def was_given_one(tls: ssl.SSLObject) -> bool:
    return tls.session is not None and tls.session.has_ticket


@apart()
async def test_without_keys_of_ours_nobody_is_given_a_session(world: World) -> None:
    site = Site("a.test")
    port = await serve(world, site.choose("a.test"))
    for version in VERSIONS:
        context = client(site, version)
        first = await visit(world, port, context)
        assert not was_given_one(first)
        assert not (await visit(world, port, context, first.session)).session_reused


@apart()
async def test_a_handshake_goes_on_when_its_keys_end_meanwhile(world: World) -> None:
    ring, site = make_ring(), Site("a.test")
    held = ring.read()
    port = await serve(world, site.choose("a.test").within(b"s" * 32))
    for version in VERSIONS:
        context = client(site, version)
        first = await visit(world, port, context)
        assert (await visit(world, port, context, first.session)).session_reused
        late = await visit(world, port, context, between=lambda: ring.write([]))
        ring.write(held)
        assert not (await visit(world, port, context, late.session)).session_reused


@apart()
async def test_no_session_where_clients_show_certificates(world: World) -> None:
    make_ring()
    site, clients = Site("a.test"), Authority("clients")
    pair = clients.issue("client")
    for verify in ("any", "trusted"):
        made = site.make(verify=verify)
        made.trust(clients.bundle)
        port = await serve(world, made.within(b"s" * 32))
        for version in VERSIONS:
            context = client(site, version, pair)
            first = await visit(world, port, context)
            assert not was_given_one(first)
            assert not (await visit(world, port, context, first.session)).session_reused


@apart(clock=True)
async def test_a_client_is_refused_when_its_certificate_has_expired(world: World) -> None:
    """However often it came back before."""
    make_ring()
    site, clients = Site("a.test"), Authority("clients")
    pair = clients.issue("client", seconds=3600)
    made = site.make(verify="trusted", lifetime=LIFETIME)
    made.trust(clients.bundle)
    port = await serve(world, made.within(b"s" * 32))
    known = []
    for version in VERSIONS:
        context = client(site, version, pair)
        session = (await visit(world, port, context)).session
        known.append((context, (await visit(world, port, context, session)).session))
    shift(3700)
    for context, session in known:
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            await visit(world, port, context, session)
    await world.until(lambda: world.counters["handshakes_failed_certificate"] == len(VERSIONS))


@apart()
async def test_a_session_has_its_lifetime(world: World) -> None:
    make_ring()
    site = Site("a.test")
    port = await serve(world, site.make(lifetime=LIFETIME).within(b"s" * 32))
    for version in VERSIONS:
        context = client(site, version)
        first = await visit(world, port, context)
        assert first.session is not None
        assert 0 < first.session.ticket_lifetime_hint <= LIFETIME
        assert (await visit(world, port, context, first.session)).session_reused


@apart(clock=True)
@pytest.mark.skipif("AWS-LC" in tls_library(), reason="has a bound of its own: seven days")
async def test_a_session_is_not_renewed_for_ever(world: World) -> None:
    """A day after its full handshake there is another one, however often the client came."""
    ring = make_ring()
    (secret,) = ring.read()
    ring.write([msgspec.structs.replace(secret, ends=DAYS, forgotten=DAYS)])
    site = Site("a.test")
    port = await serve(world, site.make(lifetime=LIFETIME).within(b"s" * 32))
    context = client(site, ssl.TLSVersion.TLSv1_3)
    session, resumed = (await visit(world, port, context)).session, []
    for _ in range(15):
        shift(6000)
        tls = await visit(world, port, context, session)
        session = tls.session
        resumed.append(tls.session_reused)
    assert resumed == [True] * 14 + [False]
