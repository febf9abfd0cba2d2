"""TLS backends: HTTP/2 where both sides agree on it, HTTP/1.1 where that will do, a failure where it will not."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator

import pytest

from core.backend import say as say_h1
from core.certificates import Site
from core.client import make_request
from core.conftest import check
from core.fleets import CLUSTER, make_cluster, make_fleet
from core.h2.backend import H2Backend, say
from core.world import World
from edgefast import ir
from edgefast.core import TlsContext

A = ir.UpstreamTls(sni="a.test")


@pytest.fixture(scope="module")
def site() -> Site:
    return Site("a.test")


@pytest.fixture
def secure(site: Site) -> Iterator[World]:
    """A world whose engine offers what it is told to."""
    contexts: dict[tuple[str, ...], TlsContext] = {}

    def give(tls: ir.UpstreamTls, protocols: tuple[str, ...] = ("http/1.1",)) -> TlsContext:
        if protocols not in contexts:
            made = TlsContext(server=False, protocols=protocols)
            made.trust(site.bundle)
            contexts[protocols] = made
        return contexts[protocols]

    yield from check(World(upstream_tls=give))


def taking(site: Site, *protocols: str) -> ssl.SSLContext:
    context = site.server()
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


@pytest.mark.parametrize("protocol", ["h2", "alpn"])
async def test_agreed(secure: World, site: Site, protocol: ir.UpstreamProtocol) -> None:
    backend = await H2Backend(say(b"x")).start(taking(site, "h2", "http/1.1"))
    secure.keep(backend)
    port = await secure.serve(make_fleet(make_cluster(backend.port, tls=A, protocol=protocol)))
    clients = [await secure.client(port) for _ in range(20)]
    answers = await asyncio.gather(*(client.get() for client in clients))
    assert {(answer.status, answer.body) for answer in answers} == {(200, b"x")}
    assert len(backend.links) == 1
    assert backend.asks[0].value(":scheme") == "https"


@pytest.mark.parametrize("offers", [(), ("http/1.1",)])
async def test_http1_will_do(secure: World, site: Site, offers: tuple[str, ...]) -> None:
    backend = await secure.backend(say_h1("x"), taking(site, *offers))
    port = await secure.serve(make_fleet(make_cluster(backend.port, tls=A, protocol="alpn")))
    clients = [await secure.client(port) for _ in range(20)]
    for _ in range(2):
        answers = await asyncio.gather(*(client.get() for client in clients))
        assert {(answer.status, answer.body) for answer in answers} == {(200, b"x")}


async def test_http1_will_not_do(secure: World, site: Site) -> None:
    backend = await secure.backend(say_h1("x"), taking(site))
    port = await secure.serve(make_fleet(make_cluster(backend.port, tls=A, protocol="h2")))
    assert (await (await secure.client(port)).get()).status == 503
    assert backend.count == 0


async def test_a_websocket_has_a_connection_of_its_own(secure: World, site: Site) -> None:
    """The backend announces no extended CONNECT, but it takes HTTP/1.1, too."""
    backend = await secure.backend(None, taking(site, "http/1.1"))
    port = await secure.serve(make_fleet(make_cluster(backend.port, tls=A, protocol="alpn")))
    client = await secure.client(port)
    await client.send(make_request(headers=[("connection", "upgrade"), ("upgrade", "websocket")]))
    call = await backend.call()
    call.send(
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    )
    assert (await client.response()).status == 101
    client.close()
    await secure.until(lambda: secure.cluster(CLUSTER)["connections"] == 0)


async def test_a_websocket_keeps_waiting_while_others_have_their_turn(
    secure: World, site: Site
) -> None:
    """Room on a connection that takes no tunnel is for those behind it."""
    backend = await H2Backend(streams=1).start(taking(site, "h2", "http/1.1"))
    secure.keep(backend)
    cluster = make_cluster(backend.port, tls=A, protocol="alpn", max_connections=1)
    port = await secure.serve(make_fleet(cluster))
    first, tunnel, second = [await secure.client(port) for _ in range(3)]
    await first.send(make_request("/first"))
    ask = await backend.ask()
    await tunnel.send(make_request(headers=[("connection", "upgrade"), ("upgrade", "websocket")]))
    await secure.until(lambda: secure.cluster(CLUSTER)["pending"] == 1)
    await second.send(make_request("/second"))
    await secure.until(lambda: secure.cluster(CLUSTER)["pending"] == 2)
    ask.reply(b"1")
    assert (await first.response()).body == b"1"
    ask = await backend.ask()
    assert ask.value(":path") == "/second"
    assert secure.cluster(CLUSTER)["pending"] == 1
    ask.reply(b"2")
    assert (await second.response()).body == b"2"
    assert secure.cluster(CLUSTER)["pending"] == 1
    tunnel.close()
    await secure.until(lambda: secure.cluster(CLUSTER)["pending"] == 0)
