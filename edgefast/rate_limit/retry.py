"""RetryLoop: retries until an attempt succeeds: a link to a server, or the map of a cluster.

In: one attempt (a coroutine function), and `need` whenever its result is lost.
Out: `held` or `failed` after every attempt. One long-lived task makes one attempt at a time, each
with a deadline. The breaker sets their rate, and opens after three failures.
Must never: end because of an exception of an attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from edgefast.rate_limit.breaker import Breaker
from edgefast.rate_limit.error_reply import Refusal
from edgefast.rate_limit.failure import explain_failure

__all__ = ["RetryLoop"]


class RetryLoop:
    """The task that tries."""

    def __init__(
        self,
        attempt: Callable[[], Awaitable[None]],
        held: Callable[[], None],
        failed: Callable[[Refusal], None],
        deadline: float,
    ) -> None:
        """`deadline`: seconds that finding, connecting, encrypting and authenticating may take together."""
        self._attempt = attempt
        self._held = held
        self._failed = failed
        self._deadline = deadline
        self._needed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.breaker = Breaker()
        self.trying = False  # an attempt is under way, or begins in this turn: worth waiting for
        self.refusal = Refusal("connect", "not connected yet")  # why the last attempt failed

    def start(self) -> None:
        """Begin; needs the running loop."""
        loop = asyncio.get_running_loop()
        self._time = loop.time
        self._task = loop.create_task(self._run())
        self.need()

    def need(self) -> None:
        """Try, as soon as the breaker's pace allows it."""
        if not self._needed.is_set():
            self._needed.set()
            self.trying = self.trying or not self.breaker.wait(self._time())

    def close(self) -> None:
        """Stop trying."""
        self.trying = False
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while True:
            await self._needed.wait()
            pause = self.breaker.wait(self._time())
            if pause:
                await asyncio.sleep(pause)
            self._needed.clear()
            self.trying = True
            self.breaker.on_attempt(self._time())
            try:
                async with asyncio.timeout(self._deadline):
                    await self._attempt()
            except Exception as error:
                self.refusal = explain_failure(error)
                self.trying = False
                self._needed.set()
                self._failed(self.refusal)
            else:
                self.trying = False
                self._held()
