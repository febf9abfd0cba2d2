"""HTTP/2 clients: who is refused by a policy, answers of a rule's own, cookies in crumbs, a backend that takes nothing."""

from __future__ import annotations

from h2.events import DataReceived, ResponseReceived, StreamEnded

from core.fleets import make_cluster, make_fleet, make_host, make_listener
from core.h2.backend import H2Backend
from core.h2.test_both import begin, events
from core.policy.policies import NAME, access, traffic
from core.world import World
from edgefast import ir

GET = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "test")]
HTTP2 = ir.Http2Settings(enabled=True)


async def test_answers_of_the_proxy(world: World) -> None:
    body = b"0123456789abcdef" * 4096
    direct = ir.Rule(
        route="ns/web",
        index=0,
        policies=(NAME,),
        direct=ir.DirectResponse(status=203, content_type="image/png", body=body),
    )
    unit = access(ir.AccessRule(allow=True, headers=(("x-a", ("1",)),)))
    port = await world.serve(make_fleet(make_listener(http2=HTTP2), make_host(direct), unit))
    client, frames = await begin(world, port)
    frames.send_headers(1, GET, end_stream=True)
    frames.send_headers(3, [*GET, ("x-a", "1"), ("x-a", "1")], end_stream=True)
    frames.send_headers(5, [*GET, ("x-a", "1")], end_stream=True)
    frames.increment_flow_control_window(1 << 20)
    frames.increment_flow_control_window(1 << 20, 5)
    await client.send(frames.data_to_send())
    found = await events(client, frames, StreamEnded, 3)
    heads = {one.stream_id: dict(one.headers) for one in found if isinstance(one, ResponseReceived)}
    assert {number: head[":status"] for number, head in heads.items()} == {
        1: "403",
        3: "403",
        5: "203",
    }
    assert heads[5]["content-type"] == "image/png"
    assert b"".join(one.data for one in found if isinstance(one, DataReceived)) == body


async def test_crumbs_of_a_cookie_are_one(world: World) -> None:
    match = ir.Match(kind="prefix", path="", headers=(ir.ValueMatch("cookie:sid", "one"),))
    host = ir.VirtualHost(
        listener="ns/gw/http",
        hostname="*",
        rules=(ir.Rule(route="ns/web", index=0, direct=ir.DirectResponse(status=204)),),
        entries=(ir.Entry(match=match, rule=0),),
    )
    client, frames = await begin(
        world, await world.serve(make_fleet(make_listener(http2=HTTP2), host))
    )
    crumbs = [("cookie", "a=b"), ("cookie", "sid=one"), ("cookie", "c=d")]
    frames.send_headers(1, [*GET, *crumbs], end_stream=True)
    frames.send_headers(3, [*GET, ("cookie", "sid=two")], end_stream=True)
    await client.send(frames.data_to_send())
    found = await events(client, frames, StreamEnded, 2)
    heads = {one.stream_id: dict(one.headers) for one in found if isinstance(one, ResponseReceived)}
    assert {number: head[":status"] for number, head in heads.items()} == {1: "204", 3: "404"}


async def test_a_backend_that_opens_no_window_is_504(world: World) -> None:
    backend = H2Backend(lambda ask: None)
    world.keep(await backend.start())
    rule = ir.Rule(
        route="ns/web",
        index=0,
        backends=(ir.BackendRef(cluster="service/ns/web/80"),),
        traffic=("traffic/ns/t",),
    )
    fleet = make_fleet(
        make_listener(buffer_bytes=16384),
        make_host(rule),
        make_cluster(backend.port, protocol="h2"),
        traffic(send_timeout=80),
    )
    client = await world.client_of(fleet)
    size = 4 << 20
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: %d\r\n\r\n" % size)
    await world.until(lambda: backend.links)
    backend.links[0].takes = False

    async def pour() -> None:
        try:
            for _ in range(size >> 16):
                await client.send(b"x" * 65536)
        except OSError:
            pass

    task = world.loop.create_task(pour())
    assert (await client.response()).status == 504
    task.cancel()
    assert world.lines()[0]["flags"] == "UT"
