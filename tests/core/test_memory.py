"""Memory: an idle client costs at most 1.5 KiB, and no request leaves a reference cycle behind."""

from __future__ import annotations

import ctypes
import gc
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hpack import Encoder

from core.apart import apart, shift
from core.backend import Call, make_response, say
from core.client import Client, Response, make_request
from core.fleets import CLUSTER, ROW, make_cluster, make_fleet, make_listener, make_rule
from core.h2.sessionscript import PREFACE
from core.h2.test_hostile import frame
from core.upstream.slow import HEAD, LATE, post
from core.world import World
from edgefast import ir

IDLE = 1536  # bytes, the performance goal for one idle keep-alive connection


def resident() -> int:
    """Bytes of this process that are private and in memory."""
    fields = Path("/proc/self/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * 4096


def served(world: World) -> int:
    return world.counters.rows().get(ROW, {}).get("requests_2xx", 0)


async def connect(world: World, port: int, count: int) -> list[socket.socket]:
    """Clients that asked once and then are silent; they are plain sockets, so that only the engine's side has memory here."""
    socks: list[socket.socket] = []
    before = served(world)
    request = make_request(headers=[(f"x-{i}", "value" * 4) for i in range(8)])
    while len(socks) < count:
        fresh = [socket.socket() for _ in range(min(100, count - len(socks)))]
        for sock in fresh:
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
        socks += fresh
        wanted = len(socks)
        await world.until(lambda n=wanted: world.engine.open_connections == n)  # type: ignore[misc]
        for sock in fresh:
            sock.send(request)
    await world.until(lambda: served(world) == before + count)
    for sock in socks:
        assert sock.recv(65536).endswith(b"x")
    return socks


@apart()
async def test_an_idle_connection(world: World) -> None:
    backend = await world.backend(say("x"))
    listener = make_listener(log=ir.AccessLog(off=True))  # the test would keep its lines
    port = await world.serve(make_fleet(listener, make_cluster(backend.port)))
    warm = await connect(world, port, 300)
    for sock in warm:
        sock.close()
    await world.until(lambda: world.engine.open_connections == 0)
    gc.collect()
    before = resident()
    socks = await connect(world, port, 2000)
    gc.collect()
    each = (resident() - before) / len(socks)
    for sock in socks:
        sock.close()
    assert each <= IDLE, f"{each:.0f} bytes"
    await world.until(lambda: world.engine.open_connections == 0)


@apart(clock=True)
async def test_memory_of_http2_connections_goes_back_to_the_system(world: World) -> None:
    """2 s after most have ended: the C library alone keeps what lies between blocks in use."""
    count = 1100
    head = [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "test")]
    block = Encoder().encode([*head, *((f"x-{i}", f"{i}" * 300) for i in range(10))])
    hello = PREFACE + frame(4, 0, 0, b"") + frame(1, 4, 1, block)
    listener = make_listener(http2=ir.Http2Settings(enabled=True), log=ir.AccessLog(off=True))
    backend = await world.backend()
    port = await world.serve(make_fleet(listener, make_cluster(backend.port)))
    before = resident()
    socks: list[socket.socket] = []
    while len(socks) < count:
        fresh = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        for sock in fresh:
            sock.send(hello)
        socks += fresh
        wanted = len(socks)
        await world.until(lambda n=wanted: world.engine.active == n)  # type: ignore[misc]
    peak = resident() - before
    for sock in socks:
        sock.close()
    await world.until(lambda: world.engine.open_connections == 0)
    assert resident() - before > peak * 2 // 3
    shift(2.1)
    await world.until(lambda: resident() - before < peak // 3)


async def collect(work: Callable[[], Awaitable[None]], rounds: int) -> list[object]:
    """What only the garbage collector could free after so many rounds of this work."""
    for _ in range(3):  # what is made once is made now
        await work()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(rounds):
            await work()
        gc.collect()
        ours = ("edgefast", "uvloop", "httptools", "asyncio", "_asyncio")
        found = [one for one in gc.garbage if type(one).__module__.startswith(ours)]
        assert len(gc.garbage) < rounds or found, gc.garbage
        return found
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def cycles(world: World, fleet: ir.Fleet, request: bytes, rounds: int = 50) -> list[object]:
    """The same of a request, on one connection as long as it lasts and on a fresh one each time."""
    port = await world.serve(fleet)
    kept = await world.client(port)

    async def ask() -> None:
        nonlocal kept
        fresh = await Client.connect(port)
        await final(fresh, request)
        fresh.close()
        if (await final(kept, request)).value("connection") == "close":
            kept.close()
            kept = await world.client(port)
        await world.until(lambda: world.engine.open_connections == 1)

    return await collect(ask, rounds)


async def final(client: Client, request: bytes) -> Response:
    """The response behind the interim ones."""
    answer = await client.ask(request)
    while answer.status < 200:
        answer = await client.response()
    return answer


async def test_a_thousand_requests_leave_no_cycle(world: World) -> None:
    backend = await world.backend(say("x"))
    fleet = make_fleet(make_cluster(backend.port))
    assert await cycles(world, fleet, make_request(), rounds=500) == []


CHUNKED = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"

REQUESTS = {
    "upload": make_request(method="POST", body=b"x" * 100_000),
    "chunks": CHUNKED + b"\r\n",
    "trailers": CHUNKED + b"x-y: z\r\n\r\n",
    "bad path": make_request("/%zz"),
    "redirect": make_request("/a%2fb"),
    "close": make_request(headers=[("connection", "close")]),
    "bad head": b"GET /\r\n\r\n",
    "bad chunk": CHUNKED[:-5] + b"zz\r\n",
    "expect": make_request(method="POST", headers=[("expect", "100-continue")], body=b"x"),
}


@pytest.mark.parametrize("kind", REQUESTS)
async def test_requests_leave_no_cycle(world: World, kind: str) -> None:
    backend = await world.backend(say("x"))
    fleet = make_fleet(make_cluster(backend.port))
    assert await cycles(world, fleet, REQUESTS[kind]) == []


ANSWERS = {
    "close": make_response(b"x", headers=(("connection", "close"),)),
    "until the end": b"HTTP/1.1 200 OK\r\n\r\nx",
    "chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\na: b\r\n\r\n",
    "nothing": b"HTTP/1.1 204 No Content\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
    "nonsense": b"nonsense\r\n\r\n",
    "a byte too many": make_response(b"x") + b"y",
}


@pytest.mark.parametrize("kind", ANSWERS)
async def test_answers_leave_no_cycle(world: World, kind: str) -> None:
    def answer(call: Call) -> bytes | None:
        call.send(ANSWERS[kind])
        if kind == "until the end":
            call.link.close()
        return b""

    backend = await world.backend(answer)
    assert await cycles(world, make_fleet(make_cluster(backend.port)), make_request()) == []


async def test_answers_to_head_leave_no_cycle(world: World) -> None:
    _, client = await world.pair(lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")

    async def ask() -> None:
        assert (await client.ask(make_request(method="HEAD"), head=True)).status == 200

    assert await collect(ask, 50) == []


async def test_retries_and_mirrors_leave_no_cycle(world: World) -> None:
    answers = iter(range(10**6))
    backend = await world.backend(
        lambda call: make_response(status=503 if next(answers) % 2 else 200)
    )
    rule = make_rule(
        retry=ir.Retry(codes=(503,), attempts=1, backoff=1), mirrors=(ir.Mirror(cluster="shadow"),)
    )
    shadow = await world.backend(say("x"))
    fleet = make_fleet(rule, make_cluster(backend.port), make_cluster(shadow.port, name="shadow"))
    assert await cycles(world, fleet, make_request(), rounds=30) == []


async def test_failures_leave_no_cycle(world: World) -> None:
    fleet = make_fleet(
        make_listener(connect_timeout=1000),
        make_cluster(world.refusing_port(), world.refusing_port()),
    )
    assert await cycles(world, fleet, make_request(), rounds=20) == []


async def test_broken_answers_leave_no_cycle(world: World) -> None:
    backend = await world.backend(lambda call: b"nonsense\r\n\r\n")
    assert await cycles(world, make_fleet(make_cluster(backend.port)), make_request()) == []


class _Heap(ctypes.Structure):
    """struct mallinfo2 of malloc.h."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def allocated() -> int:
    """Bytes that this process has from malloc."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _Heap
    heap = mallinfo()
    return int(heap.uordblks + heap.hblkhd)


@apart()
async def test_a_request_that_has_ended_holds_no_body(world: World) -> None:
    """Nothing is left of whoever left while waiting for a connection, nor of what it sent."""
    backend = await world.backend()
    listener = make_listener(body_share=25, body_start_timeout=LATE, body_buffer=9_000_000)
    cluster = make_cluster(backend.port, max_connections=2)
    port = await world.serve(make_fleet(listener, cluster))
    slow = await post(world, port, HEAD % 100_000 + b"x" * 20_000)
    busy = await world.client(port)
    await busy.send(make_request())
    call = await backend.call()
    whole = HEAD % 8_000_000 + b"x" * 8_000_000
    before = allocated()
    gone = [await post(world, port, whole) for _ in range(3)]
    assert world.cluster(CLUSTER)["pending"] == 3
    assert allocated() - before > 24_000_000
    assert world.engine.dump()["gathered"] > 23_000_000
    for client in gone:
        client.reset()
    await world.until(lambda: world.engine.active == 2)
    assert world.cluster(CLUSTER)["pending"] == 0
    assert world.engine.dump()["gathered"] == 0
    assert allocated() - before < 8_000_000
    call.reply()
    assert (await busy.response()).status == 200
    slow.close()


@apart()
async def test_a_copy_that_has_ended_holds_no_body(world: World) -> None:
    """The same of copies for mirrors, which nobody waits for."""
    main, shadow = await world.backend(say("x")), await world.backend()
    rule = make_rule("main", mirrors=(ir.Mirror(cluster="shadow"),))
    copies = make_cluster(shadow.port, name="shadow", max_connections=64)
    port = await world.serve(make_fleet(rule, make_cluster(main.port, name="main"), copies))
    busy = await world.client(port)
    for _ in range(64):
        assert (await busy.get()).status == 200
    await shadow.calls(64)
    data = HEAD % 100_000 + b"x" * 60_000
    warm = await post(world, port, data)
    before = allocated()
    left = [await post(world, port, data) for _ in range(40)]
    assert world.cluster("shadow")["pending"] == 41
    for client in left:
        client.reset()
    await world.until(lambda: world.engine.active == 1)
    await world.until(lambda: sum(link.lost for link in main.links) == len(left))
    main.links.clear()  # they have what they read
    gc.collect()
    assert world.cluster("shadow")["pending"] == 1
    assert allocated() - before < 1_000_000
    for link in shadow.links:
        link.abort()
    warm.close()
