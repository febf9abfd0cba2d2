"""Troubles of proxies with the stores of their counters, as their metrics pages tell them, in the words of problems.

In: what the pages of one fleet's proxies say of stores. Out: `Problem`s, each once, with how many proxies say so. Why a store does not count is in a
proxy's own `status`, its log and the console: a page has no texts. Pure.
Must never: say that all is well of a proxy whose page could not be had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from edgefast.diagnostics.problem import ObjectRef, Problem

__all__ = ["find_store_problems"]

_CONFIG = ObjectRef("EdgeGateway", "", "")
_STORE = "rateLimit.backend"


def find_store_problems(
    told: Collection[Mapping[tuple[str, str], int]], fleet: str
) -> tuple[Problem, ...]:
    """Return the problems of a fleet ("namespace/name"); `told`: `Page.stores` of each proxy that could be asked."""
    found = Counter(key for stores in told for key in stores)
    return tuple(_describe(found, f"of {len(told)} proxies of {fleet}"))


def _describe(found: Counter[tuple[str, str]], of: str) -> Iterator[Problem]:
    for (store, problem), proxies in sorted(found.items()):
        if problem == "down":
            message = f"{proxies} {of} report that the store {store} does not count; rateLimit.failClosed decides their limited requests"
            yield Problem(_CONFIG, _STORE, "NotCounted", message)
        else:
            message = f"{proxies} {of} report that the store {store} has maxmemory-policy {problem}; it can delete counters when its memory is full, and limits then admit more requests"
            yield Problem(_CONFIG, _STORE, "EvictingStore", message, severity="warning")
