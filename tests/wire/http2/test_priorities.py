"""Priorities of a client order nothing: its answers share what its windows let through, whatever tree it draws."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from origin.message import RequestReader
from origin.scripted import Peer, ScriptedOrigin
from wire.harness.scenes import objects_for
from wire.harness.site import Site
from wire.http2.client import H2Client
from wire.http2.frames import frame

SIZE = 256 << 10  # each answer
FIRST = 65535  # bytes that the connection's window lets through at first
STEP = 16 << 10  # ... and then at a time
FAIR = (
    48 << 10
)  # bytes by which one may be ahead: two frames, and what one that came later did not have yet
EXCLUSIVE = 1 << 31
PROTOCOL = 1


def serve(peer: Peer) -> None:
    """A long answer for each request."""
    reader, data = RequestReader(), peer.read_some()
    while data:
        for _ in reader.feed(data):
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE + bytes(SIZE))
        data = peer.read_some()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with ScriptedOrigin(serve) as origin:
        objects = objects_for(origin.port)
        with Site(objects) as running:
            yield running


def priority(stream: int, parent: int, weight: int) -> bytes:
    return frame(2, 0, stream, struct.pack(">IB", parent, weight))


def chain(first: int, second: int) -> bytes:
    """The second only when the first has all it wants."""
    return priority(first, 0, 255) + priority(second, first, 0)


def seize(first: int, second: int) -> bytes:
    """The first before everything else."""
    return priority(second, 0, 0) + priority(first, EXCLUSIVE, 255)


def weigh(first: int, second: int) -> bytes:
    return priority(first, 0, 255) + priority(second, 0, 0)


@pytest.mark.parametrize("tree", [chain, seize, weigh])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_tree_gives_nobody_an_advantage(site: Site, tree, swapped: bool) -> None:  # type: ignore[no-untyped-def]
    with opened(site, [(), ()]) as client:
        numbers = sorted(client.streams, reverse=swapped)
        client.send(tree(*numbers))
        expect_fair(client)


def test_neither_does_the_priority_field(site: Site) -> None:
    """RFC 9218: it goes on to the backend, who knows what is urgent."""
    with opened(site, [[("priority", "u=7")], [("priority", "u=0")]]) as client:
        expect_fair(client)


def test_who_draws_no_tree_gets_the_same(site: Site) -> None:
    with opened(site, [(), ()]) as client:
        expect_fair(client)


@pytest.mark.parametrize(("stream", "parent"), [(0, 1), (1, 1), (9, 9)])
def test_what_is_no_tree_ends_the_connection(site: Site, stream: int, parent: int) -> None:
    """RFC 9113 6.3, RFC 7540 5.3.1; cut at each byte."""
    data = priority(stream, parent, 16)
    for cut in range(len(data)):
        with H2Client(site.port, window=False) as client:
            client.ask()
            client.send(data[:cut])
            client.send(data[cut:])
            client.read_to_end()
            assert client.goaways[-1][0] == PROTOCOL


def opened(site: Site, asked: list) -> H2Client:  # type: ignore[type-arg]
    """A client whose answers have begun, and whose connection's window is used up."""
    client = H2Client(site.port, window=False)
    client.frames.update_settings({4: 4 * SIZE})
    client.flush()
    for fields in asked:
        client.ask(fields)
    streams = client.streams.values()
    client.read(lambda: all(one.status for one in streams) and received(client) == FIRST)
    return client


def received(client: H2Client) -> int:
    return sum(len(one.body) for one in client.streams.values())


def expect_fair(client: H2Client) -> None:
    """From here on each gets as much as the other one, and in the end all."""
    first, second = client.streams.values()
    while not (first.ended and second.ended):
        before = received(client)
        client.frames.increment_flow_control_window(STEP)
        client.flush()
        most = min(2 * SIZE, before + STEP)
        client.read(lambda most=most: received(client) == most)  # type: ignore[misc]
        assert not client.gone
        if len(first.body) < SIZE and len(second.body) < SIZE:
            # What was sent before both were there is nobody's advantage.
            assert abs(len(first.body) - len(second.body)) <= FIRST + FAIR
        if most == 2 * SIZE:
            client.read(lambda: first.ended and second.ended)
