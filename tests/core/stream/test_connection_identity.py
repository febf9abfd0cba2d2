"""Authorization by server name and client certificate: what is missing or not proven matches Deny rules alone."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest

from core.certificates import Site
from core.client import make_request
from core.fleets import PORT, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.stream.streams import (
    Line,
    Place,
    connect,
    echo,
    one_cluster,
    stream_fleet,
    stream_listener,
    stream_route,
)
from core.stream.test_tls_terminated import Talk
from core.tls.test_certificate_headers import context_of, side
from core.world import World
from edgefast import ir
from proxy.pki import Authority, Pair

UNIT = "security/ns/p#authorization"
URI = "spiffe://a.test/ns/x"
TLS = ir.ListenerTls(certificates=("s",))


@pytest.fixture(scope="module")
def site() -> Site:
    return Site("a.test", "b.test", "x.b.test")


@pytest.fixture(scope="module")
def clients() -> Authority:
    return Authority("clients")


def unit(allow: bool, **conditions: Any) -> ir.PolicyUnit:
    """One rule; without a match the opposite of it."""
    rules = (ir.AccessRule(allow=allow, **conditions),)
    return ir.PolicyUnit(name=UNIT, authorization=ir.Authorization(rules=rules, allow=not allow))


async def passthrough(world: World, site: Site, one: ir.PolicyUnit) -> tuple[Place, int]:
    place = await Place(echo).start()
    world.keep(place)
    listener = stream_listener(protocol="TLS")
    world.apply(
        stream_fleet(listener, stream_route(policies=(UNIT,)), one_cluster(place.port), one)
    )
    return place, await world.listen(PORT, site.choose)


async def hello_passes(world: World, port: int, hello: bytes) -> bool:
    client: Line = await connect(world, port)
    await client.send(hello)
    try:
        found = await client.take(len(hello)) == hello
    except (ConnectionResetError, asyncio.IncompleteReadError):
        return False
    client.close()
    return found


def nameless(site: Site) -> bytes:
    context = site.client()
    context.check_hostname = False
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(into, out).do_handshake()
    return out.read()


async def test_a_policy_that_comes_during_a_handshake_decides(world: World, site: Site) -> None:
    place = await Place(echo).start()
    world.keep(place)
    listener = stream_listener(protocol="TLS", tls=TLS)
    world.apply(stream_fleet(listener, stream_route(), one_cluster(place.port)))
    port = await world.listen(PORT, site.choose)
    client, talk = await connect(world, port), Talk(site, "a.test")
    await client.send(talk.hello())
    flight = await client.reader.read(65536)
    deny = ir.PolicyUnit(name=UNIT, authorization=ir.Authorization(rules=(), allow=False))
    route = stream_route(policies=(UNIT,))
    world.apply(stream_fleet(listener, route, one_cluster(place.port), deny))
    await client.send(talk.finish(flight))
    await world.until(lambda: world.counters["stream_refused_policy"] == 1)
    assert place.count == 0
    client.close()


@pytest.mark.parametrize(
    ("names", "allow", "admitted"),
    [
        (("a.test",), True, {"a.test"}),
        (("*.b.test",), True, {"x.b.test"}),
        (("a.test",), False, {"b.test", "x.b.test"}),
        (("*.b.test",), False, {"a.test", "b.test"}),
    ],
)
async def test_a_server_name(
    world: World, site: Site, names: tuple[str, ...], allow: bool, admitted: set[str]
) -> None:
    place, port = await passthrough(world, site, unit(allow, server_names=names))
    found = {
        name
        for name in ("a.test", "b.test", "x.b.test")
        if await hello_passes(world, port, Talk(site, name).hello())
    }
    assert found == admitted
    assert not await hello_passes(world, port, nameless(site))  # neither rule lets it pass
    assert place.count == len(admitted)
    await world.until(lambda: world.engine.open_connections == 0)
    assert {one["policy"] for one in world.lines() if one["end"] == "policy_denied"} == {UNIT}


async def test_a_dot_at_the_end_is_no_way_around_a_deny_rule(world: World, site: Site) -> None:
    place, port = await passthrough(world, site, unit(False, server_names=("a.tes",)))
    hello = Talk(site, "a.test").hello()
    assert await hello_passes(world, port, hello)
    assert not await hello_passes(world, port, hello.replace(b"a.test", b"a.tes."))
    assert place.count == 1


@pytest.mark.parametrize(
    ("names", "holds"),
    [
        ((("uri", URI),), True),
        ((("dns", "c.test"),), True),
        ((("dns", "other.test"), ("uri", "spiffe://a.test/ns/y")), False),
    ],
)
@pytest.mark.parametrize("allow", [True, False])
async def test_a_client_certificate(
    world: World,
    site: Site,
    clients: Authority,
    names: tuple[tuple[str, str], ...],
    holds: bool,
    allow: bool,
) -> None:
    place = await Place(echo).start()
    world.keep(place)
    listener = stream_listener(protocol="TLS", tls=TLS)
    one = unit(allow, certificate=names)
    world.apply(
        stream_fleet(listener, stream_route(policies=(UNIT,)), one_cluster(place.port), one)
    )
    asked = side(site, clients.bundle, "any")
    port = await world.listen(PORT, lambda name: asked)
    good = clients.issue("c.test", uris=(URI,), common="one")
    assert await handshake_passes(port, site, good) is (holds is allow)
    # Without a certificate, without names, and of another authority: no rule lets them pass.
    foreign = Authority("others").issue("c.test", uris=(URI,), common="one")
    bare = clients.issue("nobody.test", common="two")
    assert not await handshake_passes(port, site, None)
    assert not await handshake_passes(port, site, foreign)
    assert await handshake_passes(port, site, bare) is not allow
    assert place.count == int(holds is allow) + int(not allow)


async def handshake_passes(port: int, site: Site, pair: Pair | None) -> bool:
    context = context_of(site, pair)
    try:
        async with asyncio.timeout(20):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname="a.test"
            )
            writer.write(b"x")
            found = await reader.readexactly(1) == b"x"
    except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
        return False
    writer.transport.abort()
    return found


@pytest.mark.parametrize("allow", [True, False])
async def test_of_requests_of_https_too(
    world: World, site: Site, clients: Authority, allow: bool
) -> None:
    backend = await world.backend(lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    conditions = {"server_names": ("a.test",), "certificate": (("uri", URI),)}
    rule = make_rule(policies=(UNIT,))
    fleet = make_fleet(make_listener(protocol="HTTPS"), make_host(rule), make_cluster(backend.port))
    one = unit(allow, **conditions)
    world.apply(
        type(fleet)(
            **{f: getattr(fleet, f) for f in fleet.__struct_fields__} | {"policies": (one,)}
        )
    )
    asked = side(site, clients.bundle, "any")
    port = await world.listen(PORT, lambda name: asked)
    good = clients.issue("c.test", uris=(URI,), common="one")
    statuses = []
    for name, pair in (("a.test", good), ("b.test", good), ("a.test", None)):
        client = await world.tls_client(port, context_of(site, pair), name)
        answer = await client.ask(make_request(host=name))
        statuses.append(answer.status)
    assert statuses == ([200, 403, 403] if allow else [403, 200, 403])
