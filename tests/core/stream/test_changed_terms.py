"""What changes while a backend is asked: TLS to it, its set of endpoints, the backend itself. Nothing goes out under terms that are gone.

A client's connection is taken by hand, so that the change comes after the connect has begun and before anybody hears of its end.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import pytest

from core.certificates import Site
from core.conftest import check
from core.fleets import make_cluster
from core.stream.streams import (
    DEADLINE,
    Line,
    Place,
    echo,
    one_cluster,
    stream_fleet,
    stream_route,
)
from core.world import World
from edgefast import ir
from edgefast.core import TlsContext

NOBODY = stream_route(ir.StreamBackend(cluster="", reason="the policy is invalid"))
A, B = ir.UpstreamTls(sni="a.test"), ir.UpstreamTls(sni="b.test")


@pytest.fixture(scope="module")
def site() -> Site:
    return Site("a.test", "b.test")


@pytest.fixture
def secure(site: Site) -> Iterator[World]:
    """A world that knows a context for every name."""
    contexts: dict[tuple[str, tuple[str, ...]], TlsContext] = {}

    def give(tls: ir.UpstreamTls, protocols: tuple[str, ...] = ("http/1.1",)) -> TlsContext:
        return contexts.setdefault((tls.sni, protocols), site.dialler())

    yield from check(World(upstream_tls=give))


async def repeat(line: Line) -> None:
    await line.send(await line.take(6))
    await line.reader.read()


async def while_it_connects(world: World, *after: ir.Cluster | ir.StreamRoute) -> socket.socket:
    """A client with something to say, and these parts from the moment at which its backend is asked."""
    port = await world.listen_stream()
    client = socket.create_connection(("127.0.0.1", port), DEADLINE)
    world.hold(client)
    client.sendall(b"secret")
    client.setblocking(False)
    assert world._accepting[-1].take(1) == 1
    world.apply(stream_fleet(*after))
    return client


async def rest(world: World, client: socket.socket) -> bytes:
    """What the client hears up to its end."""
    got = b""
    try:
        while data := await world.loop.sock_recv(client, 100):
            got += data
    except ConnectionResetError:
        pass
    return got


async def test_a_backend_whose_tls_is_gone_hears_nothing(secure: World) -> None:
    place = await Place().start()
    secure.keep(place)
    secure.apply(stream_fleet(make_cluster(place.port, tls=A)))
    client = await while_it_connects(secure, NOBODY)
    assert await rest(secure, client) == b""
    assert await (await place.next()).rest() == b""
    await secure.until(lambda: secure.engine.open_connections == 0)
    assert [line["end"] for line in secure.lines()] == ["no_backend"]


@pytest.mark.parametrize("before", [A, None])
async def test_a_backend_is_asked_again_under_the_new_terms(
    secure: World, site: Site, before: ir.UpstreamTls | None
) -> None:
    asked: list[str | None] = []
    context = site.server()
    context.sni_callback = lambda _, name, __: asked.append(name)
    place = await Place(repeat).start(ssl=context)
    secure.keep(place)
    secure.apply(stream_fleet(make_cluster(place.port, tls=before)))
    client = await while_it_connects(secure, make_cluster(place.port, tls=B))
    assert await secure.loop.sock_recv(client, 100) == b"secret"
    assert asked == ["b.test"]
    client.close()


async def test_a_backend_that_is_gone_hears_nothing(world: World) -> None:
    gone, there = await Place().start(), await Place(echo).start()
    world.keep(gone)
    world.keep(there)
    world.apply(stream_fleet(one_cluster(gone.port)))
    client = await while_it_connects(world, one_cluster(there.port))
    assert await world.loop.sock_recv(client, 100) == b"secret"
    assert await (await gone.next()).rest() == b""
    client.close()


async def test_a_connection_goes_where_its_route_goes_by_now(world: World) -> None:
    """Its cluster is no more; the route names another one."""
    gone, there = await Place().start(), await Place(echo).start()
    world.keep(gone)
    world.keep(there)
    world.apply(stream_fleet(one_cluster(gone.port)))
    client = await while_it_connects(
        world, stream_route("other"), one_cluster(there.port, name="other")
    )
    assert await world.loop.sock_recv(client, 100) == b"secret"
    assert await (await gone.next()).rest() == b""
    client.close()


async def test_a_handshake_under_terms_that_are_gone_is_for_nothing(
    secure: World, site: Site
) -> None:
    inside = ssl.MemoryBIO(), ssl.MemoryBIO()
    place = await Place().start()
    secure.keep(place)
    secure.apply(stream_fleet(make_cluster(place.port, tls=A)))
    port = await secure.listen_stream()
    client = socket.create_connection(("127.0.0.1", port), DEADLINE)
    secure.hold(client)
    client.sendall(b"secret")
    client.setblocking(False)
    there = await place.next()
    inside[0].write(await there.reader.read(65536))  # its hello
    secure.apply(stream_fleet(NOBODY))
    talk = site.server().wrap_bio(*inside, server_side=True)
    with pytest.raises(ssl.SSLWantReadError):
        talk.do_handshake()
    await there.send(inside[1].read())
    assert await rest(secure, client) == b""
    inside[0].write(await there.reader.read(65536))  # its last flight, perhaps
    with pytest.raises((ssl.SSLError, ConnectionError)):
        talk.do_handshake()
        talk.read(100)
    await secure.until(lambda: secure.engine.open_connections == 0)
    assert [line["end"] for line in secure.lines()] == ["backend_tls"]


async def test_who_takes_a_place_of_one_that_was_asked_is_asked(world: World) -> None:
    place = await Place(echo).start()
    world.keep(place)
    refusing = world.refusing_port()
    world.apply(stream_fleet(one_cluster(refusing)))
    client = await while_it_connects(world, one_cluster(place.port, refusing))
    assert await world.loop.sock_recv(client, 100) == b"secret"
    client.close()
