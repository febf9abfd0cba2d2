"""Requests to backends that speak HTTP/2: heads, bodies and trailers both ways, many on one connection."""

from __future__ import annotations

import asyncio
import functools

from core.client import Gone, make_request
from core.fleets import CLUSTER, ROW, make_cluster, make_fleet, make_listener, make_rule
from core.h2.backend import Ask, H2Backend, say
from core.world import World
from edgefast import ir


async def start(world: World, backend: H2Backend, **http: object) -> int:
    """Serve a backend of HTTP/2 and nothing else; the port for clients."""
    world.keep(await backend.start())
    cluster = make_cluster(backend.port, protocol="h2")
    return await world.serve(make_fleet(make_listener(**http), cluster))


async def test_a_request(world: World) -> None:
    backend = H2Backend(lambda ask: ask.reply(b"hello", 200, ("x-a", "b")))
    port = await start(world, backend)
    client = await world.client(port)
    answer = await client.ask(make_request("/a?b=c", host="h.test", headers=[("X-Mixed", "Case")]))
    assert (answer.status, answer.body, answer.value("x-a")) == (200, b"hello", "b")
    assert answer.value("content-length") == "5"
    (ask,) = backend.asks
    assert ask.fields[:4] == [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/a?b=c"),
        (":authority", "h.test"),
    ]
    assert ask.value("x-mixed") == "Case"
    assert ask.value("host") is ask.value("connection") is ask.value("te") is None
    (line,) = world.lines()
    assert line["status"] == 200
    assert world.counters["upstream_http2_connections"] == 1


async def test_many_requests_share_a_connection(world: World) -> None:
    backend = H2Backend()
    port = await start(world, backend)
    clients = [await world.client(port) for _ in range(50)]
    for number, client in enumerate(clients):
        await client.send(make_request(f"/{number}"))
    asks = [await backend.ask() for _ in clients]
    for ask in reversed(asks):
        ask.reply((ask.value(":path") or "").encode())
    for number, client in enumerate(clients):
        assert (await client.response()).body == b"/%d" % number
    assert len(backend.links) == 1
    assert world.cluster(CLUSTER)["connections"] == 1


async def test_another_connection_beside_a_full_one(world: World) -> None:
    """One with 80 % of its streams has company; nobody waits for it."""
    backend = H2Backend(streams=10)
    port = await start(world, backend)
    clients = [await world.client(port) for _ in range(25)]
    for client in clients:
        await client.send(make_request())
    asks = [await backend.ask() for _ in clients]
    assert len(backend.links) >= 3
    assert max(len(link.asks) for link in backend.links) <= 10
    for ask in asks:
        ask.reply(b"x")
    for client in clients:
        assert (await client.response()).status == 200


