"""Counters: each name of edgefast/core/cells.py moves when, and only when, its event happens."""

from __future__ import annotations

import pytest

from core.backend import make_response, say
from core.client import make_request
from core.fleets import ROW, make_cluster, make_fleet, make_host, make_rule
from core.world import World
from edgefast.core.cells import BUCKET_BOUNDS_MS

TURNS = {
    "turns",
    "turn_events",
    "turns_us",
    "turn_longest_us",
}  # of the loop: core/net/test_turns.py


async def test_one_plain_request_moves_exactly_these(world: World) -> None:
    answer = make_response(b"hello", headers=(("date", "x"), ("server", "y")))
    backend, client = await world.pair(lambda call: answer)
    request = make_request(method="POST", body=b"0123456789")
    await client.ask(request)
    await world.settle()
    moved = {
        name: count for name, count in world.counters.all().items() if count and name not in TURNS
    }
    assert moved == {
        "connections_total": 1,
        "connections_active": 1,
        "downstream_bytes_received": len(request),
        "downstream_bytes_sent": client.received,
        "upstream_bytes_received": len(answer),
        "upstream_bytes_sent": backend.links[0].bytes_in,
        "upstream_connects": 1,
        "upstream_connections_active": 1,
        "access_log_lines": 1,
        "applies": 1,
    }
    row = {name: count for name, count in world.counters.row(ROW).items() if count}
    assert row.pop("duration_us") >= row.pop("upstream_us") > 0
    (bucket,) = [name for name in row if name.startswith("duration_bucket_")]
    assert row == {"requests_2xx": 1, "bytes_received": 10, "bytes_sent": 5, bucket: 1}


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" + make_response(b"late"),
        make_response(b"x" * 300_000),
        make_response(b""),
    ],
    ids=["chunked", "interim", "large", "empty"],
)
async def test_bytes_are_counted_as_they_go_over_the_wire(world: World, answer: bytes) -> None:
    _, client = await world.pair(lambda call: answer)
    await client.send(make_request())
    while (await client.response()).status < 200:
        pass
    assert world.counters["downstream_bytes_sent"] == client.received
    assert world.counters["upstream_bytes_received"] == len(answer)


async def test_the_proxys_own_answers_are_counted(world: World) -> None:
    _, client = await world.pair(say("x"))
    head = b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\n"
    assert (await client.ask(head)).status == 100
    await client.ask(b"1")
    await client.ask(make_request("/%zz"))
    await client.ending()
    assert world.counters["downstream_bytes_sent"] == client.received


@pytest.mark.parametrize(
    ("status", "cell"),
    [(200, 2), (204, 2), (302, 3), (404, 4), (429, 4), (500, 5), (503, 5), (599, 5)],
)
async def test_status_classes(world: World, status: int, cell: int) -> None:
    backend = await world.backend(lambda call: f"HTTP/1.1 {status} x\r\n\r\n".encode())
    if status not in (204, 304):
        backend.answer = lambda call: make_response(status=status)
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    assert (await (await world.client(port)).get()).status == status
    assert world.counters.row(ROW)[f"requests_{cell}xx"] == 1


async def test_tunnels(world: World) -> None:
    backend, client = await world.pair()
    upgrade = [("connection", "upgrade"), ("upgrade", "websocket")]
    await client.send(make_request(headers=upgrade))
    call = await backend.call()
    call.send(b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
    assert (await client.response()).status == 101
    assert world.counters["tunnels_active"] == 1
    assert world.counters["requests_active"] == 1
    call.send(b"to the client")
    assert await client.receive() == b"to the client"
    call.link.close()
    await client.ending()
    await world.settle()
    row = world.counters.row(ROW)
    assert (row["requests_1xx"], row["bytes_sent"]) == (1, 13)
    assert world.counters["tunnels_active"] == 0


async def test_aborted_requests(world: World) -> None:
    backend, client = await world.pair()
    await client.send(make_request())
    await backend.call()
    client.reset()
    await world.settle()
    row = world.counters.row(ROW)
    assert (row["requests_aborted"], row["requests_2xx"]) == (1, 0)


async def test_requests_without_a_route_have_a_row_of_their_own(world: World) -> None:
    client = await world.client_of(make_fleet(make_host(("/only", make_rule()))))
    await client.get("/other")
    await client.get("/more")
    assert world.counters.row("-\t-")["requests_4xx"] == 2
    assert world.counters["no_route"] == 2


async def test_the_buckets_of_durations(world: World) -> None:
    backend, client = await world.pair()
    await client.send(make_request())
    call = await backend.call()
    begin = world.loop.time()
    await world.until(lambda: world.loop.time() > begin + 0.12)
    call.reply()
    await client.response()
    row = world.counters.row(ROW)
    took = row["duration_us"] / 1000
    bucket = sum(took > bound for bound in BUCKET_BOUNDS_MS)
    assert bucket >= BUCKET_BOUNDS_MS.index(100) + 1
    assert row[f"duration_bucket_{bucket}"] == 1
    assert row["upstream_us"] >= 100_000
