"""Filters of a listener, however requests come and whatever changes meanwhile: bodies, pipelines, HTTP/2, gRPC, tables."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.apart import apart, shift
from core.backend import Call
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.asking import Asker, Fields
from core.policy.authorized import (
    AUTH,
    DENY,
    FILTER,
    PASS,
    make_auth,
    make_unit,
    passing,
    with_filters,
)
from core.policy.filtered import INNER, by_tenant, filtered
from core.world import World
from edgefast import ir

GRPC: Fields = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":authority", b"test"),
    (b":path", b"/pkg.Svc/Call"),
    (b"content-type", b"application/grpc"),
    (b"te", b"trailers"),
]


async def test_pipelined_requests_keep_their_order(world: World) -> None:
    found = await filtered(world, None, make_host(("/there", make_rule())))
    client = await found.client()
    await client.send(make_request("/there") + make_request("/nowhere") + make_request("/there"))
    for answer, status in ((PASS, 200), (PASS, 404), (DENY, 403)):
        call = await found.service.call()
        call.send(answer)
        assert (await client.response()).status == status
    assert len(found.seen) == 1


@pytest.mark.parametrize("size", [10, 300_000])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_is_shown_twice_and_goes_on(world: World, size: int, chunked: bool) -> None:
    inner = await world.backend()
    bodies: list[bytes] = []

    def judge(call: Call) -> bytes:
        bodies.append(call.message.body)
        return PASS

    inner.answer = judge
    found = await filtered(
        world,
        judge,
        make_host(make_rule(ext_auth=make_auth(INNER, body=400_000))),
        clusters=(make_cluster(inner.port, name=INNER),),
        body=400_000,
    )
    body = bytes(i % 251 for i in range(size))
    client = await found.client()
    if chunked:
        head = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
        await client.send(head + b"%x\r\n%b\r\n0\r\n\r\n" % (size, body))
    else:
        await client.send(make_request(method="POST", body=body))
    assert (await client.response()).body == b"behind"
    assert bodies == [body, body] and found.seen[0].message.body == body
    dump = world.engine.dump()
    assert dump["gathered"] == dump["shown"] == 0


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ({"redirect": ir.Redirect(hostname="b.test")}, 302),
        ({"redirect": ir.Redirect(hostname="b.test"), "ext_auth": make_auth(body=400_000)}, 302),
        ({"status": 500}, 500),
        ({}, 200),
    ],
)
async def test_a_shown_body_is_let_go(world: World, rule: dict[str, Any], status: int) -> None:
    found = await filtered(world, passing(), make_host(make_rule(**rule)), body=400_000)
    client = await found.client()
    for _ in range(2):
        answer = await client.ask(make_request(method="POST", body=b"x" * 300_000))
        assert answer.status == status
    dump = world.engine.dump()
    assert dump["gathered"] == dump["shown"] == 0


async def test_fields_behind_a_body_that_came_before_its_rule_was_known(world: World) -> None:
    ops = ir.HeaderOps(set=(("x-set", "rule"),), remove=("x-removed",))
    found = await filtered(
        world,
        None,
        make_host(make_rule(request_headers=ops)),
        to_backend=("x-user",),
    )
    client = await found.client()
    head = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
    await client.send(head + b"x-user: me\r\nx-set: 1\r\nx-removed: 1\r\nx-sum: 1\r\n\r\n")
    (await found.service.call()).send(PASS)
    assert (await client.response()).status == 200
    assert found.seen[0].message.trailers == ((b"x-sum", b"1"),)


async def test_a_rules_bound_of_a_body_that_is_here_already(world: World) -> None:
    unit = ir.PolicyUnit(name="traffic/ns/t", traffic=ir.Traffic(body_size=5))
    found = await filtered(world, None, make_host(make_rule(traffic=(unit.name,))), units=(unit,))
    client = await found.client()
    head = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
    await client.send(head + b"6\r\nabcdef\r\n0\r\n\r\n")
    (await found.service.call()).send(PASS)
    assert (await client.response()).status == 413
    assert found.seen == []


async def test_tables_that_change_meanwhile(world: World) -> None:
    """It is routed once, by what is there when they have spoken; never on a listener that is gone."""
    found = await filtered(world, None)
    client, other = await found.client(), await found.client()
    await client.send(make_request("/a"))
    first = await found.service.call()
    await other.send(make_request("/b"))
    second = await found.service.call()
    parts = (make_cluster(found.service.port, name=AUTH), make_unit(make_auth(), FILTER))
    listener = with_filters(make_listener(), FILTER)
    world.apply(make_fleet(listener, make_host(make_rule(status=418)), *parts))
    first.send(PASS)
    assert (await client.response()).status == 418
    name = "ns/gw/other"
    elsewhere = make_listener(name)
    world.apply(make_fleet(elsewhere, make_host(make_rule(status=418), listener=name), *parts))
    second.send(PASS)
    assert (await other.response()).status == 404


async def test_a_client_that_leaves_is_shown_to_nobody_more(world: World) -> None:
    found = await filtered(world, None)
    client = await found.client()
    await client.send(make_request())
    await found.service.call()
    client.close()
    await world.until(lambda: world.engine.active == 0)
    await world.until(lambda: found.service.open == [])
    assert found.seen == []


async def test_listeners_of_one_port_have_their_own(world: World) -> None:
    service, backend = await world.backend(lambda call: DENY), await world.backend(passing())
    plain = make_listener("ns/gw/plain", hostname="plain.test")
    guarded = with_filters(make_listener(hostname="*.test"), FILTER)
    client = await world.client_of(
        make_fleet(
            plain,
            guarded,
            make_host(make_rule(), hostname="plain.test", listener="ns/gw/plain"),
            make_host(make_rule(), hostname="*.test"),
            make_cluster(backend.port),
            make_cluster(service.port, name=AUTH),
            make_unit(make_auth(), FILTER),
        )
    )
    for host, status in (("plain.test", 200), ("a.test", 403), ("nobody", 404)):
        assert (await client.ask(make_request(host=host))).status == status
    assert service.count == 1


async def test_streams_of_http2(world: World) -> None:
    found = await filtered(world, passing(status=401), make_host(("/there", make_rule())))
    get: Fields = [(b":method", b"GET"), *GRPC[1:3], (b":path", b"/nowhere")]
    asker = Asker(await found.client())
    assert (await asker.ask(get)).status == 401
    found.service.answer = passing()
    assert (await asker.ask(get)).status == 404
    there: Fields = [*get[:3], (b":path", b"/there")]
    assert (await asker.ask(there)).body == b"behind"


async def test_calls_of_grpc(world: World) -> None:
    found = await filtered(world, passing(status=401), make_host(("/other", make_rule())))
    asker = Asker(await found.client())
    answer = await asker.ask(GRPC)
    assert (answer.status, answer.value("grpc-status")) == (200, "16")
    found.service.answer = passing()
    answer = await asker.ask(GRPC)
    assert (answer.status, answer.value("grpc-status")) == (200, "12")  # no rule takes it


async def test_what_is_remembered_is_asked_once(world: World) -> None:
    found = await filtered(
        world, passing(("x-tenant", "one")), by_tenant(),
        to_backend=("x-tenant",), cache=ir.AuthCache(ttl=30_000),
    )  # fmt: skip
    client = await found.client()
    for _ in range(3):
        assert (await client.ask(make_request(headers=[("x-tenant", "two")]))).status == 200
    assert found.service.count == 1
    assert [call.message.values(b"x-tenant") for call in found.seen] == [[b"one"]] * 3


async def test_a_request_of_many_lines(world: World) -> None:
    """What it is given beside its own is bounded by its head and its answer, not by what a head may have."""
    found = await filtered(
        world, passing(*((f"x-{at}", "1") for at in range(60))),
        to_backend=tuple(f"x-{at}" for at in range(60)),
        http={"header_count": 128},
    )  # fmt: skip
    headers = [(f"y-{at}", "1") for at in range(100)]
    assert await found.status(headers=headers) == 200
    message = found.seen[0].message
    assert message.values(b"x-59") == [b"1"] and message.values(b"y-99") == [b"1"]


def test_without_any_it_is_the_listener_that_it_was() -> None:
    """Old tables and new ones have the same bytes where there are no filters."""
    plain = msgspec.msgpack.encode(make_listener())
    assert b"filters" not in plain
    assert msgspec.msgpack.decode(plain, type=ir.Listener).filters == ()


@apart(clock=True)
async def test_its_time_is_the_requests(world: World) -> None:
    """What a rule gives a request counts from when it was shown to the filters, before the rule was known."""
    timeouts = ir.Timeouts(request=5_000)
    found = await filtered(world, None, make_host(make_rule(timeouts=timeouts)), timeout=50_000)
    client = await found.client()
    await client.send(make_request())
    call = await found.service.call()
    shift(6)
    call.send(PASS)
    assert (await client.response()).status == 504
