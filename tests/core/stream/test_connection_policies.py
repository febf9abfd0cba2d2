"""Authorization of connections and UDP sessions: what is refused reaches no backend, and metrics and log name the policy."""

from __future__ import annotations

import asyncio
import struct

import pytest

from core.stream import datagrams
from core.stream.streams import (
    Line,
    Place,
    connect,
    echo,
    is_refused,
    one_cluster,
    stream_fleet,
    stream_listener,
    stream_route,
)
from core.world import World
from edgefast import ir

UNIT = "security/ns/p#authorization"
ROW = "security/ns/p\tauthorization"
V2 = b"\r\n\r\n\x00\r\nQUIT\n"


def rule(allow: bool, *sources: str, **more: object) -> ir.AccessRule:
    return ir.AccessRule(allow=allow, sources=sources, **more)  # type: ignore[arg-type]


def unit(*rules: ir.AccessRule, allow: bool = False, name: str = UNIT) -> ir.PolicyUnit:
    return ir.PolicyUnit(name=name, authorization=ir.Authorization(rules=rules, allow=allow))


async def serve(
    world: World, *units: ir.PolicyUnit, names: tuple[str, ...] = (UNIT,), **settings: object
) -> tuple[Place, int]:
    place = await Place(echo).start()
    world.keep(place)
    world.apply(
        stream_fleet(
            stream_listener(**settings),  # type: ignore[arg-type]
            stream_route(policies=names),
            one_cluster(place.port),
            *units,
        )
    )
    return place, await world.listen_stream()


async def passes(world: World, port: int, source: str = "127.0.0.1") -> bool:
    """Connect from this address: whether bytes come back; False: the connection is reset."""
    try:
        line = await connect(world, port, local_addr=(source, 0))
        await line.send(b"x")
        found = await line.take(1) == b"x"
    except (ConnectionResetError, asyncio.IncompleteReadError):
        return False
    line.close()
    return found


async def test_the_first_rule_that_matches_decides(world: World) -> None:
    rules = (rule(False, "127.0.0.2/32", name="bad"), rule(True, "127.0.0.0/30"))
    place, port = await serve(world, unit(*rules))
    assert await passes(world, port)
    assert not await passes(world, port, "127.0.0.2")
    assert not await passes(world, port, "127.0.0.9")
    await world.until(lambda: world.engine.open_connections == 0)
    assert place.count == 1
    assert world.counters["stream_refused_policy"] == 2
    row = world.counters.policy(ROW)
    assert row == {"allowed": 1, "denied": 2}
    told = [one for one in world.lines() if one["end"] == "policy_denied"]
    assert [(one["client"], one["policy"], one.get("policy_rule")) for one in told] == [
        ("127.0.0.2", UNIT, "bad"),
        ("127.0.0.9", UNIT, None),
    ]
    assert all("endpoint" not in one for one in told)


@pytest.mark.parametrize(
    ("source", "admitted"), [("127.0.0.0/8", True), ("::/0", False), ("::ffff:0:0/96", True)]
)
async def test_an_ipv4_client_of_an_ipv6_socket_is_in_no_range_of_ipv6(
    world: World, source: str, admitted: bool
) -> None:
    from edgefast.netaddr import parse_network

    place = await Place(echo).start()
    world.keep(place)
    only = unit(rule(True, str(parse_network(source))))
    fleet = stream_fleet(
        stream_listener(), stream_route(policies=(UNIT,)), one_cluster(place.port), only
    )
    world.apply(fleet)
    assert await passes(world, await world.listen_stream()) is admitted


@pytest.mark.parametrize(
    "broken",
    [
        (),  # the table has no such unit
        (ir.PolicyUnit(name=UNIT, status=500),),
        (ir.PolicyUnit(name=UNIT, basic=ir.BasicAuth(users=())),),
        (unit(rule(True, methods=("GET",)), allow=True),),
        (unit(rule(True, headers=(("x-a", ("1",)),)), allow=True),),
        (unit(rule(False, paths=(("prefix", "/a"),)), allow=True),),
    ],
)
async def test_a_unit_that_cannot_decide_refuses(
    world: World, broken: tuple[ir.PolicyUnit, ...]
) -> None:
    place, port = await serve(world, *broken)
    assert await is_refused(world, port)
    await world.until(lambda: world.engine.open_connections == 0)
    assert place.count == 0
    (line,) = world.lines()
    assert (line["end"], line["policy"]) == ("policy_denied", UNIT)
    assert world.counters.policy(ROW) == {"error": 1}


async def test_every_authorization_must_admit(world: World) -> None:
    first, second = "security/ns/a#authorization", "security/ns/b#authorization"
    units = (
        unit(rule(True, "127.0.0.0/8"), name=first),
        unit(rule(True, "127.0.0.1/32"), name=second),
    )
    _, port = await serve(world, *units, names=(first, second))
    assert await passes(world, port)
    assert not await passes(world, port, "127.0.0.2")


async def test_a_flood_of_refused_connections_takes_no_place(world: World) -> None:
    """Clients that hold all places keep them, however long they are idle."""
    _, port = await serve(world, unit(rule(True, "127.0.0.1/32")), max_connections=2)
    held = []
    for _ in range(2):
        held.append(await connect(world, port))
        await held[-1].send(b"x")
        assert await held[-1].take(1) == b"x"
    flood = [passes(world, port, "127.0.0.2") for _ in range(64)]
    assert not any(await asyncio.gather(*flood))
    for one in held:
        await one.send(b"y")
        assert await one.take(1) == b"y"
        one.close()
    await world.until(lambda: world.engine.open_connections == 0)
    assert world.counters["stream_refused_policy"] == 64
    assert world.counters["stream_refused_limit"] == 0


