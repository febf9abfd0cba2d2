"""What the engine is to a store, in a few lines: one batch at a time, a deadline for it, and what became of each check.

In: a configuration and checks. Out: for each check its four numbers, the reason why it failed, or None when the deadline
passed. It holds the store to its contract: exactly one answer for each check, at most one for those that were given up, and none
from inside a call.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

from edgefast import ir
from edgefast.rate_limit.redis_store import RedisStore
from edgefast.rate_limit.script import Check, pack_words, read_answers
from edgefast.rate_limit.store_status import StoreStatus

Numbers = tuple[int, int, int, int]
Outcome = Numbers | str | None

PATIENCE = 20.0  # seconds after which a test gives up


@dataclass(eq=False)
class Ask:
    """A check as the engine makes them."""

    key: bytes
    n: int = 1
    limit: int = 10
    unit: int = 3600
    sliding: bool = False

    def pack(self, checks: list[Check]) -> bytes:
        return pack_words(checks)


def config_of(*addresses: str, **settings: Any) -> ir.RateLimitStore:
    """A configuration with a timeout that a busy machine keeps."""
    return ir.RateLimitStore(
        **{"kind": "redis", "addresses": addresses, "timeout": 2000, **settings}
    )


class Caller:
    """One worker's engine."""

    def __init__(self, config: ir.RateLimitStore) -> None:
        self.told: list[StoreStatus] = []  # how its places stand, all that was told
        self.store = RedisStore(config, self._settle, self._fail, self.told.append)
        self.timeouts = 0
        self._timeout = config.timeout / 1000
        self._open: dict[int, Check] = {}
        self._late: dict[int, Check] = {}  # given up; an answer may still come
        self._outcomes: dict[int, Outcome] = {}
        self._done = asyncio.Event()
        self._inside = False

    async def take(self, *checks: Ask) -> list[Outcome]:
        """Submit one batch; past the engine's deadline what has no answer is given up."""
        assert not self._open, "one batch at a time"
        asked = [replace(check) for check in checks]  # a check is asked once
        self._open = {id(check): check for check in asked}
        self._outcomes = {}
        self._done.clear()
        with self._in_call():
            self.store.submit(list[Check](asked))
        timer = asyncio.get_running_loop().call_later(self._timeout, self._expire)
        async with asyncio.timeout(PATIENCE):
            await self._done.wait()
        timer.cancel()
        return [self._outcomes.get(id(check)) for check in asked]

    async def one(self, check: Ask) -> Outcome:
        """Submit one check."""
        return (await self.take(check))[0]

    async def settled(self, check: Ask) -> Numbers:
        """Submit one check that must be counted."""
        outcome = await self.one(check)
        assert isinstance(outcome, tuple), outcome
        return outcome

    async def until_settled(self, check: Ask, deadline: float = PATIENCE) -> Numbers:
        """Ask as the engine does, only while the store is available, until it counts."""
        async with asyncio.timeout(deadline):
            while True:
                if self.store.available:
                    outcome = await self.one(check)
                    if isinstance(outcome, tuple):
                        return outcome
                await asyncio.sleep(0.005)

    async def until_unavailable(self, check: Ask) -> list[Outcome]:
        """Ask until the breaker opens; what became of the checks until then."""
        outcomes = []
        async with asyncio.timeout(PATIENCE):
            while self.store.available:
                outcomes.append(await self.one(check))
                await asyncio.sleep(0)
        return outcomes

    def _settle(self, checks: list[Check], answers: bytes) -> None:
        for check, numbers in zip(checks, read_answers(answers), strict=True):
            self._answer(check, numbers)

    def _fail(self, checks: list[Check], reason: str) -> None:
        assert reason
        for check in checks:
            self._answer(check, reason)

    def _answer(self, check: Check, outcome: Outcome) -> None:
        assert not self._inside, "an answer from inside a call of the store"
        if self._late.pop(id(check), None) is check:
            return
        assert self._open.pop(id(check), None) is check, "an answer for nothing"
        self._outcomes[id(check)] = outcome
        if not self._open:
            self._done.set()

    def _expire(self) -> None:
        if self._open:
            self.timeouts += 1
            late, self._open = self._open, {}
            self._late |= late
            with self._in_call():
                self.store.expire(list(late.values()))
            self._done.set()

    @contextlib.contextmanager
    def _in_call(self) -> Any:
        self._inside = True
        yield
        self._inside = False


@contextlib.asynccontextmanager
async def calling(config: ir.RateLimitStore) -> AsyncIterator[Caller]:
    """A caller whose store is started, and closed at the end."""
    caller = Caller(config)
    caller.store.start()
    try:
        yield caller
    finally:
        caller.store.close()
        await asyncio.sleep(0)  # its tasks and transports end
        await asyncio.sleep(0)


async def until(check: Callable[[], Any], what: str) -> None:
    """Wait for a condition while the loop runs."""
    end = asyncio.get_running_loop().time() + PATIENCE
    while not check():
        assert asyncio.get_running_loop().time() < end, f"no {what}"
        await asyncio.sleep(0.005)
