"""ClusterSource: the objects of a cluster, for the pipeline.

In: the cache, what is seen of fleets, the settings. Out: `ready`, which returns when all that translation may read has
been read: every kind, every referenced Secret and ConfigMap, every selected Pod, and the fleets that there are. Must never: give a snapshot in
which something is missing only because it has not been read yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import is_

from controller.infra.holdings import Holdings
from controller.kube.cache import Cache
from controller.kube.fetch import Reference
from controller.kube.pods import Selection
from controller.kube.references import READ, referenced, selected
from edgefast.resources.snapshot import Snapshot
from edgefast.translate.settings import Settings

__all__ = ["ClusterSource"]


#: The tables that were looked at, the settings, what was found.
_Known = tuple[tuple[object, ...], Settings, tuple[frozenset[Reference], frozenset[Selection]]]


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
                snapshot = self._cache.snapshot()
                references, selections = self._find_referenced(snapshot)
                read, followed = self._cache.want(references), self._cache.select(selections)
                if read and followed:
                    return
            await self._news.wait()

    def _find_referenced(
        self, snapshot: Snapshot
    ) -> tuple[frozenset[Reference], frozenset[Selection]]:
        """Return what `referenced` and `selected` do; most changes touch none of the tables that it reads."""
        tables = tuple(getattr(snapshot, name) for name in READ)
        settings = self._settings().core()
        known = self._referenced
        if known is None or known[1] != settings or not all(map(is_, known[0], tables)):
            found = referenced(snapshot, settings), selected(snapshot, settings)
            known = (tables, settings, found)
            self._referenced = known
        return known[2]

    def snapshot(self) -> Snapshot:
        """Return the objects as they are now."""
        return self._cache.snapshot()
