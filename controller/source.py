"""ClusterSource: the objects of a cluster, for the pipeline.

In: the cache, what is seen of fleets, the settings. Out: `ready`, which returns when all that translation may read has
been read: every kind, every referenced Secret and ConfigMap, every Pod that is selected already, and the fleets that there are; `select`, for
it is translation that knows which Pods requests are sent to. Must never: give a snapshot in which something is missing only because it has not
been read yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from operator import is_

from controller.infra.holdings import Holdings
from controller.kube.cache import Cache
from controller.kube.fetch import Reference
from controller.kube.pods import Selection
from controller.kube.references import READ, referenced
from edgefast.resources.snapshot import Snapshot
from edgefast.translate.settings import Settings

__all__ = ["ClusterSource"]


#: The tables that were looked at, the settings, what was found.
_Known = tuple[tuple[object, ...], Settings, frozenset[Reference]]


class ClusterSource:
    """See the module's text."""

    def __init__(self, cache: Cache, holdings: Holdings, settings: Callable[[], Settings]) -> None:
        self._cache = cache
        self._holdings = holdings
        self._settings = settings
        self._news = asyncio.Event()
        self._referenced: _Known | None = None
        holdings.on_synced.append(self._news.set)

    def mark(self) -> None:
        """Say that the cache has changed."""
        self._news.set()

    async def ready(self) -> None:
        """Return when a snapshot is whole."""
        await self._cache.wait_synced()
        while True:
            self._news.clear()
            if self._holdings.synced:
                read = self._cache.want(self._find_referenced(self._cache.snapshot()))
                if read and not self._cache.pods.waits:
                    return
            await self._news.wait()

    def select(self, selections: Set[Selection]) -> bool:
        """Say of which Pods a translation makes use; False: not all of them have been read, `ready` returns when they are."""
        return self._cache.select(selections)

    def _find_referenced(self, snapshot: Snapshot) -> frozenset[Reference]:
        """Return what `referenced` does; most changes touch none of the tables that it reads."""
        tables = tuple(getattr(snapshot, name) for name in READ)
        settings = self._settings().core()
        known = self._referenced
        if known is None or known[1] != settings or not all(map(is_, known[0], tables)):
            known = self._referenced = (tables, settings, referenced(snapshot, settings))
        return known[2]

    def snapshot(self) -> Snapshot:
        """Return the objects as they are now."""
        return self._cache.snapshot()
