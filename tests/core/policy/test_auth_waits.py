"""Requests that wait for a service: their clients leave, tables change, workers end."""

from __future__ import annotations

from base64 import b64decode, b64encode
from types import ModuleType
from typing import Any

import msgspec
import pytest

from core.apart import apart, shift
from core.backend import Call
from core.client import Client, Gone, make_request
from core.fleets import make_cluster, make_fleet, make_rule
from core.policy.authorized import (
    AUTH,
    DENY,
    PASS,
    UNIT,
    Guarded,
    fleet_of,
    guarded,
    make_auth,
    of_a_rule,
    passing,
)
from core.world import World
from edgefast import ir
from edgefast.ir.policy import PolicyUnit


async def test_a_client_that_leaves_ends_the_call(world: World) -> None:
    route = await guarded(world, None)
    client = await route.client()
    await client.send(make_request())
    await route.service.call()
    client.reset()
    await world.until(lambda: world.engine.active == 0)
    await world.until(lambda: route.service.open == [])
    assert world.counters["auth_errors"] == 0 and route.seen == []


async def test_one_that_leaves_while_it_waits_for_a_connection(world: World) -> None:
    route = await guarded(world, None, cluster={"max_connections": 1})
    one, two = await route.client(), await route.client()
    await one.send(make_request())
    call = await route.service.call()
    await two.send(make_request())
    await world.until(lambda: world.cluster(AUTH)["pending"] == 1)
    two.reset()
    await world.until(lambda: world.cluster(AUTH)["pending"] == 0)
    call.send(PASS)
    assert (await one.response()).status == 200


@of_a_rule
@pytest.mark.parametrize("unit", [False, True])
async def test_tables_that_change_meanwhile(world: World, unit: bool) -> None:
    route = await guarded(world, None, unit=unit)
    client = await route.client()
    await client.send(make_request("/a?b=c", headers=[("x-own", "1")]))
    call = await route.service.call()
    others = await world.backend(passing(body=b"new"))
    world.apply(
        fleet_of(make_auth(timeout=5), others.port, make_cluster(others.port, name=AUTH), unit=unit)
    )
    world.apply(make_fleet(make_rule(status=500)))
    call.send(PASS)
    answer = await client.response()
    assert answer.status in (200, 503)  # its rule's backend, which has no endpoints any more
    assert (await client.ask(make_request())).status == 500


async def test_fields_behind_a_body_when_the_policy_changes_meanwhile(world: World) -> None:
    """Of those who have judged it their names are theirs, whoever would judge the next one."""
    route = await guarded(world, None, unit=True, to_backend=("x-user",))
    client = await route.client()
    head = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
    await client.send(head + b"3\r\nabc\r\n")
    call = await route.service.call()
    other = make_auth(to_backend=("x-other",))
    service = make_cluster(route.service.port, name=AUTH)
    world.apply(fleet_of(other, route.backend.port, service, unit=True))
    call.reply(headers=(("x-user", "me"),))
    await client.send(b"0\r\nx-user: evil\r\nx-sum: 1\r\n\r\n")
    assert (await client.response()).status == 200
    message = route.seen[0].message
    assert message.values(b"x-user") == [b"me"]
    assert message.trailers == ((b"x-sum", b"1"),)


