"""ClusterSource: the objects of a cluster, for the pipeline.

In: the cache, what is seen of fleets, the settings. Out: `ready`, which returns when all that translation may read has
been read: every kind, every referenced Secret and ConfigMap, and the fleets that there are. Must never: give a snapshot in
which something is missing only because it has not been read yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import is_

from controller.infra.holdings import Holdings
from controller.kube.cache import Cache
from controller.kube.fetch import Reference
from controller.kube.references import READ, referenced
from edgefast.resources.snapshot import Snapshot
from edgefast.translate.settings import Settings

__all__ = ["ClusterSource"]


class ClusterSource:
    """See the module's text."""

    def __init__(self, cache: Cache, holdings: Holdings, settings: Callable[[], Settings]) -> None:
        self._cache = cache
        self._holdings = holdings
        self._settings = settings
        self._news = asyncio.Event()
        self._referenced: tuple[tuple[object, ...], Settings, frozenset[Reference]] | None = None
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
                snapshot = self._cache.snapshot()
                if self._cache.want(self._find_referenced(snapshot)):
                    return
            await self._news.wait()

    def _find_referenced(self, snapshot: Snapshot) -> frozenset[Reference]:
        """Return what `referenced` does; most changes touch none of the tables that it reads."""
        tables = tuple(getattr(snapshot, name) for name in READ)
        settings = self._settings().core()
        known = self._referenced
        if known is None or known[1] != settings or not all(map(is_, known[0], tables)):
            known = (tables, settings, referenced(snapshot, settings))
            self._referenced = known
        return known[2]

    def snapshot(self) -> Snapshot:
        """Return the objects as they are now."""
        return self._cache.snapshot()
