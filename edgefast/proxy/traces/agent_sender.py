"""Agent sender: sends a worker's spans to its agent, beside its other messages.

In: batches from the engine, on the event loop.
Out: `Spans` messages, one at a time. The queue is bounded. The engine counts spans that do not fit;
this class counts spans that the agent did not receive in time.
Must never: block its caller.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from edgefast.proxy.control.messages import Spans
from edgefast.proxy.traces.span_record import count_spans

__all__ = ["QUEUE_BYTES", "SpanSender"]

#: Bytes that may wait for a busy agent: some thousand spans.
QUEUE_BYTES = 2 * 1024 * 1024


class SpanSender:
    """Callable with one batch; the engine's `spans`. `send` has a deadline of its own."""

    def __init__(
        self, send: Callable[[Spans], Awaitable[None]], dropped: Callable[[int], None]
    ) -> None:
        self._send = send
        self._dropped = dropped
        self._queue: deque[bytes] = deque()
        self._waiting = 0
        self._came = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def __call__(self, batch: bytes) -> bool:
        """Queue a batch; False when there is no room."""
        if self._waiting + len(batch) > QUEUE_BYTES:
            return False
        self._queue.append(batch)
        self._waiting += len(batch)
        self._idle.clear()
        self._came.set()
        return True

    async def run(self) -> None:
        """Send what comes, until cancelled."""
        while True:
            await self._came.wait()
            self._came.clear()
            while self._queue:
                batch = self._queue.popleft()
                self._waiting -= len(batch)
                try:
                    await self._send(Spans(batch))
                except TimeoutError:
                    self._dropped(count_spans(batch))
                except asyncio.CancelledError:  # the end, with an agent that takes no more
                    self._dropped(count_spans(batch))
                    raise
            self._idle.set()

    async def finish(self, deadline: float) -> None:
        """Wait until all is sent, for at most `deadline` seconds."""
        try:
            async with asyncio.timeout(deadline):
                await self._idle.wait()
        except TimeoutError:
            self._dropped(sum(map(count_spans, self._queue)))
            self._queue.clear()
