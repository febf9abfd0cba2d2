"""Backends by name: their addresses come, change and go while requests wait, run and pool."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from core.backend import say
from core.client import make_request
from core.fleets import CLUSTER, make_fleet, make_rule
from core.upstream.test_resolver import Names
from core.world import World
from edgefast import ir
from edgefast.core.upstream import resolver as module
from edgefast.netaddr import ANY_NETWORK


def named(port: int, *hostnames: str, name: str = CLUSTER, **settings: Any) -> ir.Cluster:
    endpoints = tuple(ir.Endpoint(hostname=one, port=port) for one in hostnames)
    return ir.Cluster(name=name, endpoints=endpoints, **{"allowed": ANY_NETWORK, **settings})


@pytest.fixture
def names(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    monkeypatch.setattr(module, "INTERVAL", 0.005)
    monkeypatch.setattr(module, "RETRY", 0.005)
    made = Names(monkeypatch)
    yield made
    made.release()


def addresses(world: World) -> list[str]:
    return [one["address"] for one in world.cluster(CLUSTER)["endpoints"]]


async def test_a_name_is_resolved_before_it_is_needed(world: World, names: Names) -> None:
    backend = await world.backend(say("x"))
    names.answers["a.test"] = ["127.0.0.1"]
    port = await world.serve(make_fleet(named(backend.port, "a.test")))
    await world.until(lambda: addresses(world) == [f"127.0.0.1:{backend.port}"])
    assert (await (await world.client(port)).get()).body == b"x"


async def test_requests_wait_for_the_first_answer(world: World, names: Names) -> None:
    backend = await world.backend(say("x"))
    hung = names.hang("a.test")
    names.answers["a.test"] = ["127.0.0.1"]
    port = await world.serve(make_fleet(named(backend.port, "a.test", max_pending=2)))
    clients = [await world.client(port) for _ in range(4)]
    for client in clients[:2]:
        await client.send(make_request())
    await world.until(lambda: world.engine.active == 2)
    for client in clients[2:]:
        assert (await client.get()).status == 503
    hung.set()
    assert [(await client.response()).body for client in clients[:2]] == [b"x", b"x"]


async def test_a_name_without_an_address_is_503(world: World, names: Names) -> None:
    backend = await world.backend(say("x"))
    hung = names.hang("a.test")
    names.answers["a.test"] = OSError("no such name")
    client = await world.client_of(make_fleet(named(backend.port, "a.test")))
    await client.send(make_request())
    await world.until(lambda: world.engine.active == 1)
    hung.set()
    assert (await client.response()).status == 503
    names.answers["a.test"] = ["127.0.0.1"]
    await world.until(lambda: addresses(world) != [])
    assert (await client.get()).status == 200


async def test_addresses_change(world: World, names: Names) -> None:
    backend = await world.backend(say("x"))
    await backend.start(host="127.0.0.2", port=backend.port)
    names.answers["a.test"] = ["127.0.0.1"]
    client = await world.client_of(make_fleet(named(backend.port, "a.test")))
    assert (await client.get()).status == 200
    old = backend.links[0]
    names.answers["a.test"] = ["127.0.0.2", "127.0.0.1"]
    await world.until(lambda: len(addresses(world)) == 2)
    assert not old.lost  # what stays keeps its pool
    names.answers["a.test"] = ["127.0.0.2"]
    await world.until(lambda: addresses(world) == [f"127.0.0.2:{backend.port}"])
    await world.until(lambda: old.lost, "what goes is let go of")
    assert (await client.get()).status == 200
    assert backend.links[-1].transport.get_extra_info("sockname")[0] == "127.0.0.2"


async def test_a_broken_name_server_takes_nothing_away(world: World, names: Names) -> None:
    backend = await world.backend(say("x"))
    names.answers["a.test"] = ["127.0.0.1"]
    client = await world.client_of(make_fleet(named(backend.port, "a.test")))
    assert (await client.get()).status == 200
    names.answers["a.test"] = OSError("the name server is away")
    asked = len(names.asked)
    await world.until(lambda: len(names.asked) > asked + 3)
    assert (await client.get()).status == 200
    assert len(backend.links) == 1


async def test_another_cluster_of_the_same_name_takes_nothing_away(
    world: World, names: Names
) -> None:
    backend = await world.backend(say("x"))
    names.answers["a.test"] = ["127.0.0.1"]
    first = named(backend.port, "a.test")
    client = await world.client_of(make_fleet(make_rule(), first))
    assert (await client.get()).status == 200
    names.answers["a.test"] = OSError("the name server is away")
    second = named(backend.port, "a.test", name="second")
    world.apply(make_fleet(make_rule(CLUSTER, "second"), first, second))
    asked = len(names.asked)
    await world.until(lambda: len(names.asked) > asked + 3)
    assert [(await client.get()).status for _ in range(4)] == [200] * 4


async def test_a_name_beside_an_address(world: World, names: Names) -> None:
    backend, other = await world.backend(say("x")), await world.backend(say("x"))
    hung = names.hang("a.test")
    names.answers["a.test"] = ["127.0.0.1"]
    cluster = ir.Cluster(
        allowed=ANY_NETWORK,
        name=CLUSTER,
        endpoints=(
            ir.Endpoint(hostname="a.test", port=backend.port),
            ir.Endpoint(address="127.0.0.1", port=other.port),
        ),
    )
    client = await world.client_of(make_fleet(cluster))
    assert (await client.get()).status == 200  # nothing waits while there is an address
    hung.set()
    await world.until(lambda: len(addresses(world)) == 2)


async def test_a_removed_cluster_asks_no_more(world: World, names: Names) -> None:
    names.answers["a.test"] = ["127.0.0.1"]
    world.apply(make_fleet(make_rule(), named(1, "a.test")))
    await world.until(lambda: len(names.asked) > 2)
    world.apply(make_fleet(make_rule()))
    await world.turns()
    asked = len(names.asked)
    begin = world.loop.time()
    await world.until(lambda: world.loop.time() > begin + 0.03)
    assert len(names.asked) == asked


async def test_a_changed_name_is_asked_instead(world: World, names: Names) -> None:
    backend = await world.backend(say("x"))
    names.answers.update({"a.test": ["127.0.0.1"], "b.test": ["127.0.0.1"]})
    port = await world.serve(make_fleet(named(1, "a.test")))
    await world.until(lambda: names.asked)
    world.apply(make_fleet(named(backend.port, "b.test")))
    await world.until(lambda: "b.test" in names.asked)
    await world.until(lambda: addresses(world) == [f"127.0.0.1:{backend.port}"])
    assert (await (await world.client(port)).get()).status == 200
    await world.turns()
    asked = names.asked.count("a.test")
    before = names.asked.count("b.test")
    await world.until(lambda: names.asked.count("b.test") > before + 2)
    assert names.asked.count("a.test") == asked


async def test_a_name_that_begins_to_resolve_to_a_refused_address(
    world: World, names: Names, caplog: pytest.LogCaptureFixture
) -> None:
    """At each resolution: a name is harmless when its Backend is checked, and points at the proxy itself later."""
    backend = await world.backend(say("x"))
    names.answers["a.test"] = ["127.0.0.1", "127.0.0.2"]
    port = await world.serve(make_fleet(named(backend.port, "a.test", allowed=("127.0.0.1/32",))))
    await world.until(lambda: addresses(world) == [f"127.0.0.1:{backend.port}"])
    assert (await (await world.client(port)).get()).body == b"x"
    names.answers["a.test"] = ["169.254.169.254", "127.0.0.3"]
    await world.until(lambda: addresses(world) == [])
    assert (await (await world.client(port)).get()).status == 503
    assert "a.test resolves to addresses that are not allowed as backends" in caplog.text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "0.0.0.0"])
async def test_the_proxy_does_not_dial_its_own_ports(world: World, host: str) -> None:
    """Also if the table allows it: a backend there would be the admin server."""
    sock = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    world.hold(sock)
    sock.setblocking(False)
    own = sock.getsockname()[1]
    world.engine.own(frozenset({own}), frozenset())
    cluster = ir.Cluster(name=CLUSTER, endpoints=(ir.Endpoint(address=host, port=own),))
    port = await world.serve(make_fleet(cluster))
    assert (await (await world.client(port)).get()).status == 503
    with pytest.raises(BlockingIOError):
        sock.accept()
