"""A worker's spans on their way to the agent: in order, bounded, and never in the way of who records them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from edgefast.proxy.control.channel import encode_frame
from edgefast.proxy.control.messages import Spans
from edgefast.proxy.traces import agent_sender
from edgefast.proxy.traces.agent_sender import SpanSender

BATCH = b"\xdc\x00\x05" + b"x" * 97


def drive(
    send: Callable[[Spans], Awaitable[None]], work: Callable[[SpanSender], Awaitable[None]]
) -> int:
    """Run a sender while `work` uses it; returns what was counted as dropped."""
    dropped: list[int] = []

    async def run() -> None:
        sender = SpanSender(send, dropped.append)
        task = asyncio.create_task(sender.run())
        await work(sender)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    return sum(dropped)


def test_in_order_and_whole() -> None:
    sent: list[bytes] = []

    async def send(message: Spans) -> None:
        sent.append(message.batch)

    async def work(sender: SpanSender) -> None:
        for number in range(3):
            assert sender(BATCH + bytes([number]))
        await sender.finish(5)

    assert drive(send, work) == 0
    assert sent == [BATCH + bytes([number]) for number in range(3)]


def test_a_busy_agent_costs_spans_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_sender, "QUEUE_BYTES", 3 * len(BATCH))

    async def send(message: Spans) -> None:
        await asyncio.Event().wait()

    async def work(sender: SpanSender) -> None:
        assert [sender(BATCH) for _ in range(5)] == [True] * 3 + [False] * 2
        await sender.finish(0.01)

    # One batch was being sent, the other two were waiting.
    assert drive(send, work) == 3 * 5


def test_what_is_not_taken_in_time_is_counted_and_the_next_one_is_tried() -> None:
    sent: list[bytes] = []

    async def send(message: Spans) -> None:
        if not sent and message.batch == BATCH:
            sent.append(b"")
            raise TimeoutError
        sent.append(message.batch)

    async def work(sender: SpanSender) -> None:
        sender(BATCH)
        sender(BATCH + b"y")
        await sender.finish(5)

    assert drive(send, work) == 5
    assert sent == [b"", BATCH + b"y"]


def test_the_largest_batch_fits_into_a_frame() -> None:
    assert len(encode_frame(Spans(b"x" * (32768 + 10240)))) < 64 * 1024