@pytest.mark.parametrize("admitted", [True, False])
async def test_the_client_is_that_of_the_proxy_protocol(world: World, admitted: bool) -> None:
    named = b"\xc0\x00\x02\x07"  # 192.0.2.7
    place, port = await serve(
        world,
        unit(rule(True, "192.0.2.0/24" if admitted else "127.0.0.0/8")),
        proxy_protocol="required",
    )
    client = await connect(world, port)
    header = V2 + struct.pack("!BBH4s4sHH", 0x21, 0x11, 12, named, b"\x7f\0\0\1", 4711, 80)
    await client.send(header + b"x")
    if admitted:
        assert await client.take(1) == b"x"
        client.close()
    else:
        assert await client.is_reset()
        assert place.count == 0


async def test_an_edit_decides_about_new_connections(world: World) -> None:
    place, port = await serve(world, unit(rule(True, "127.0.0.0/8")))
    old: Line = await connect(world, port)
    await old.send(b"x")
    assert await old.take(1) == b"x"
    world.apply(
        stream_fleet(
            stream_listener(), stream_route(policies=(UNIT,)), one_cluster(place.port), unit()
        )
    )
    assert not await passes(world, port)
    await old.send(b"y")
    assert await old.take(1) == b"y"
    old.close()


async def test_a_refused_datagram_begins_no_session(world: World) -> None:
    there = await datagrams.backend(world)
    world.apply(
        stream_fleet(
            stream_listener(protocol="UDP"),
            stream_route(policies=(UNIT,)),
            one_cluster(there.port),
            unit(rule(True, "127.0.0.1/32")),
        )
    )
    port = await world.listen_datagrams()
    bad = datagrams.client(world, port, "127.0.0.2")
    for _ in range(40):
        bad.send(b"no")
    await world.until(lambda: world.counters["stream_refused_policy"] > 0)
    good = datagrams.client(world, port)
    assert await datagrams.ask_again(world, good, b"yes") == b"yes"
    assert {data for data, _ in there.got} == {b"yes"}
    assert world.counters["stream_sessions"] == 1
    refused = [one for one in world.lines() if one["end"] == "policy_denied"]
    assert 1 <= len(refused) <= 32  # 16 a second, whatever comes
    assert {(one["client"], one["policy"]) for one in refused} == {("127.0.0.2", UNIT)}


async def test_an_edit_ends_the_session_of_a_client_that_is_denied_now(world: World) -> None:
    there = await datagrams.backend(world)
    settings = (stream_listener(protocol="UDP"), stream_route(policies=(UNIT,)))
    world.apply(stream_fleet(*settings, one_cluster(there.port), unit(rule(True, "127.0.0.0/8"))))
    sock = datagrams.client(world, await world.listen_datagrams())
    await datagrams.converse(world, sock)
    world.apply(stream_fleet(*settings, one_cluster(there.port), unit(rule(True, "127.0.0.0/9"))))
    assert await datagrams.ask(world, sock, b"3") == b"3"
    assert world.counters["stream_sessions"] == 1  # it still may: the session goes on
    world.apply(stream_fleet(*settings, one_cluster(there.port), unit()))
    sock.send(b"4")
    await world.until(lambda: world.counters["stream_refused_policy"] == 1)
    assert [data for data, _ in there.got] == [b"1", b"2", b"3"]


async def test_a_client_that_is_denied_now_gets_no_more_answers(world: World) -> None:
    there = await datagrams.backend(world)
    settings = (stream_listener(protocol="UDP"), stream_route(policies=(UNIT,)))
    world.apply(stream_fleet(*settings, one_cluster(there.port), unit(rule(True, "127.0.0.0/8"))))
    sock = datagrams.client(world, await world.listen_datagrams())
    await datagrams.converse(world, sock)
    session = there.got[-1][1]
    world.apply(stream_fleet(*settings, one_cluster(there.port), unit()))
    there.transport.sendto(b"push", session)
    await world.until(lambda: any(one["end"] == "policy_denied" for one in world.lines()))
    with pytest.raises(BlockingIOError):
        sock.recv(100)
    (line,) = (one for one in world.lines() if one["end"] == "policy_denied")
    assert line["policy"] == UNIT and line["datagrams_received"] == 2


async def test_a_broken_traffic_unit_ends_udp_sessions(world: World) -> None:
    name = "traffic/ns/t"
    policy = ir.HashPolicy(source=True)
    hashed = ir.Traffic(load_balancer=ir.LoadBalancer(type="hash", hash=policy))
    there = await datagrams.backend(world)
    settings = (stream_listener(protocol="UDP"), stream_route(traffic=(name,)))
    cluster = one_cluster(there.port)
    world.apply(stream_fleet(*settings, cluster, ir.PolicyUnit(name=name, traffic=hashed)))
    sock = datagrams.client(world, await world.listen_datagrams())
    await datagrams.converse(world, sock)
    world.apply(stream_fleet(*settings, cluster, ir.PolicyUnit(name=name, status=500)))
    sock.send(b"again")
    await world.until(lambda: world.counters["stream_refused_policy"] == 1)
    assert [data for data, _ in there.got] == [b"1", b"2"]
