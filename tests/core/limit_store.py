"""A counter store that answers when the test says so: what RedisStore is to the engine, without a server.

In: batches of checks. Out: the batches as they came, and answers by the algorithm's reference, or whatever a test wants. The real
store is tested in tests/rate_limit and tests/wire; this one is for orders of events that a server would show now and then only.
"""

from __future__ import annotations

from typing import Any

from rate_limit.answers import pack_answer


class HeldStore:
    """A counter store that answers when the test decides.

    `answers`: (admitted, remaining, reset_ms, window) for a check.
    """

    def __init__(self, limiter: Any) -> None:
        self.available = True
        self.batches: list[list[Any]] = []
        self.expired: list[list[Any]] = []
        self.counts: dict[bytes, int] = {}
        self._limiter = limiter

    def submit(self, checks: list[Any]) -> None:
        self.batches.append(checks)

    def expire(self, checks: list[Any]) -> None:
        self.expired.append(checks)

    def state(self) -> dict[str, object]:
        return {"held": len(self.batches)}

    def _count(self, check: Any) -> tuple[int, int, int, int]:
        used = self.counts.get(check.key, 0)
        admitted = min(check.n, max(check.limit - used, 0))
        self.counts[check.key] = used + admitted
        return admitted, check.limit - used - admitted, 60_000, 1_700_000_040

    def answer(self, batch: int = 0) -> None:
        """Answer a batch by counting."""
        checks = self.batches.pop(batch)
        self._limiter.settle(checks, b"".join(pack_answer(*self._count(check)) for check in checks))

    def fail(self) -> None:
        """The connection broke."""
        self._limiter.fail(self.batches.pop(0), "gone")
