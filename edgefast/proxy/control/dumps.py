"""Dumps: the dump requests to a worker that are not answered yet.

In: requests by number, answers in parts.
Out: the decoded answer, or the reason why it is missing.
Must never: collect more than its limit, or leave a caller without a result.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from edgefast.proxy.control.channel import ChannelClosed, ChannelError

__all__ = ["Dumps"]

_LIMIT = 256 * 1024 * 1024
#: A worker that does not answer is said to, before whoever asked gives up (cli/admin_client.py).
_DEADLINE = 4.0


class Dumps:
    """Of one life of a worker."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[bytearray, asyncio.Future[Any]]] = {}

    def numbers(self) -> set[int]:
        """Return the questions without answer."""
        return set(self._open)

    def ask(self, number: int) -> asyncio.Future[Any]:
        """Begin a question."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[number] = (bytearray(), answer)
        return answer

    async def answered(self, number: int, answer: asyncio.Future[Any]) -> Any:
        """Wait for the answer; raises ChannelClosed, ChannelError or TimeoutError."""
        try:
            async with asyncio.timeout(_DEADLINE):
                return await answer
        finally:
            self._open.pop(number, None)

    def on_part(self, number: int, data: bytes, last: bool) -> None:
        """Take in a part of an answer."""
        gathered, answer = self._open.get(number, (bytearray(), None))
        if answer is None or answer.done():
            return
        gathered += data
        if len(gathered) > _LIMIT:
            answer.set_exception(ChannelError("dump is over its limit"))
        elif last:
            answer.set_result(msgspec.msgpack.decode(gathered))

    def fail(self) -> None:
        """End all questions: the worker ended."""
        for _, answer in self._open.values():
            if not answer.done():
                answer.set_exception(ChannelClosed("the worker ended"))
