"""TLS clients: the name of the handshake and the Host of a request must lead to the same listener."""

from __future__ import annotations

import ssl

import pytest

from core.backend import Backend, say
from core.certificates import Site
from core.client import Gone, make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir

NAMES = ("a.test", "b.test", "*.w.test", "other.test")


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(*NAMES)


@pytest.fixture
def backend(world: World) -> Backend:
    return world.loop.run_until_complete(world.backend(say("x")))


def secure_fleet(port: int, *hostnames: str) -> ir.Fleet:
    """A TLS listener per hostname, each with a route."""
    parts: list[ir.Listener | ir.VirtualHost | ir.Cluster] = [make_cluster(port)]
    for hostname in hostnames:
        listener = make_listener(f"ns/gw/{hostname}", hostname=hostname, protocol="HTTPS")
        parts += [listener, make_host(make_rule(), listener=listener.name)]
    return make_fleet(*parts)


async def start(world: World, site: Site, fleet: ir.Fleet) -> int:
    world.apply(fleet)
    return await world.listen(choose=site.choose)


@pytest.mark.parametrize(
    ("sni", "host", "status"),
    [
        ("a.test", "a.test", 200),
        ("a.test", "A.TEST", 200),
        ("A.test", "a.test", 200),
        ("a.test", "a.test:8443", 200),
        ("a.test", "b.test", 421),
        ("b.test", "a.test", 421),
        ("a.test", "x.w.test", 421),
        ("x.w.test", "y.w.test", 200),
        ("a.test", "other.test", 404),
        ("other.test", "a.test", 200),
        (None, "a.test", 200),
        ("a.test.", "a.test", 200),
        ("A.test.", "a.test.:8443", 200),
        ("a.test", "a.test.", 200),
        ("a.test.", "b.test", 421),
        ("x.w.test.", "y.w.test.", 200),
    ],
)
async def test_one_listener_for_both(
    world: World, site: Site, backend: Backend, sni: str | None, host: str, status: int
) -> None:
    """A name that no listener has shows no certificate of one: nothing is crossed, so nothing is misdirected."""
    port = await start(world, site, secure_fleet(backend.port, "a.test", "b.test", "*.w.test"))
    context = site.client()
    if sni is None or sni.endswith("."):
        context.check_hostname = False
    client = await world.tls_client(port, context, sni)
    answer = await client.get(host=host)
    assert answer.status == status
    assert answer.value("connection") is None  # it may ask for the right host on this connection
    assert world.counters["misdirected"] == (status == 421)
    assert backend.count == (status == 200)
    assert (await client.get(host=sni or host)).status == (404 if sni == "other.test" else 200)


async def test_a_listener_for_every_host_takes_every_name(
    world: World, site: Site, backend: Backend
) -> None:
    port = await start(world, site, secure_fleet(backend.port, "*"))
    client = await world.tls_client(port, site.client(), "a.test")
    assert (await client.get(host="b.test")).status == 200


async def test_the_catch_all_is_a_listener_of_its_own(
    world: World, site: Site, backend: Backend
) -> None:
    port = await start(world, site, secure_fleet(backend.port, "a.test", "*"))
    client = await world.tls_client(port, site.client(), "b.test")
    assert [(await client.get(host=host)).status for host in ("b.test", "a.test")] == [200, 421]


async def test_backends_hear_of_it(world: World, site: Site) -> None:
    backend = await world.backend()
    port = await start(world, site, secure_fleet(backend.port, "a.test"))
    client = await world.tls_client(port, site.client(), "a.test")
    await client.send(make_request(host="a.test"))
    call = await backend.call()
    assert call.message.value(b"x-forwarded-proto") == b"https"
    call.reply()
    await client.response()
    assert world.counters["connections_tls_total"] == 1


async def test_large_bodies_both_ways(world: World, site: Site) -> None:
    backend = await world.backend()
    port = await start(world, site, secure_fleet(backend.port, "a.test"))
    client = await world.tls_client(port, site.client(), "a.test")
    body = bytes(range(256)) * 12_000
    await client.send(make_request(host="a.test", method="POST", body=body))
    call = await backend.call()
    assert call.message.body == body
    call.reply(body[::-1])
    assert (await client.response()).body == body[::-1]


async def test_a_failed_handshake_leaves_nothing_behind(
    world: World, site: Site, backend: Backend
) -> None:
    port = await start(world, site, secure_fleet(backend.port, "a.test"))
    for _ in range(5):
        client = await world.client(port)
        await client.send(make_request())
        await client.receive()
        client.close()
    with pytest.raises(ssl.SSLCertVerificationError):
        await world.tls_client(port, ssl.create_default_context(), "a.test")
    await world.until(lambda: world.engine.open_connections == 0)
    assert world.counters["connections_active"] == 0
    world.errors.clear()


async def test_drain_and_close(world: World, site: Site, backend: Backend) -> None:
    port = await start(world, site, secure_fleet(backend.port, "a.test"))
    one = await world.tls_client(port, site.client(), "a.test")
    two = await world.tls_client(port, site.client(), "a.test")
    await one.get(host="a.test")
    await two.get(host="a.test")
    world.engine.drain()
    answer = await one.get(host="a.test")
    assert answer.value("connection") == "close"
    assert await one.ending() == "closed"
    world.engine.close(0)
    with pytest.raises(Gone):
        await two.response()
