"""Store problems: failures of counter stores on the proxies' metrics pages, as problems.

In: the store metrics of one fleet's proxies.
Out: `Problem`s, each once, with the number of affected proxies. A metrics page has no texts: the
cause is in a proxy's own `status`, log and console. Pure.
Must never: report a proxy without a readable page as healthy.
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
