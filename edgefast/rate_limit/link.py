"""Link: the connection of the calls: an asyncio protocol with hiredis' parser and minimal work per reply.

In: packed commands, and a transport that redis-py has connected, encrypted and authenticated.
Out: every reply, in order, with its call, passed to `receive` in the loop iteration in which it
arrives; `lost` once, when the connection has ended by itself.
redis-py's own reader (a stream and a coroutine per reply, and a timer with a timeout) is only used
for set-up. Measured on uvloop and loopback, 1 key costs 29 us of CPU with it and 17 us with this
class, 64 keys 91 and 58 us, and this class needs no task.
Must never: wait for anything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import hiredis

from edgefast.rate_limit.call import Call

if TYPE_CHECKING:
    from redis.asyncio.connection import Connection

__all__ = ["Link"]

_NOT_YET = object()


class Link(asyncio.Protocol):
    """One connection."""

    def __init__(self, connection: Connection) -> None:
        """Take over the connection of `connection`, which has no reply outstanding."""
        writer = connection._writer
        assert writer is not None
        # redis-py has no public way to hand its connection over; without these it neither reads nor closes it any more.
        connection._reader = connection._writer = None
        self.pending: deque[Call | asyncio.Future[Any] | None] = deque()
        self.receive: Callable[[Call, Any], None] | None = None
        self.lost: Callable[[], None] | None = None
        self._reader = hiredis.Reader(replyError=_reply_error, notEnoughData=_NOT_YET)
        self._writer = writer  # a StreamWriter that is collected closes its transport (Python 3.13)
        self._transport = writer.transport
        self._transport.set_protocol(self)

    def send(self, packet: bytes, entries: Iterable[Call | None]) -> None:
        """Send commands at once; each has one entry, in order. None: its reply is thrown away."""
        self.pending.extend(entries)
        self._transport.write(packet)

    async def ask(self, packet: bytes) -> Any:
        """Send one command and wait for its reply, which is thrown away if the caller gives up; for what is no hot path."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.pending.append(answer)
        self._transport.write(packet)
        return await answer

    @property
    def alive(self) -> bool:
        """It has neither been closed nor lost."""
        return not self._transport.is_closing()

    def close(self) -> None:
        """End the connection now; nothing is received from it any more, and `lost` is not called."""
        self.receive = self.lost = None
        for entry in self.pending:
            if isinstance(entry, asyncio.Future) and not entry.done():
                entry.set_exception(ConnectionResetError())
        self.pending.clear()
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Give out all whole replies."""
        pending = self.pending
        gets = self._reader.gets
        self._reader.feed(data)
        try:
            while (reply := gets()) is not _NOT_YET:
                if not pending:  # a reply to nothing, or the owner has closed
                    self._transport.abort()
                    return
                entry = pending.popleft()
                if isinstance(entry, asyncio.Future):
                    if not entry.done():
                        entry.set_result(reply)
                elif entry is not None and self.receive is not None:
                    self.receive(entry, reply)
        except hiredis.ProtocolError:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the owner."""
        for entry in self.pending:
            if isinstance(entry, asyncio.Future) and not entry.done():
                entry.set_exception(error or ConnectionResetError())
        if self.lost is not None:
            self.lost()


class _ErrorReply(Exception):
    """An error reply; str() is its text."""


def _reply_error(text: str) -> Exception:
    return _ErrorReply(text)
