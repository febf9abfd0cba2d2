"""Floods of streams wait between everybody else's turns: what is begun of them while another client is answered, counted in streams."""

from __future__ import annotations

import pytest

from core.backend import say
from core.fleets import make_cluster, make_fleet
from core.h2.test_hostile import frame
from core.world import World
from wire.http2.frames import requests

CONNECTIONS = 16
STREAMS = 900  # of each, below its bound of resets
AMONG = (
    16 * CONNECTIONS + 400
)  # the first of each connection, and what the few turns of one request take
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
TAKEN_BACK = requests(range(1, 2 * STREAMS, 2), (8).to_bytes(4, "big"), authority="test")
MALFORMED = requests(range(1, 2 * STREAMS, 2), te="gzip", authority="test")


@pytest.mark.parametrize(
    ("flood", "counter"),
    [(TAKEN_BACK, "http2_streams_reset"), (MALFORMED, "http2_streams_malformed")],
    ids=["taken back", "malformed"],
)
async def test_a_flood_of_streams_lets_others_pass(
    world: World, flood: bytes, counter: str
) -> None:
    backend = await world.backend(say("x"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    other = await world.client(port)
    assert (await other.get()).status == 200
    clients = [await world.client(port) for _ in range(CONNECTIONS)]
    for client in clients:
        assert client.sock.send(PREFACE + flood) == len(PREFACE + flood)
    assert (await other.get()).status == 200
    begun = world.counters[counter]
    await world.until(
        lambda: world.counters[counter] >= (STREAMS - 1) * CONNECTIONS, "all of it is handled"
    )
    assert begun <= AMONG