async def test_bodies(world: World) -> None:
    """Of any size, both ways, as the windows of either side allow."""
    backend = H2Backend(lambda ask: ask.reply(ask.body))
    port = await start(world, backend)
    client = await world.client(port)
    for size in (1, 4096, 65535, 65536, 3_000_000):
        body = bytes(range(256)) * (size // 256 + 1)
        answer = await client.ask(make_request(method="POST", body=body[:size]))
        assert answer.status == 200
        assert answer.body == body[:size]
    assert len(backend.links) == 1
    assert backend.asks[-1].value("content-length") == "3000000"


async def test_a_body_without_a_length(world: World) -> None:
    backend = H2Backend(lambda ask: ask.reply(ask.body))
    port = await start(world, backend)
    client = await world.client(port)
    head = b"POST / HTTP/1.1\r\nhost: test\r\nte: trailers\r\ntransfer-encoding: chunked\r\n\r\n"
    answer = await client.ask(head + b"3\r\nabc\r\n0\r\nx-sum: 9\r\n\r\n")
    assert answer.body == b"abc"
    (ask,) = backend.asks
    assert ask.trailers == [("x-sum", "9")]
    assert ask.value("te") == "trailers"
    assert ask.value("transfer-encoding") is ask.value("content-length") is None


async def test_an_answer_without_a_length_and_its_trailers(world: World) -> None:
    def answer(ask: Ask) -> None:
        ask.head(200)
        ask.data(b"abc")
        ask.trail(("grpc-status", "0"))

    backend = H2Backend(answer)
    port = await start(world, backend)
    client = await world.client(port)
    await client.send(make_request(headers=[("te", "trailers"), ("connection", "te")]))
    raw = b""
    while not raw.endswith(b"\r\n\r\n") or b"grpc-status" not in raw:
        raw += await client.receive()
    assert raw.endswith(b"\r\n\r\n3\r\nabc\r\n0\r\ngrpc-status: 0\r\n\r\n")
    got = await client.get()  # who does not say that it takes trailers gets none
    assert (got.body, got.value("transfer-encoding")) == (b"abc", "chunked")


async def test_answers_without_a_body(world: World) -> None:
    """The connection to the client goes on behind each of them."""

    def answer(ask: Ask) -> None:
        match ask.value(":path"):
            case "/end":
                ask.head(200, end=True)
            case "/zero":
                ask.head(200, ("content-length", "0"), end=True)
            case "/late":
                ask.head(200)
                ask.data(b"", end=True)
            case "/204":
                ask.head(204, end=True)
            case "/304":
                ask.head(304, ("content-length", "7"), end=True)

    backend = H2Backend(answer)
    port = await start(world, backend)
    client = await world.client(port)
    for path, status in (
        ("/end", 200),
        ("/zero", 200),
        ("/late", 200),
        ("/204", 204),
        ("/304", 304),
    ):
        got = await client.ask(make_request(path))
        assert (got.status, got.body) == (status, b""), path
    assert len(backend.links) == 1


async def test_answers_to_head(world: World) -> None:
    backend = H2Backend(lambda ask: ask.head(200, ("content-length", "5"), end=True))
    port = await start(world, backend)
    client = await world.client(port)
    for _ in range(2):
        got = await client.ask(make_request(method="HEAD"), head=True)
        assert (got.status, got.value("content-length")) == (200, "5")


async def test_interim_answers_go_on(world: World) -> None:
    def answer(ask: Ask) -> None:
        ask.head(103, ("link", "</a>; rel=preload"))
        ask.reply(b"x")

    backend = H2Backend(answer)
    port = await start(world, backend)
    client = await world.client(port)
    first = await client.ask(make_request())
    assert (first.status, first.value("link")) == (103, "</a>; rel=preload")
    assert (await client.response()).body == b"x"


async def test_an_early_answer_ends_the_request(world: World) -> None:
    backend = H2Backend(begun=lambda ask: ask.reply(b"no", 413))
    port = await start(world, backend)
    client = await world.client(port)
    await client.send(make_request(method="POST", headers=[("content-length", "1000000")]) + b"x")
    got = await client.response()
    assert (got.status, got.body) == (413, b"no")
    await world.until(lambda: backend.asks[0].reset is not None)
    assert world.cluster(CLUSTER)["connections"] == 1


async def test_a_client_that_leaves_cancels_its_stream_alone(world: World) -> None:
    backend = H2Backend()
    port = await start(world, backend)
    leaves, stays = await world.client(port), await world.client(port)
    await leaves.send(make_request("/leaves"))
    await stays.send(make_request("/stays"))
    asks = {ask.value(":path"): ask for ask in [await backend.ask(), await backend.ask()]}
    leaves.reset()
    await world.until(lambda: asks["/leaves"].reset is not None)
    assert asks["/leaves"].reset == 8  # CANCEL
    asks["/stays"].reply(b"x")
    assert (await stays.response()).body == b"x"
    assert len(backend.open) == 1


async def test_a_slow_backend_keeps_its_client_waiting(world: World) -> None:
    """No more is taken from the client than the backend's window and a buffer."""
    backend = H2Backend(lambda ask: ask.reply(b"%d" % len(ask.body)))
    port = await start(world, backend, buffer_bytes=16384)
    client = await world.client(port)
    await client.send(make_request(method="POST", headers=[("content-length", "8000000")]))
    ask = await backend.ask()
    ask.link.takes = False
    task = asyncio.ensure_future(client.send(b"x" * 8_000_000))
    await world.until(lambda: len(ask.body) == 65535)
    await world.turns(50)
    assert len(ask.body) == 65535
    ask.link.take()
    await task
    assert (await client.response()).body == b"8000000"


async def test_a_slow_client_keeps_its_backend_waiting_and_nobody_else(world: World) -> None:
    backend = H2Backend(
        lambda ask: ask.reply(b"x" * 20_000_000 if ask.value(":path") == "/big" else b"y")
    )
    port = await start(world, backend)
    slow, other = await world.client(port), await world.client(port)
    await slow.send(make_request("/big"))
    await backend.ask()
    for _ in range(20):
        assert (await other.get()).body == b"y"
    link = backend.links[0]
    assert sum(len(data) for data, _ in link._waiting.values()) > 10_000_000
    assert len((await slow.response()).body) == 20_000_000


async def test_a_backend_that_does_not_speak_it(world: World) -> None:
    backend = await world.backend(None)
    client = await world.client_of(
        make_fleet(make_listener(connect_timeout=20000), make_cluster(backend.port, protocol="h2"))
    )
    text = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"
    backend.on_link = lambda link: link.transport.write(text)
    answer = await client.get()
    assert (answer.status, backend.count) == (503, 0)
    world.errors.clear()  # the backend's: what it read was no HTTP/1.1
    assert world.counters["upstream_connect_failures"] >= 1


async def test_refused_streams_go_again_with_any_method(world: World) -> None:
    seen: list[bytes] = []

    def answer(ask: Ask) -> None:
        seen.append(ask.body)
        if len(seen) < 3:
            ask.refuse(7)
        else:
            ask.reply(b"done")

    backend = H2Backend(answer)
    port = await start(world, backend)
    got = await (await world.client(port)).ask(make_request(method="POST", body=b"abc"))
    assert (got.status, got.body) == (200, b"done")
    assert seen == [b"abc"] * 3
    assert world.counters["upstream_http2_unprocessed"] == 2


async def test_goaway_loses_nothing(world: World) -> None:
    """Streams above its last number go to another connection, those below to their end."""
    backend = H2Backend()
    port = await start(world, backend)
    first, second = await world.client(port), await world.client(port)
    await first.send(make_request("/1", method="POST", body=b"1"))
    one = await backend.ask()
    await second.send(make_request("/2", method="POST", body=b"2"))
    two = await backend.ask()
    one.link.goes_away(last=one.stream)
    again = await backend.ask()
    assert again.link is not two.link
    assert again.value(":path") == "/2"
    await world.until(lambda: again.ended)
    again.reply(b"two")
    assert (await second.response()).body == b"two"
    one.reply(b"one")
    assert (await first.response()).body == b"one"
    await world.until(lambda: one.link.lost)


async def test_requests_spread_over_an_endpoint_that_comes(world: World) -> None:
    """A connection with room does not keep them: the endpoint is chosen first."""
    old, new = H2Backend(), H2Backend()
    port = await start(world, old)
    world.keep(await new.start())
    clients = [await world.client(port) for _ in range(60)]
    for client in clients[:30]:
        await client.send(make_request())
    await world.until(lambda: len(old.asks) == 30)
    world.apply(make_fleet(make_cluster(old.port, new.port, protocol="h2")))

    def asked(count: int) -> bool:
        return len(old.asks + new.asks) == count

    for number, client in enumerate(clients[30:]):
        await client.send(make_request())
        await world.until(functools.partial(asked, 31 + number))
    assert len(new.asks) >= 25
    for ask in old.asks + new.asks:
        ask.reply(b"x")
    for client in clients:
        assert (await client.response()).status == 200


async def test_a_reset_is_an_answer_that_did_not_come(world: World) -> None:
    backend = H2Backend(lambda ask: ask.refuse(2))
    port = await start(world, backend)
    client = await world.client(port)
    assert (await client.ask(make_request(method="POST", body=b"x"))).status == 502
    assert len(backend.asks) == 1
    assert len(backend.open) == 1


async def test_a_reset_in_the_middle_breaks_the_answer(world: World) -> None:
    def answer(ask: Ask) -> None:
        ask.head(200, ("content-length", "10"))
        ask.data(b"half")
        ask.refuse(2)

    backend = H2Backend(answer)
    port = await start(world, backend)
    client = await world.client(port)
    try:
        await client.get()
        raise AssertionError("it looked complete")
    except Gone as gone:
        assert gone.received.endswith(b"half") or gone.reset


async def test_retries_by_code(world: World) -> None:
    codes = iter([503, 503, 200])
    backend = H2Backend(lambda ask: ask.reply(b"x", next(codes)))
    world.keep(await backend.start())
    rule = make_rule(retry=ir.Retry(codes=(503,), attempts=2, backoff=1))
    port = await world.serve(make_fleet(rule, make_cluster(backend.port, protocol="h2")))
    assert (await (await world.client(port)).get()).status == 200
    assert world.counters.row(ROW)["retries"] == 2


async def test_a_lost_connection(world: World) -> None:
    """Its requests are lost, but for those that may be asked again."""
    backend = H2Backend(lambda ask: ask.reply(b"x") if ask.value(":path") != "/slow" else None)
    port = await start(world, backend)
    post, get = await world.client(port), await world.client(port)
    assert (await get.get()).status == 200
    await post.send(make_request("/slow", method="POST", body=b"x"))
    await get.send(make_request("/slow"))
    asks = [await backend.ask() for _ in range(3)][1:]
    await world.until(lambda: all(ask.ended for ask in asks))
    backend.links[0].transport.abort()
    assert (await post.response()).status == 502
    again = await backend.ask()
    assert again.value(":method") == "GET"
    again.reply(b"again")
    assert (await get.response()).body == b"again"


async def test_the_endpoint_goes(world: World) -> None:
    """Requests on it end; new ones go elsewhere."""
    old, new = H2Backend(), H2Backend(say(b"new"))
    port = await start(world, old)
    world.keep(await new.start())
    first, second = await world.client(port), await world.client(port)
    await first.send(make_request())
    ask = await old.ask()
    world.apply(make_fleet(make_cluster(new.port, protocol="h2")))
    assert (await second.get()).body == b"new"
    ask.reply(b"old")
    assert (await first.response()).body == b"old"
    await world.until(lambda: old.links[0].lost)
    assert (await first.get()).body == b"new"
