"""TLS that is passed on by its name: the hello whole and unchanged, the most specific name of the port, and hellos of people who mean no good."""

from __future__ import annotations

import asyncio
import ssl
import struct

import pytest

from core.backend import say
from core.certificates import Site
from core.fleets import PORT, make_cluster, make_host, make_listener, make_rule
from core.stream.streams import (
    Line,
    Place,
    connect,
    echo,
    one_cluster,
    says,
    stream_fleet,
    stream_listener,
    stream_route,
)
from core.world import World
from edgefast import ir
from edgefast.core import TlsContext

UNRECOGNIZED_NAME = b"\x15\x03\x03\x00\x02\x02\x70"


@pytest.fixture(scope="module")
def site() -> Site:
    return Site("db.test", "*.db.test", "www.test")


def nobody(name: str) -> TlsContext | None:
    return None


async def tls_place(world: World, site: Site, word: bytes) -> Place:
    place = await Place(says(word)).start(ssl=site.server())
    world.keep(place)
    return place


def hello_of(name: str | None, protocols: tuple[str, ...] = ()) -> bytes:
    """The first flight of Python's TLS."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    out = ssl.MemoryBIO()
    talk = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        talk.do_handshake()
    return out.read()


def in_records(hello: bytes, size: int) -> bytes:
    """The same hello in records of so many bytes."""
    body = hello[5:]
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack("!H", len(one)) + one for one in parts)


async def passing(world: World, place: Place, **settings: object) -> int:
    listener = stream_listener(protocol="TLS", **settings)  # type: ignore[arg-type]
    world.apply(stream_fleet(listener, one_cluster(place.port)))
    return await world.listen(PORT, nobody)


async def test_the_backend_speaks_its_own_tls(world: World, site: Site) -> None:
    port = await passing(world, await tls_place(world, site, b"there"))
    client = await connect(world, port, ssl=site.client(), server_hostname="db.test")
    assert await client.take(5) == b"there"
    await client.send(b"x" * 300_000)
    assert await client.take(300_000) == b"x" * 300_000
    client.close()
    await world.until(lambda: world.engine.open_connections == 0)
    (line,) = world.lines()
    assert (line["protocol"], line["sni"]) == ("TLS", "db.test")
    assert world.counters["handshakes_failed"] == 0


async def test_the_most_specific_name_decides(world: World, site: Site) -> None:
    names = ("db.test", "*.db.test", "*")
    places = {name: await tls_place(world, site, name.encode() + b"!") for name in names}
    world.apply(
        stream_fleet(
            stream_listener("l/1", protocol="TLS", hostname="db.test"),
            stream_listener("l/2", protocol="TLS", hostname="*.db.test"),
            stream_listener("l/3", protocol="TLS"),
            stream_route("c0", listener="l/1", hostname="db.test"),
            stream_route("c1", listener="l/2", hostname="*.db.test"),
            stream_route("c2", listener="l/3"),
            *(make_cluster(places[name].port, name=f"c{i}") for i, name in enumerate(names)),
        )
    )
    port = await world.listen(PORT, nobody)
    loose = site.client()
    loose.check_hostname = False
    for asked, found in (
        ("db.test", "db.test"),
        ("DB.test", "db.test"),
        ("db.test.", "db.test"),
        ("a.db.test", "*.db.test"),
        ("b.a.db.test", "*.db.test"),
        ("other.test", "*"),
        (None, "*"),
    ):
        client = await connect(world, port, ssl=loose, server_hostname=asked or "")
        assert await client.take(len(found) + 1) == found.encode() + b"!", asked
        client.close()


async def test_nobodys_names_are_refused(world: World, site: Site) -> None:
    place = await tls_place(world, site, b"x")
    world.apply(
        stream_fleet(
            stream_listener(protocol="TLS", hostname="*.test"),
            stream_route(hostname="db.test"),
            one_cluster(place.port),
        )
    )
    port = await world.listen(PORT, nobody)
    for name in ("db.test.example", "www.test", None):
        client = await connect(world, port)
        await client.send(hello_of(name))
        # No alert: the API's suite takes an end for a refusal, and nothing else.
        assert await client.rest() == b"", name
    assert world.counters["handshakes_failed_name"] == 3
    assert place.count == 0


@pytest.mark.parametrize(
    "name",
    [
        b"a" * 255,
        b"a." * 127 + b"b",
        b"a" * 250 + b".test",  # longer than a label may be, but whose suffix somebody has
        b"db.test\0",
        b"\0db.test",
        b"x\0.db.test",
        b"a" * 249 + b"\0.test",
    ],
)
async def test_names_that_are_none_reach_nobody(world: World, site: Site, name: bytes) -> None:
    place = await tls_place(world, site, b"x")
    world.apply(
        stream_fleet(
            stream_listener(protocol="TLS", hostname="*.test"),
            stream_route(hostname="db.test"),
            one_cluster(place.port),
        )
    )
    port = await world.listen(PORT, nobody)
    kept = await connect(world, port, ssl=site.client(), server_hostname="db.test")
    assert await kept.take(1) == b"x"
    client = await connect(world, port)
    await client.send(named(name))
    # What is no name at all is refused while the hello is read, with an alert.
    assert await client.rest() in (b"", UNRECOGNIZED_NAME)
    assert place.count == 1
    await kept.send(b"still")
    assert await kept.take(5) == b"still"
    kept.close()


def encrypting(outer: str, inner: bytes) -> bytes:
    """A hello whose last extension is an Encrypted Client Hello (RFC 9849 5) with that name, here for all to read."""
    hello = bytearray(hello_of(outer))
    payload = struct.pack("!HHHBH", 0, len(inner) + 5, len(inner) + 3, 0, len(inner)) + inner
    said = struct.pack("!BHHBHH", 0, 1, 1, 7, 0, len(payload)) + payload
    added = struct.pack("!HH", 0xFE0D, len(said)) + said
    body = 9 + 2 + 32
    body += 1 + hello[body]
    body += 2 + int.from_bytes(hello[body : body + 2], "big")
    body += 1 + hello[body]
    for place, width in ((body, 2), (3, 2), (6, 3)):
        value = int.from_bytes(hello[place : place + width], "big") + len(added)
        hello[place : place + width] = value.to_bytes(width, "big")
    return bytes(hello) + added


async def test_of_an_encrypted_hello_the_outer_name_counts(world: World) -> None:
    place, other = await Place().start(), await Place().start()
    world.keep(place)
    world.keep(other)
    world.apply(
        stream_fleet(
            stream_listener(protocol="TLS"),
            stream_route("c0", hostname="public.test"),
            stream_route("c1", hostname="secret.test"),
            make_cluster(place.port, name="c0"),
            make_cluster(other.port, name="c1"),
        )
    )
    client = await connect(world, await world.listen(PORT, nobody))
    hello = encrypting("public.test", b"secret.test")
    await client.send(hello)
    assert await (await place.next()).take(len(hello)) == hello
    assert other.count == 0
    client.close()


async def test_who_cannot_be_served_is_reset(world: World) -> None:
    world.apply(stream_fleet(stream_listener(protocol="TLS"), one_cluster(world.refusing_port())))
    client = await connect(world, await world.listen(PORT, nobody))
    await client.send(hello_of("db.test"))
    assert await client.is_reset()
    await world.until(lambda: world.engine.open_connections == 0)
    assert [line["end"] for line in world.lines()] == ["connect_failed"]


@pytest.mark.parametrize("size", [8, 100, 16384])
async def test_a_hello_goes_on_as_it_came(world: World, size: int) -> None:
    place = await Place().start()
    world.keep(place)
    port = await passing(world, place)
    hello = in_records(hello_of("db.test"), size)
    client = await connect(world, port)
    for at in range(0, len(hello), 37):
        await client.send(hello[at : at + 37])
        await asyncio.sleep(0)
    there = await place.next()
    await client.send(b"and more")
    assert await there.take(len(hello) + 8) == hello + b"and more"
    client.close()


def named(name: bytes) -> bytes:
    """A hello with any bytes for a name."""
    hello = hello_of("x" * 50 + ".test")
    old = b"x" * 50 + b".test"
    at = hello.index(old)
    extra = len(name) - len(old)
    data = bytearray(hello.replace(old, name))
    for place, width in ((at - 2, 2), (at - 5, 2), (at - 7, 2), (3, 2), (6, 3)):
        value = int.from_bytes(data[place : place + width], "big") + extra
        data[place : place + width] = value.to_bytes(width, "big")
    # the extensions' length stands before the first extension
    body = 9 + 2 + 32
    body += 1 + data[body]
    body += 2 + int.from_bytes(data[body : body + 2], "big")
    body += 1 + data[body]
    value = int.from_bytes(data[body : body + 2], "big") + extra
    data[body : body + 2] = value.to_bytes(2, "big")
    return bytes(data)


@pytest.mark.parametrize(
    "hello",
    [
        named(b"db.test\0.evil.test"),
        named(b"a" * 256),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\x05\x02\0\0\x01\0",
        b"\x16\x03\x01\x40\x01\x01\0\0\x01\0",
    ],
)
async def test_hellos_that_are_none(world: World, hello: bytes) -> None:
    place = await Place().start()
    world.keep(place)
    client = await connect(world, await passing(world, place))
    await client.send(hello)
    assert (await client.rest())[:3] == b"\x15\x03\x03"
    assert place.count == 0


async def test_the_longest_name(world: World) -> None:
    place = await Place().start()
    world.keep(place)
    client = await connect(world, await passing(world, place))
    hello = named(b"a" * 255)
    await client.send(hello)
    assert await (await place.next()).take(len(hello)) == hello
    client.close()


async def test_a_slow_hello_has_its_time(world: World) -> None:
    place = await Place().start()
    world.keep(place)
    client = await connect(world, await passing(world, place, hello_timeout=150))
    await client.send(hello_of("db.test")[:100])
    assert await client.rest() == b""
    assert world.counters["handshakes_failed_timeout"] == 1


@pytest.mark.parametrize("protocols", [("mqtt",), ("h2", "http/1.1")])
async def test_the_backend_is_told_the_name_and_the_protocol(
    world: World, protocols: tuple[str, ...]
) -> None:
    place = await Place().start()
    world.keep(place)
    share = ir.StreamBackend(cluster="c", proxy_protocol="v2")
    world.apply(
        stream_fleet(
            stream_listener(protocol="TLS"),
            stream_route(share),
            make_cluster(place.port, name="c"),
        )
    )
    client = await connect(world, await world.listen(PORT, nobody))
    hello = hello_of("db.test", protocols)
    await client.send(hello)
    there = await place.next()
    head = await there.take(16)
    rest = await there.take(int.from_bytes(head[14:16], "big"))
    expected = b"\x02\0\x07db.test"
    if len(protocols) == 1:
        expected = b"\x01\0\x04mqtt" + expected
    assert rest[12:] == expected
    assert await there.take(len(hello)) == hello
    client.close()


async def test_tls_is_terminated_and_passed_on(world: World, site: Site) -> None:
    place = await Place(echo).start()
    world.keep(place)
    terminating = stream_listener(protocol="TLS", tls=ir.ListenerTls(certificates=("s",)))
    world.apply(stream_fleet(terminating, one_cluster(place.port)))
    port = await world.listen(PORT, site.choose)
    client = await connect(world, port, ssl=site.client(), server_hostname="db.test")
    await client.send(b"inside" * 50_000)
    assert await client.take(300_000) == b"inside" * 50_000
    client.close()
    await world.until(lambda: world.engine.open_connections == 0)
    assert [line["sni"] for line in world.lines()] == ["db.test"]
    assert world.counters["handshakes_done_1.3_false"] == 1


async def test_https_beside_it_on_one_port(world: World, site: Site) -> None:
    place = await tls_place(world, site, b"raw")
    web = await world.backend(say("web"))
    https = make_listener("l/web", protocol="HTTPS", hostname="*.test")
    https = https.__class__(
        **{f: getattr(https, f) for f in https.__struct_fields__}
        | {"tls": ir.ListenerTls(certificates=("s",))}
    )
    world.apply(
        stream_fleet(
            https,
            stream_listener("l/raw", protocol="TLS", hostname="db.test"),
            stream_route("c", listener="l/raw", hostname="db.test"),
            make_host(make_rule("w"), listener="l/web", hostname="*.test"),
            make_cluster(place.port, name="c"),
            make_cluster(web.port, name="w"),
        )
    )
    port = await world.listen(PORT, site.choose)
    raw: Line = await connect(world, port, ssl=site.client(), server_hostname="db.test")
    assert await raw.take(3) == b"raw"
    raw.close()
    client = await world.tls_client(port, site.client(), "www.test")
    answer = await client.get(host="www.test")
    assert (answer.status, answer.body) == (200, b"web")
    answer = await client.get(host="db.test")  # is not served by a less specific listener
    assert answer.status in (404, 421)
