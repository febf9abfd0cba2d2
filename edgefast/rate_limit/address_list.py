"""AddressList: addresses that answer the same query (sentinels, or nodes of a cluster), asked in sequence.

In: addresses and a query.
Out: the first answer. The address that answered is asked first the next time, and one that did not
is asked last. A silent address therefore costs its share of the time only once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from edgefast.rate_limit.error_reply import Refused

__all__ = ["AddressList"]

T = TypeVar("T")


class AddressList:
    """Addresses in the order in which they are asked."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._order = list(addresses)

    async def ask(self, question: Callable[[str], Awaitable[T]], share: float) -> T:
        """Ask one after the other, `share` seconds each; raises the first failure when nobody answers."""
        failure: Exception | None = None
        for address in tuple(self._order):
            self.defer(address)  # now: the caller's deadline may end this at any await
            try:
                async with asyncio.timeout(share):
                    answer = await question(address)
            except (TimeoutError, Refused) as error:
                failure = failure or error
            else:
                self.prefer(address)
                return answer
        assert failure is not None
        raise failure

    def prefer(self, address: str) -> None:
        """Ask this one first; it may be new."""
        if address in self._order:
            self._order.remove(address)
        self._order.insert(0, address)

    def defer(self, address: str) -> None:
        """Ask this one last."""
        if address in self._order:
            self._order.remove(address)
            self._order.append(address)

    def drop_all_but(self, addresses: Iterable[str]) -> None:
        """Forget the others; new ones come last."""
        wanted = dict.fromkeys(addresses)
        kept = [address for address in self._order if address in wanted]
        self._order = list(dict.fromkeys((*kept, *wanted)))
