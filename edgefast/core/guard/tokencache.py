"""Tokens that were verified, so that nobody verifies them again.

In: tokens as they came, each on the shelf of the verifier that asked; what came of them. Out: the same, until they end or the key that
verified them is not believed any more; the one that was of no use for longest goes first. Only what an issuer signed gets in:
strangers displace nobody. Must never hold a refusal for want of a signature, or show a token.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

from edgefast.tokens.outcome import Outcome

__all__ = ["BYTES", "ENTRY", "TOKENS", "TokenCache", "cost_of"]

#: Tokens of a worker, and bytes that they and their claims have.
TOKENS = 4096
BYTES = 8 * 1024 * 1024
#: Bytes of an entry besides them: its places in a dict and in the order, its key, its Outcome.
ENTRY = 512


class TokenCache:
    """See the module's text."""

    __slots__ = ("_costs", "_entries", "_most", "_size", "size")

    def __init__(self, tokens: int = TOKENS, size: int = BYTES) -> None:
        self._entries: OrderedDict[tuple[int, bytes], Outcome] = OrderedDict()
        self._costs: dict[tuple[int, bytes], int] = {}
        self._most = tokens
        self._size = size
        self.size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, shelf: int, token: bytes, now: float) -> Outcome | None:
        """Return what came of a token, if that is still so; `now`: Unix seconds."""
        place = (shelf, token)
        outcome = self._entries.get(place)
        if outcome is None:
            return None
        if outcome.until <= now or not outcome.key.trusted:  # type: ignore[union-attr]
            self._drop(place)
            return None
        self._entries.move_to_end(place)
        return outcome

    def keep(self, shelf: int, token: bytes, outcome: Outcome, now: float) -> None:
        """Take what came of a token, if it was verified and has time left."""
        if outcome.key is None or outcome.until <= now or not outcome.key.trusted:
            return
        place = (shelf, token)
        if place in self._entries:
            self._drop(place)
        cost = cost_of(token, outcome)
        if cost > self._size:
            return
        self._entries[place] = outcome
        self._costs[place] = cost
        self.size += cost
        while self.size > self._size or len(self._entries) > self._most:
            self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()
        self._costs.clear()
        self.size = 0

    def _drop(self, place: tuple[int, bytes]) -> None:
        del self._entries[place]
        self.size -= self._costs.pop(place)


def cost_of(token: bytes, outcome: Outcome) -> int:
    """Return the bytes that an entry has."""
    cost = ENTRY + sys.getsizeof(token) + sys.getsizeof(outcome.lines)
    left: list[Any] = [outcome.claims]
    while left:
        one = left.pop()
        cost += sys.getsizeof(one)
        if isinstance(one, dict):
            left += one  # its names
            left += one.values()
        elif isinstance(one, list):
            left += one
    return cost
