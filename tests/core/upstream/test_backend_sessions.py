"""TLS sessions of backends: the next connection to the same one resumes, and nothing is resumed that was verified by other rules."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest

from core.apart import apart, shift
from core.backend import Backend, Call, make_response
from core.certificates import Site
from core.conftest import check
from core.fleets import make_cluster, make_fleet
from core.world import World
from edgefast import ir
from edgefast.core import TlsContext

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
A, B = ir.UpstreamTls(sni="a.test"), ir.UpstreamTls(sni="b.test")
HOUR = 3600


@pytest.fixture(scope="module")
def site() -> Site:
    return Site("a.test", "b.test")


class Contexts:
    """What the engine asks for: one context for all, until there is another one."""

    def __init__(self, site: Site) -> None:
        self.made = site.dialler()

    def __call__(self, tls: ir.UpstreamTls) -> TlsContext:
        return self.made


@pytest.fixture
def contexts(site: Site) -> Contexts:
    return Contexts(site)


@pytest.fixture
def secure(contexts: Contexts) -> Iterator[World]:
    yield from check(World(upstream_tls=contexts))


def once(_: Call) -> bytes:
    """An answer after which the connection is another one."""
    return make_response(b"x", headers=(("connection", "close"),))


def server(site: Site, version: ssl.TLSVersion) -> ssl.SSLContext:
    context = site.server()
    context.minimum_version = context.maximum_version = version
    return context


def resumed(backend: Backend) -> list[bool]:
    """Of its connections, in their order."""
    return [link.transport.get_extra_info("ssl_object").session_reused for link in backend.links]


async def visit(world: World, backend: Backend, tls: ir.UpstreamTls = A, count: int = 1) -> None:
    client = await world.client_of(make_fleet(make_cluster(backend.port, tls=tls)))
    for _ in range(count):
        assert (await client.get()).status == 200


@pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.name)
async def test_the_next_connection_resumes(
    secure: World, site: Site, version: ssl.TLSVersion
) -> None:
    backend = await secure.backend(once, server(site, version))
    await visit(secure, backend, count=4)
    assert resumed(backend) == [False, True, True, True]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.name)
async def test_what_changed_is_verified_again(
    secure: World, site: Site, contexts: Contexts, version: ssl.TLSVersion
) -> None:
    """Another name, other authorities, names or client certificate (which are another context), another backend."""
    context = server(site, version)
    backend, other = await secure.backend(once, context), await secure.backend(once, context)
    await visit(secure, backend)
    await visit(secure, backend, B)
    await visit(secure, other)
    assert resumed(backend) == [False, False] and resumed(other) == [False]
    contexts.made = site.dialler()
    await visit(secure, backend)
    assert resumed(backend) == [False, False, False]
    await visit(secure, backend)
    assert resumed(backend)[-1]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.name)
async def test_who_is_not_believed_any_more_is_not_resumed(
    secure: World, site: Site, contexts: Contexts, version: ssl.TLSVersion
) -> None:
    backend = await secure.backend(once, server(site, version))
    await visit(secure, backend)
    contexts.made = Site("a.test").dialler()
    await secure.serve(make_fleet(make_cluster(backend.port)))
    port = await secure.serve(make_fleet(make_cluster(backend.port, tls=A)))
    assert (await (await secure.client(port)).get()).status == 503
    assert backend.count == 1


@pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.name)
async def test_a_wrong_name_leaves_no_session(
    secure: World, site: Site, contexts: Contexts, version: ssl.TLSVersion
) -> None:
    """Names of a policy are compared after the handshake, when 1.2 has given a session already."""
    contexts.made = TlsContext(server=False, sans=[("Hostname", "c.test")])
    contexts.made.trust(site.bundle)
    backend = await secure.backend(once, server(site, version))
    for _ in range(2):
        port = await secure.serve(make_fleet(make_cluster(backend.port, tls=A)))
        assert (await (await secure.client(port)).get()).status == 503
    assert backend.count == 0
    assert not any(resumed(backend))


@pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.name)
async def test_a_backend_with_other_keys_is_served(
    secure: World, site: Site, version: ssl.TLSVersion
) -> None:
    """It does not know the session: a full handshake, and no error."""
    backend = await secure.backend(once, server(site, version))
    await visit(secure, backend, count=2)
    port = backend.port
    backend.close()
    again = Backend(once)
    secure.keep(again)
    await again.start(server(site, version), port=port)
    await visit(secure, again, count=2)
    assert resumed(again) == [False, True]


BRIEF = Site("a.test", seconds=3 * HOUR)


@apart(clock=True, upstream_tls=Contexts(BRIEF))
async def test_a_backend_shows_its_certificate_every_hour(world: World) -> None:
    """However often its session was renewed; and a session ends with its certificate."""
    backend = await world.backend(once, server(BRIEF, ssl.TLSVersion.TLSv1_3))
    for _ in range(3):
        await visit(world, backend, count=2)
        shift(HOUR * 0.55)
    assert resumed(backend) == [False, True, True, True, False, True]
    shift(HOUR * 0.9)
    await visit(world, backend)
    shift(HOUR * 0.5)  # in the middle of the next hour
    port = await world.serve(make_fleet(make_cluster(backend.port, tls=A)))
    assert (await (await world.client(port)).get()).status == 503
    assert backend.count == 7
