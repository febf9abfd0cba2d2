"""ClusterSource: the objects of a cluster, for the pipeline.

In: the cache, the observed states of fleets, the settings.
Out: `ready`, which returns when all objects for a translation were read: every kind, every
referenced Secret and ConfigMap, and the present fleets; `select`, because the translation
determines the Pods that receive requests. While it selects unread Pods, `ready` returns when they
were read, or when objects or settings changed since the translation, because it may then select
other Pods or none.
Must never: return a snapshot without objects that exist but were not read yet, or cause a second
translation of the same state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from operator import is_

from controller.fleets.inventory import Inventory
from controller.kube.cache import Cache
from controller.kube.fetch import Reference
from controller.kube.ingress_references import IngressReferences
from controller.kube.pods import Selection
from controller.kube.references import READ, referenced
from edgefast.api.snapshot import Snapshot
from edgefast.translate.settings import Settings

__all__ = ["ClusterSource"]


#: What decides which Pods are selected.
_TABLES = tuple(name for name in Snapshot.__struct_fields__ if name != "pods")
#: All there was but Pods, and the settings.
_Given = tuple[tuple[object, ...], Settings]
#: The tables that were looked at, the settings, what was found.
_Known = tuple[tuple[object, ...], Settings, frozenset[Reference]]


class ClusterSource:
    """Supplies the pipeline with the cluster's objects."""

    def __init__(self, cache: Cache, holdings: Inventory, settings: Callable[[], Settings]) -> None:
        self._cache = cache
        self._inventory = holdings
        self._settings = settings
        self._wakeup = asyncio.Event()
        self._referenced: _Known | None = None
        self._ingresses = IngressReferences()
        self._given: _Given = ((), Settings())
        self._held: _Given | None = None  # what selects Pods that have not been read
        holdings.on_synced.append(self._wakeup.set)

    def mark(self) -> None:
        """Say that the cache has changed."""
        self._wakeup.set()

    async def ready(self) -> None:
        """Return when a snapshot is whole."""
        await self._cache.wait_synced()
        while True:
            self._wakeup.clear()
            if self._inventory.synced:
                snapshot = self._cache.snapshot()
                wanted = self._find_referenced(snapshot)
                if named := self._ingresses.find(snapshot, self._settings().core()):
                    wanted |= named
                read = self._cache.want(wanted)
                if read and not (self._cache.pods.waits and self._is_held(snapshot)):
                    return
            await self._wakeup.wait()

    def select(self, selections: Set[Selection]) -> bool:
        """Say which Pods the translation of what was given last selects; False: not all of them have been read."""
        read = self._cache.select(selections)
        self._held = None if read else self._given
        return read

    def _is_held(self, snapshot: Snapshot) -> bool:
        """Tell whether another translation would select what the last one did."""
        if self._held is None:
            return False
        tables, settings = self._held
        return settings == self._settings().core() and all(map(is_, tables, _list_tables(snapshot)))

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
        found = self._cache.snapshot()
        self._given = (_list_tables(found), self._settings().core())
        self._cache.renew()
        return found


def _list_tables(snapshot: Snapshot) -> tuple[object, ...]:
    return tuple(getattr(snapshot, name) for name in _TABLES)
