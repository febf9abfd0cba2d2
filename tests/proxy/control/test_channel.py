"""The control protocol: frames, limits, descriptors, and peers that do not keep to it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast.proxy.control import messages
from edgefast.proxy.control.channel import Channel, ChannelClosed, ChannelError, encode_frame
from edgefast.proxy.control.messages import FRAME_LIMIT, Change, split_changes, split_refused
from edgefast.proxy.process.reserved_descriptors import RESERVE
from proxy.full import exhausted

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    yield ends
    for end in ends:
        end.close()


def agent_end(sock: socket.socket) -> Channel[messages.WorkerMessage]:
    return Channel(sock, msgspec.msgpack.Decoder(messages.WorkerMessage))


def worker_end(sock: socket.socket) -> Channel[messages.AgentMessage]:
    return Channel(sock, msgspec.msgpack.Decoder(messages.AgentMessage))


def within(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 20))


@pytest.mark.parametrize(
    "message",
    [
        messages.Hello(3, 1 << 36, "debug"),
        messages.Sockets((("0.0.0.0", 80, 0), ("::", 443, 1))),
        messages.CloseSockets((("::1", 8080, 2),)),
        messages.Changes((Change("put", "cluster", "service/a/b/80", 1 << 35, 77),)),
        messages.Commit(12, "abcdef"),
        messages.Drain(),
        messages.StopAccepting(),
        messages.Exit(),
        messages.Ping(9),
        messages.DumpRequest(4),
        messages.LogLevel("info"),
    ],
    ids=lambda message: type(message).__name__,
)
async def test_every_message_of_the_agent_arrives_as_sent(pair: Pair, message: Any) -> None:
    await agent_end(pair[0]).send(message)
    assert await worker_end(pair[1]).receive() == (message, [])


async def test_descriptors_arrive_close_on_exec(pair: Pair) -> None:
    read_end, write_end = os.pipe()
    hello = messages.Hello(0, 4096, "info")
    await agent_end(pair[0]).send(hello, [read_end, write_end])
    _, received = await worker_end(pair[1]).receive()
    assert len(received) == 2
    assert not {read_end, write_end} & set(received)
    for descriptor in received:
        assert fcntl.fcntl(descriptor, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    os.write(received[1], b"x")
    assert os.read(read_end, 1) == b"x"
    for descriptor in (read_end, write_end, *received):
        os.close(descriptor)


def test_descriptors_find_room_in_a_full_process(pair: Pair) -> None:
    async def talk() -> None:
        agent, worker = agent_end(pair[0]), worker_end(pair[1])
        message = messages.Sockets((("a", 1, 0), ("b", 2, 0)))
        await agent.send(message, [0, 0])
        with exhausted():
            got, received = await worker.receive()
            assert (got, len(received)) == (message, 2)
            for descriptor in received:
                os.close(descriptor)

    RESERVE.hold(4)
    try:
        within(talk())
    finally:
        RESERVE.hold(0)


async def test_descriptors_without_room_are_missing_and_the_channel_goes_on(pair: Pair) -> None:
    agent, worker = agent_end(pair[0]), worker_end(pair[1])
    message = messages.Sockets((("a", 1, 0), ("b", 2, 0), ("c", 3, 0)))
    await agent.send(message, [0, 0, 0])
    with exhausted() as taken:
        os.close(taken.pop())
        got, received = await worker.receive()
        assert (got, len(received)) == (message, 1)
        os.close(received[0])
        await agent.send(messages.Ping(1))
        assert await worker.receive() == (messages.Ping(1), [])


def frame(payload: bytes, length: int | None = None) -> bytes:
    return struct.pack("<I", len(payload) if length is None else length) + payload


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (frame(b"\x93\xa4Ping"), "undecodable"),
        (frame(msgspec.msgpack.encode(messages.Ping(1))), "undecodable"),  # not a worker's word
        (frame(b"\xc0", 2), "disagrees"),
        (frame(b"\xc0", 0), "disagrees"),
        (b"\x01", "disagrees"),
        (frame(b"x" * FRAME_LIMIT), "limit"),
        (frame(b"x" * (FRAME_LIMIT * 2)), "limit"),
    ],
)
async def test_a_broken_frame_is_an_error(pair: Pair, raw: bytes, why: str) -> None:
    pair[1].send(raw)
    with pytest.raises(ChannelError, match=why):
        await agent_end(pair[0]).receive()


@given(st.binary(min_size=1, max_size=300))
def test_no_bytes_do_more_than_raise(raw: bytes) -> None:
    async def talk() -> None:
        with pytest.raises(ChannelError):
            while True:
                pair[1].send(raw)
                message, _ = await agent_end(pair[0]).receive()
                assert encode_frame(message) == raw  # by chance a whole frame
                raise ChannelError

    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        within(talk())
    finally:
        for end in pair:
            end.close()


async def test_descriptors_of_a_broken_frame_are_closed(pair: Pair) -> None:
    before = set(os.listdir("/proc/self/fd"))
    socket.send_fds(pair[1], [b"junk"], [0, 0])
    with pytest.raises(ChannelError):
        await agent_end(pair[0]).receive()
    assert set(os.listdir("/proc/self/fd")) == before


async def test_the_end_of_the_peer_is_seen_by_both(pair: Pair) -> None:
    channel = agent_end(pair[0])
    pair[1].close()
    with pytest.raises(ChannelClosed):
        await channel.receive()
    with pytest.raises(ChannelClosed):
        await channel.send(messages.Ping(1))


async def test_a_slow_peer_slows_the_sender_and_loses_nothing(pair: Pair) -> None:
    sender, receiver = agent_end(pair[0]), worker_end(pair[1])
    sent = 0

    async def send_all() -> None:
        nonlocal sent
        for number in range(40):
            name = f"{number:05}" * 8000
            await sender.send(messages.Changes((Change("del", "cluster", name, 0, 0),)))
            sent += 1

    sending = asyncio.ensure_future(send_all())
    for _ in range(100):  # turns of the loop, not time
        await asyncio.sleep(0)
    assert 0 < sent < 40  # the kernel holds a few, then the sender waits
    for number in range(40):
        message, _ = await receiver.receive()
        assert isinstance(message, messages.Changes)
        assert message.items[0].name.startswith(f"{number:05}")
    await sending


names = st.text(min_size=1, max_size=700)


@given(st.lists(st.builds(Change, st.just("put"), st.just("virtual_host"), names, st.integers(0, 2**40), st.integers(0, 2**30)), max_size=400))  # fmt: skip
def test_changes_of_any_size_fit_into_frames(changes: list[Change]) -> None:
    parts = list(split_changes(changes))
    assert [change for part in parts for change in part.items] == changes
    assert all(len(encode_frame(part)) <= FRAME_LIMIT for part in parts)


def test_refusals_of_any_size_fit_into_frames() -> None:
    refused = [("secret", f"secret/{'n' * 250}/{number}", "why " * 500) for number in range(500)]
    parts = list(split_refused(refused))
    items = [item for part in parts for item in part.items]
    assert [item[:2] for item in items] == [one[:2] for one in refused]
    assert all(item[2].startswith("why why") for item in items)
    assert all(len(encode_frame(part)) <= FRAME_LIMIT for part in parts)
    assert len(parts) > 1


def test_a_message_over_the_limit_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ValueError, match="limit"):
        encode_frame(messages.Commit(1, "v" * FRAME_LIMIT))
