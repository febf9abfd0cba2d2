"""TLS that ends here before it is passed on: how it is told of a broken stream, of a rule that is no more, and of its time."""

from __future__ import annotations

import ssl

import pytest

from core.backend import say
from core.certificates import Site
from core.fleets import PORT, make_cluster, make_host, make_listener, make_rule
from core.stream.streams import (
    Place,
    connect,
    echo,
    one_cluster,
    stream_fleet,
    stream_listener,
    stream_route,
)
from core.world import World
from edgefast import ir

TLS = ir.ListenerTls(certificates=("s",))


@pytest.fixture(scope="module")
def site() -> Site:
    return Site("db.test", "www.test")


class Talk:
    """A client's TLS over a plain connection, of which a test sees how it ends."""

    def __init__(self, site: Site, name: str) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = site.client().wrap_bio(self._in, self._out, server_hostname=name)

    def hello(self) -> bytes:
        with pytest.raises(ssl.SSLWantReadError):
            self._tls.do_handshake()
        return self._out.read()

    def finish(self, flight: bytes) -> bytes:
        self._in.write(flight)
        self._tls.do_handshake()
        return self._out.read()


async def shake(world: World, site: Site, port: int, name: str = "db.test") -> object:
    """A client whose handshake is done."""
    client, talk = await connect(world, port), Talk(site, name)
    await client.send(talk.hello())
    await client.send(talk.finish(await client.reader.read(65536)))
    return client


async def passing(world: World, site: Site, place: Place) -> int:
    world.apply(stream_fleet(stream_listener(protocol="TLS", tls=TLS), one_cluster(place.port)))
    return await world.listen(PORT, site.choose)


async def test_a_broken_stream_is_a_reset(world: World, site: Site) -> None:
    place = await Place().start()
    world.keep(place)
    client = await shake(world, site, await passing(world, site, place))
    (await place.next()).reset()
    assert await client.is_reset()  # type: ignore[attr-defined]


async def test_connections_of_a_rule_that_is_no_more_end(world: World, site: Site) -> None:
    place = await Place().start()
    world.keep(place)
    port = await passing(world, site, place)
    client = await shake(world, site, port)
    there = await place.next()
    late, talk = await connect(world, port), Talk(site, "db.test")
    await late.send(talk.hello())
    flight = await late.reader.read(65536)
    world._accepting[-1].retire()
    assert await client.is_reset()  # type: ignore[attr-defined]
    assert await there.is_reset()
    await late.send(talk.finish(flight))
    assert await late.is_reset()
    await world.until(lambda: world.engine.open_connections == 0)
    assert [line["end"] for line in world.lines()] == ["tls_changed"] * 2


async def test_what_is_passed_through_outlives_the_rule(world: World, site: Site) -> None:
    place = await Place(echo).start()
    world.keep(place)
    world.apply(stream_fleet(stream_listener(protocol="TLS"), one_cluster(place.port)))
    client = await connect(world, await world.listen(PORT, site.choose))
    hello = Talk(site, "db.test").hello()
    await client.send(hello)
    assert await client.take(len(hello)) == hello
    world._accepting[-1].retire()
    await client.send(b"more")
    assert await client.take(4) == b"more"
    assert world.counters["stream_received_bytes"] == len(hello) + 4
    client.close()


async def test_a_handshake_has_the_time_of_its_own_listener(world: World, site: Site) -> None:
    https = make_listener("l/web", protocol="HTTPS", hostname="www.test", head_timeout=200)
    https = https.__class__(
        **{f: getattr(https, f) for f in https.__struct_fields__} | {"tls": TLS}
    )
    web = await world.backend(say("web"))
    raw = stream_listener("l/raw", protocol="TLS", hostname="db.test", tls=TLS, hello_timeout=9000)
    world.apply(
        stream_fleet(
            https,
            raw,
            stream_route("c", listener="l/raw", hostname="db.test"),
            make_host(make_rule("c"), listener="l/web", hostname="www.test"),
            make_cluster(web.port, name="c"),
        )
    )
    port = await world.listen(PORT, site.choose)
    clients = {}
    for name in ("db.test", "www.test"):
        clients[name] = await connect(world, port)
        await clients[name].send(Talk(site, name).hello())
    await clients["www.test"].rest()
    await world.until(lambda: world.counters["handshakes_failed_timeout"] == 1, seconds=5)
    assert world.engine.open_connections == 1
    clients["db.test"].close()