async def test_one_that_cannot_go_on_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours when it enters: its client does not wait for ever, and the others who wait for the same call go on."""

    class Broken:
        groups = 0

        def search(self, text: bytes, at: int) -> object:
            if text == b"/bad":
                raise RuntimeError("broken")
            return None

    class Re2(ModuleType):
        error = ValueError

        @staticmethod
        def compile(*_: object) -> Broken:
            return Broken()

    monkeypatch.setattr("edgefast.core.fastpath.re2", Re2("re2"))
    path = ir.PathRewrite(kind="regex", pattern="^/x", value="/y")
    route = await guarded(world, None, rule={"rewrite": ir.Rewrite(path=path)})
    client, other = await route.client(), await route.client()
    await client.send(make_request("/bad"))
    (await route.service.call()).send(PASS)
    with pytest.raises(Gone):
        await client.response()
    assert world.engine.active == 0
    assert len(world.take_faults()) == 1
    await other.send(make_request("/good"))
    (await route.service.call()).send(PASS)
    assert (await other.response()).body == b"behind"


async def wait_for_a_service(world: World, **settings: Any) -> tuple[Client, Guarded]:
    """A request that has waited for a service for longer than backends have by default, until that has failed."""
    http = {"route_timeout": 15_000}
    route = await guarded(world, None, timeout=30_000, http=http, **settings)
    client = await route.client()
    await client.send(make_request())
    await route.service.call()
    shift(20)
    await world.turns()
    assert world.engine.active == 1
    route.backend.answer = None
    shift(11)
    return client, route


@apart(clock=True)
async def test_a_service_has_its_own_time(world: World) -> None:
    client, _ = await wait_for_a_service(world, status_on_error=503)
    assert (await client.response()).status == 503


@apart(clock=True)
async def test_a_backend_has_its_time_once_it_is_asked(world: World) -> None:
    client, route = await wait_for_a_service(world, fail_open=True)
    await route.backend.call()
    shift(14)
    await world.turns()
    assert world.engine.active == 1
    shift(2)
    assert (await client.response()).status == 504


async def test_a_policy_that_changes_meanwhile(world: World) -> None:
    route = await guarded(world, None, unit=True)
    client, other = await route.client(), await route.client()
    await client.send(make_request())
    call = await route.service.call()
    fleet = fleet_of(
        make_auth(), route.backend.port, make_cluster(route.service.port, name=AUTH), unit=True
    )
    broken = (PolicyUnit(name=UNIT, status=500, reason="no"),)
    world.apply(msgspec.structs.replace(fleet, policies=broken))
    assert (await other.ask(make_request())).status == 500
    call.send(DENY)
    assert (await client.response()).status == 403
    world.apply(fleet)
    await client.send(make_request())
    (await route.service.call()).send(PASS)
    assert (await client.response()).status == 200


async def test_a_unit_that_is_not_here_is_closed(world: World) -> None:
    route = await guarded(world, passing(), unit=True)
    fleet = fleet_of(
        make_auth(), route.backend.port, make_cluster(route.service.port, name=AUTH), unit=True
    )
    assert (await route.ask()).status == 200
    world.apply(msgspec.structs.replace(fleet, policies=()))
    assert (await route.ask()).status == 500


async def test_requests_behind_it_wait(world: World) -> None:
    route = await guarded(world, None)
    client = await route.client()
    await client.send(make_request("/1") + make_request("/2") + make_request("/3"))
    for path, data in (("/1", PASS), ("/2", DENY), ("/3", PASS)):
        call = await route.service.call()
        assert call.path == path
        await world.turns()
        assert route.service.count == int(path[1:])
        call.send(data)
    assert [(await client.response()).status for _ in range(3)] == [200, 403, 200]
    assert [call.path for call in route.seen] == ["/1", "/3"]


async def test_tunnels_are_asked_for_first(world: World) -> None:
    route = await guarded(world, None)
    upgrade = make_request(headers=[("connection", "upgrade"), ("upgrade", "x")])
    client = await route.client()
    await client.send(upgrade + b"early")
    call = await route.service.call()
    assert call.message.value(b"upgrade") is None
    call.send(DENY)
    assert (await client.response()).status == 403
    route.backend.answer = None
    other = await route.client()
    await other.send(upgrade + b"early")
    (await route.service.call()).send(PASS)
    await world.until(
        lambda: (
            route.backend.links
            and b"early" in route.backend.links[0].received
            or route.backend.count
        )
    )
    behind = await route.backend.call()
    assert behind.message.value(b"upgrade") == b"x"
    behind.send(b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello")
    got = b""
    while b"hello" not in got:
        got += await other.receive()
    other.close()


async def test_a_worker_that_drains(world: World) -> None:
    route = await guarded(world, None)
    client = await route.client()
    await client.send(make_request())
    call = await route.service.call()
    world.engine.drain()
    call.send(PASS)
    answer = await client.response()
    assert (answer.body, answer.value("connection")) == (b"behind", "close")


async def test_a_worker_that_ends(world: World) -> None:
    route = await guarded(world, None)
    client = await route.client()
    await client.send(make_request())
    await route.service.call()
    world.engine.close(0)
    with pytest.raises(Gone):
        await client.response()
    assert world.engine.active == 0 and route.seen == []


async def test_exchanges_are_used_again(world: World) -> None:
    """Nothing of one that waited is found in the next one."""
    route = await guarded(world, passing(("x-user", "me")), to_backend=("x-user",))
    client = await route.client()
    for i in range(300):
        if i % 3 == 0:
            route.service.answer = passing(("x-user", str(i)))
        assert (await client.ask(make_request(f"/{i}"))).status == 200
        await world.turns(2)
    for i, call in enumerate(route.seen):
        assert call.path == f"/{i}" and call.message.values(b"x-user") == [b"%d" % (i - i % 3)]


@apart(clock=True)
async def test_a_call_of_grpc_is_bounded_by_its_client(world: World) -> None:
    route = await guarded(world, None, timeout=50_000)
    client = await route.client()
    headers = [("content-type", "application/grpc"), ("te", "trailers"), ("grpc-timeout", "2S")]
    await client.send(make_request("/s/m", method="POST", headers=headers, body=b""))
    await route.service.call()
    shift(3)
    answer = await client.response()
    assert (answer.status, answer.value("grpc-status")) == (200, "4")
    await world.until(lambda: route.service.open == [])


@pytest.mark.parametrize(
    ("status", "expected"), [(401, "16"), (403, "7"), (302, "7"), (404, "7"), (429, "7")]
)
async def test_a_denial_of_grpc(world: World, status: int, expected: str) -> None:
    said = (
        ("www-authenticate", "x"),
        ("grpc-status", "0"),
        ("content-type", "text/html"),
        ("x-why", "y"),
    )
    route = await guarded(world, passing(*said, body=b"<p>", status=status))
    headers = [("content-type", "application/grpc"), ("te", "trailers")]
    answer = await route.ask("/s/m", method="POST", headers=headers, body=b"")
    assert (answer.status, answer.value("grpc-status"), answer.body) == (200, expected, b"")
    assert answer.value("content-type") == "application/grpc"
    assert (answer.value("www-authenticate"), answer.value("x-why")) == ("x", "y")


async def test_a_failure_of_grpc(world: World) -> None:
    route = await guarded(world, lambda call: call.link.abort())
    headers = [("content-type", "application/grpc"), ("te", "trailers")]
    answer = await route.ask("/s/m", method="POST", headers=headers, body=b"")
    assert (answer.status, answer.value("grpc-status")) == (200, "7")


async def test_traces_reach_the_service(world: World) -> None:
    route = await guarded(world, passing())
    fleet = fleet_of(make_auth(), route.backend.port, make_cluster(route.service.port, name=AUTH))
    tracing = ir.Tracing(endpoint="http://127.0.0.1:4318")
    listener = msgspec.structs.replace(fleet.listeners[0], tracing=tracing)
    world.apply(msgspec.structs.replace(fleet, listeners=(listener,)))
    shown: list[Call] = []

    def keep(call: Call) -> bytes:
        shown.append(call)
        return PASS

    route.service.answer = keep
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert (await route.ask(headers=[("traceparent", parent)])).status == 200
    told = shown[0].message.value(b"traceparent")
    assert told is not None and told.split(b"-")[1] == parent.split("-")[1].encode()


@pytest.mark.parametrize("kind", ["application/grpc-web+proto", "application/grpc-web-text"])
async def test_a_browsers_call_of_grpc(world: World, kind: str) -> None:
    """The service is shown the message as the backend would get it; a denial is a frame."""
    http = {"grpc": ir.GrpcSettings(web=True)}
    route = await guarded(world, None, body=100, http=http)
    message = b"\0\0\0\0\5hello"
    body = b64encode(message) if "text" in kind else message
    client = await route.client()
    await client.send(
        make_request("/s/m", method="POST", headers=[("content-type", kind)], body=body)
    )
    call = await route.service.call()
    assert call.message.body == message
    call.reply(b"<p>", 401, (("x-why", "y"),))
    answer = await client.response()
    assert (answer.status, answer.value("x-why")) == (200, "y")
    frame = b64decode(answer.body) if "text" in kind else answer.body
    assert frame[0] == 0x80 and b"grpc-status:16" in frame.replace(b" ", b"")
    assert route.seen == []
