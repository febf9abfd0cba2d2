"""Retention: objects stay in use when their kind was removed.

In: objects that the API server no longer has.
Out: `on_deleted` for each object that was deleted itself; the others are `held`. When a
CustomResourceDefinition is deleted, the API server deletes all its objects first, and a watch
cannot distinguish them from objects that a user deleted. The CRD is therefore read after each
deletion. An object is held when its CRD is missing, is being deleted, or is younger than the object
(it was deleted and created again). The API server marks the CRD before it deletes the first object,
so one later read decides. A held object is dropped when it is created and deleted again, when its
kind is released, or at the end of this process. Deletions are decided in the order of their
arrival. While the CRD of a kind cannot be read, the objects of this kind wait. Later deletions of
routes and policies wait, too: a policy must not leave while the deletion of its route is undecided.
A policy that waits delays its own kind only, because it restricts traffic. Deletions of other kinds
do not wait.
Must never: treat a failed read as a deletion, or block the caller while it waits for the API
server.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from controller.kube.apis import APIS, Api, group_path
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from controller.kube.store import Name, Source
from controller.kube.throttle import Backoff, RequestRate
from edgefast.api.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP, KINDS
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.model.route_name import ROUTE_KINDS

__all__ = ["GROUPS", "Retention", "crd_name"]

log = logging.getLogger(__name__)

#: API groups that CRDs define.
GROUPS = frozenset({GATEWAY_GROUP, EDGE_GROUP, EXPERIMENTAL_GROUP})
#: Kinds whose objects restrict others.
_POLICIES = frozenset(one.kind for one in KINDS.values() if one.kind.endswith("Policy"))
_CRD = APIS["apiextensions.k8s.io/v1", "CustomResourceDefinition"]


class _Gone(msgspec.Struct, frozen=True):
    """An object that the API server no longer has, for a reason that is not known yet."""

    api: Api
    source: Source
    created: str  # RFC 3339, "" unknown


class _Kind(msgspec.Struct, frozen=True):
    """The current state of a kind in the API server."""

    present: bool  # its CRD is there, and is not being deleted
    created: str = ""  # when the CRD was made, "" unknown

    def lost(self, gone: _Gone) -> bool:
        """Tell whether an object was deleted with its kind."""
        return not self.present or bool(gone.created and gone.created < self.created)


class Retention:
    """Decides whether deleted objects stay in force. Single-threaded; `run` it as a task."""

    def __init__(
        self,
        kube: Kube,
        on_deleted: Callable[[Source, Name], None],
        on_held: Callable[[Name], None] = lambda name: None,
        on_change: Callable[[], None] = lambda: None,
        pace: RequestRate | None = None,
    ) -> None:
        """`on_held` is called for each object that stays, `on_change` when `held` changes."""
        self.problem = ""  # why the kinds of deleted objects cannot be read now, "" when they can
        self._kube = kube
        self._on_deleted = on_deleted
        self._on_held = on_held
        self._on_change = on_change
        self._pace = pace or RequestRate()
        self._was_requested: dict[Name, _Gone] = {}
        self._held: dict[Name, Source] = {}
        self._counts: Counter[str] = Counter()  # of `_held`, by kind; without zeros
        self._released: frozenset[str] = frozenset()
        self._wake = asyncio.Event()

    @property
    def held(self) -> Mapping[str, int]:
        """Objects in force of removed kinds, by kind."""
        return self._counts

    def ask(self, api: Api, source: Source, name: Name, created: str) -> None:
        """Find out whether a missing object was deleted itself, or with its kind."""
        if api.group not in GROUPS or (api.kind in self._released and not self._was_requested):
            self._on_deleted(source, name)
            return
        self._end_hold(name)
        self._was_requested.pop(name, None)  # the last one of all
        self._was_requested[name] = _Gone(api, source, created)
        self._wake.set()

    def lose(self, source: Source, names: Iterable[Name]) -> None:
        """Hold objects: the API server no longer serves their kind."""
        for name in names:
            self._was_requested.pop(name, None)
            self._keep(source, name)

    def forget(self, name: Name) -> None:
        """Note that an object exists, again or still."""
        self._was_requested.pop(name, None)
        if self._end_hold(name) is not None:
            self._on_change()

    def drop(self, kind: str, namespace: str | None) -> None:
        """Drop held objects of a kind in a namespace (None: in all) that is no longer watched."""
        for name in [name for name in self._held if name[0] == kind]:
            if namespace in (None, name[1]):
                self._let_go(name)

    def release(self, kinds: Collection[str]) -> None:
        """Drop objects of these kinds when the kinds are removed, now and in the future; others are held."""
        self._released = frozenset(kinds)
        for name in [name for name in self._held if name[0] in self._released]:
            log.warning("%s %s/%s: released by the configuration; no longer in force", *name)
            self._let_go(name)
        self._settle(list(self._was_requested.items()), {})

    async def run(self) -> None:
        """Decide until cancelled."""
        backoff = Backoff(self._pace.backoff_first, self._pace.backoff_most)
        while True:
            await self._wake.wait()
            self._wake.clear()
            failed = await self._decide()
            if failed != self.problem:
                self.problem = failed
                if failed:
                    log.warning("deleted objects stay in force: %s; retrying", failed)
            if failed:
                self._wake.set()
                await asyncio.sleep(backoff.next())
            else:
                backoff.reset()

    async def _decide(self) -> str:
        """Decide about the objects that were asked for before this call; return what went wrong."""
        requested = list(self._was_requested.items())
        found: dict[Api, _Kind] = {}
        failed = ""
        apis = dict.fromkeys(
            gone.api for _, gone in requested if gone.api.kind not in self._released
        )
        for api in apis:
            try:
                found[api] = await self._look(api)
            except ApiError as error:
                failed = f"{crd_name(api)}: {error}"
        self._settle(requested, found)
        return failed

    def _settle(
        self, requested: Collection[tuple[Name, _Gone]], found: Mapping[Api, _Kind]
    ) -> None:
        """Drop or hold objects in their order, but for those of a kind with unknown state, and routes and policies behind them."""
        ordered = False  # an object that may serve traffic waits
        for name, gone in requested:
            if self._was_requested.get(name) is not gone:
                continue  # it came back, or is gone already
            kind = found.get(gone.api)
            released = name[0] in self._released
            if kind is None and not released:
                ordered = ordered or name[0] not in _POLICIES
                continue
            if ordered and (name[0] in ROUTE_KINDS or name[0] in _POLICIES):
                continue
            del self._was_requested[name]
            if kind is not None and kind.lost(gone) and not released:
                self._keep(gone.source, name)
            else:
                self._on_deleted(gone.source, name)

    async def _look(self, api: Api) -> _Kind:
        try:
            found = await self._kube.read_metadata(_CRD.path(name=crd_name(api)))
        except ApiError as error:
            if error.forbidden:
                return _Kind(await self._is_served(api))
            raise
        meta = (found or {}).get("metadata") or {}
        present = found is not None and "deletionTimestamp" not in meta
        return _Kind(present, str(meta.get("creationTimestamp") or ""))

    async def _is_served(self, api: Api) -> bool:
        """Tell by discovery whether objects of a kind can be created; they cannot while its CRD is being deleted."""
        try:
            listed = await self._kube.get(group_path(api.group, api.version))
        except ApiError as error:
            if error.not_found:
                return False
            raise
        verbs = {one["name"]: one.get("verbs") or () for one in listed.get("resources") or ()}
        return "create" in verbs.get(api.plural, ())

    def _keep(self, source: Source, name: Name) -> None:
        if name[0] in self._released:
            self._on_deleted(source, name)
            return
        if not self._counts[name[0]]:
            log.warning(
                "kind %s: its CRD was removed while objects of it were in force; they stay in force as last seen; install the "
                "CRD and the objects again, or release them (EdgeGateway provider.kubernetes.releaseKinds)",
                name[0],
            )
        self._counts[name[0]] += name not in self._held
        self._held[name] = source
        self._on_held(name)
        self._on_change()

    def _let_go(self, name: Name) -> None:
        source = self._end_hold(name)
        if source is not None:
            self._on_deleted(source, name)
            self._on_change()

    def _end_hold(self, name: Name) -> Source | None:
        source = self._held.pop(name, None)
        if source is not None:
            self._counts[name[0]] -= 1
            if not self._counts[name[0]]:
                del self._counts[name[0]]
        return source


def crd_name(api: Api) -> str:
    """Return the name of the CRD of a kind."""
    return f"{api.plural}.{api.group}"
