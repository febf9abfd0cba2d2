"""Memory: an idle client costs at most 4 kB, and no request leaves a reference cycle behind."""

from __future__ import annotations

import gc
import socket
from pathlib import Path

from core.apart import apart
from core.backend import make_response, say
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_listener, make_rule
from core.world import World
from edgefast import ir

IDLE = 4096  # bytes, the performance goal for one idle keep-alive connection


def resident() -> int:
    """Bytes of this process that are private and in memory."""
    fields = Path("/proc/self/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * 4096


async def connect(world: World, port: int, count: int) -> list[socket.socket]:
    """Clients that asked once and then are silent; they are plain sockets, so that only the engine's side has memory here."""
    socks = []
    request = make_request(headers=[(f"x-{i}", "value" * 4) for i in range(8)])
    for _ in range(count):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", port))
        await world.until(lambda n=len(socks): world.engine.open_connections > n)  # type: ignore[misc]
        sock.send(request)
        socks.append(sock)
    await world.until(lambda: world.engine.active == 0)
    for sock in socks:
        assert sock.recv(65536).endswith(b"x")
    return socks


@apart()
async def test_an_idle_connection(world: World) -> None:
    backend = await world.backend(say("x"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
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


async def cycles(world: World, fleet: ir.Fleet, *requests: bytes, rounds: int = 50) -> list[object]:
    """What only the garbage collector could free after these requests, on kept and on fresh connections."""
    client = await world.client(await world.serve(fleet))
    port = client.sock.getpeername()[1]

    async def go() -> None:
        nonlocal client
        for _ in range(rounds):
            for request in requests:
                answer = await client.ask(request)
                if answer.value("connection") == "close":
                    client.close()
                    client = await world.client(port)
        client.close()
        client = await world.client(port)
        await world.settle()
        await world.until(lambda: world.engine.open_connections == 1)

    await go()  # what is made once is made now
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await go()
        gc.collect()
        ours = ("edgefast", "uvloop", "httptools", "asyncio", "_asyncio")
        found = [one for one in gc.garbage if type(one).__module__.startswith(ours)]
        assert len(gc.garbage) < rounds or found, gc.garbage
        return found
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def test_a_thousand_requests_leave_no_cycle(world: World) -> None:
    backend = await world.backend(say("x"))
    fleet = make_fleet(make_cluster(backend.port))
    assert await cycles(world, fleet, make_request(), rounds=1000) == []


async def test_uploads_and_own_answers_leave_no_cycle(world: World) -> None:
    backend = await world.backend(say("x"))
    chunked = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    fleet = make_fleet(make_cluster(backend.port))
    requests = (
        make_request(method="POST", body=b"x" * 100_000),
        chunked,
        make_request("/%zz"),
        make_request("/a%2fb"),
        make_request(headers=[("connection", "close")]),
    )
    assert await cycles(world, fleet, *requests) == []


async def test_retries_and_mirrors_leave_no_cycle(world: World) -> None:
    answers = iter(range(10**6))
    backend = await world.backend(
        lambda call: make_response(status=503 if next(answers) % 2 else 200)
    )
    rule = make_rule(
        retry=ir.Retry(codes=(503,), attempts=1, backoff=1), mirrors=(ir.Mirror(cluster="shadow"),)
    )
    shadow = await world.backend(say("x"))
    fleet = make_fleet(
        rule, make_cluster(backend.port), make_cluster(shadow.port, name="shadow")
    )
    assert await cycles(world, fleet, make_request(), rounds=30) == []


async def test_failures_leave_no_cycle(world: World) -> None:
    fleet = make_fleet(
        make_listener(connect_timeout=1000), make_cluster(world.refusing_port(), world.refusing_port())
    )
    assert await cycles(world, fleet, make_request(), rounds=20) == []


async def test_broken_answers_leave_no_cycle(world: World) -> None:
    backend = await world.backend(lambda call: b"nonsense\r\n\r\n")
    assert await cycles(world, make_fleet(make_cluster(backend.port)), make_request()) == []
