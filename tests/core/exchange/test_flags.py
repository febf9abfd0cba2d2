"""The flags of a line name why a request ended as it did."""

from __future__ import annotations

import pytest

from core.backend import say
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir


async def flags_of(world: World, fleet: ir.Fleet, *requests: bytes) -> list[str]:
    client = await world.client_of(fleet)
    for request in requests:
        await client.ask(request)
    return [line["flags"] for line in world.lines()]


async def test_no_route(world: World) -> None:
    fleet = make_fleet(make_host(("/only", make_rule())), make_cluster())
    assert await flags_of(world, fleet, make_request("/")) == ["NR"]


async def test_no_endpoint(world: World) -> None:
    assert await flags_of(world, make_fleet(make_cluster()), make_request()) == ["NE"]


async def test_refused_by_configuration(world: World) -> None:
    rules = ("/rule", make_rule(status=500)), ("/ref", make_rule(ir.BackendRef(status=500)))
    requests = make_request("/rule"), make_request("/ref"), make_request("/%zz")
    fleet = make_fleet(make_host(*rules))
    assert await flags_of(world, fleet, *requests) == ["CFG", "CFG", "CFG"]
    assert [line["status"] for line in world.lines()] == [500, 500, 400]


async def test_redirects(world: World) -> None:
    rule = ir.Rule(route="ns/web", index=0, redirect=ir.Redirect(hostname="other.test"))
    requests = make_request(), make_request("/a%2fb")
    assert await flags_of(world, make_fleet(rule), *requests) == ["RD", "RD"]


async def test_cors(world: World) -> None:
    rule = make_rule(cors=ir.Cors(allow_origins=("*",)))
    headers = [("origin", "http://a.test"), ("access-control-request-method", "PUT")]
    preflight = make_request(method="OPTIONS", headers=headers)
    assert await flags_of(world, make_fleet(rule, make_cluster()), preflight) == ["CORS"]


async def test_too_large(world: World) -> None:
    fleet = make_fleet(make_listener(body_size=3), make_cluster(1))
    assert await flags_of(world, fleet, make_request(method="POST", body=b"1234")) == ["TL"]
    assert world.counters["body_too_large"] == 1


async def test_too_large_in_chunks(world: World) -> None:
    backend = await world.backend()
    fleet = make_fleet(make_listener(body_size=3), make_cluster(backend.port))
    head = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
    assert await flags_of(world, fleet, head + b"2\r\n12\r\n2\r\n34\r\n") == ["TL"]
    assert world.lines()[0]["status"] == 413


async def test_broken_answers(world: World) -> None:
    backend = await world.backend(lambda call: b"SSH-2.0\r\n\r\n")
    assert await flags_of(world, make_fleet(make_cluster(backend.port)), make_request()) == ["UPE"]
    assert world.counters["upstream_protocol_errors"] == 1


async def test_a_backend_that_hangs_up(world: World) -> None:
    backend = await world.backend(lambda call: call.link.close())
    assert await flags_of(world, make_fleet(make_cluster(backend.port)), make_request()) == ["UR"]


@pytest.mark.parametrize("begun", [False, True], ids=["before", "behind"])
async def test_a_client_that_hangs_up(world: World, begun: bool) -> None:
    """Before the answer or in the middle of it: its backend hears of it at once."""
    backend, client = await world.pair()
    await client.send(make_request())
    call = await backend.call()
    if begun:
        call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123")
        await client.receive()
    client.close()
    await world.until(lambda: world.engine.active == 0 and not backend.open)
    (line,) = world.lines()
    assert (line["flags"], line["status"]) == ("DC", 200 if begun else 0)


async def test_a_second_try(world: World) -> None:
    backend = await world.backend(say("x"))
    fleet = make_fleet(make_cluster(world.refusing_port(), backend.port))
    flags = await flags_of(world, fleet, *[make_request()] * 20)
    assert set(flags) == {"", "RT"}
    assert {line["tries"] for line in world.lines() if line["flags"] == "RT"} == {2}


async def test_nothing_works(world: World) -> None:
    fleet = make_fleet(make_cluster(world.refusing_port(), world.refusing_port()))
    assert await flags_of(world, fleet, make_request()) == ["UF,RT"]
