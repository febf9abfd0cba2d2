"""Cache: all relevant objects of a cluster as Snapshots, and their present statuses.

In: an API server and a Scope.
Out: `snapshot()`, and `on_change` for a new one. Each kind and namespace has one reflector. Kinds
without a CRD are polled until the CRD exists. Secrets, ConfigMaps and ClusterTrustBundles are
watched as names, and only those that `want` names are read. `synced` is true when every list of the
first set was read completely; a later collection (a namespace, a kind) joins completely. Objects
stay when their kind was removed (retention.py).
Must never: translate, write, or report a collection as synced before it is.

    snapshot = cache.snapshot()
    if not cache.want(referenced(snapshot, settings)):
        return  # on_change comes when the referenced objects were read
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Set
from functools import partial

import msgspec

from controller.kube.apis import APIS, Api
from controller.kube.client import Kube
from controller.kube.discovery import OPTIONAL, Discovery, Served
from controller.kube.errors import ApiError
from controller.kube.fetch import Fetch, Reference
from controller.kube.pods import Pods, Selection
from controller.kube.reflector import Item, Reflector, Target
from controller.kube.retention import Retention
from controller.kube.scope import BUILT_IN, REFERENCED_KINDS, Scope
from controller.kube.status_author import AUTHOR
from controller.kube.store import Name, Present, Source, Store
from controller.kube.throttle import Backoff, RequestRate
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["Cache", "Present"]

log = logging.getLogger(__name__)


class _Followed(msgspec.Struct, eq=False):
    """A collection that is reflected now."""

    reflector: Reflector
    source: Source
    group: _Group
    task: asyncio.Task[None]


class _Group:
    """Collections that join the snapshot together, once all of them have been listed."""

    def __init__(self) -> None:
        self.waiting: set[Target] = set()
        self.sources: list[Source] = []


class Cache:
    """The cluster's objects as Snapshots.

    `run` it as a task. Callbacks must be quick and must not raise.
    """

    def __init__(
        self,
        kube: Kube,
        scope: Scope,
        on_change: Callable[[], None] = lambda: None,
        *,
        on_status: Callable[[ObjectRef], None] = lambda _: None,
        pace: RequestRate | None = None,
        author: str = AUTHOR,
    ) -> None:
        """`author`: the field manager of our statuses."""
        self.on_change = on_change
        self.on_status = on_status
        self.bundle_version = ""  # of the Gateway API CRDs, "" unknown
        self.events: Counter[str] = Counter()  # objects that came, changed or went, by kind
        self._kube = kube
        self._scope = scope
        self._pace = pace or RequestRate()
        self._store = Store(self._report_change, lambda ref: self.on_status(ref), author)
        self._fetch = Fetch(
            kube,
            self._on_fetched,
            self._on_unfetched,
            self._report_change,
            self._pace,
            lambda kind: self.served.get(kind) or APIS["v1", kind],
        )
        self._fetched = Source(released=True)
        self._retention = Retention(
            kube, self._on_deleted, self._store.forget_status, self._report_change, self._pace
        )
        self.pods = Pods(kube, self._report_change, self._pace)  # that `select` names
        self._discovery = Discovery(kube, self._pace)
        self._served: Served | None = None
        self._followed: dict[Target, _Followed] = {}
        self._ended: Counter[tuple[str, str]] = Counter()  # restarts of reflectors that are no more
        self._look = asyncio.Event()
        self._synced = asyncio.Event()
        self._discovery_problem = ""

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fetch.run())
            group.create_task(self.pods.run())
            group.create_task(self._retention.run())
            group.create_task(self._follow(group))

    # --- for those who use it -------------------------------------------------------------------

    @property
    def synced(self) -> bool:
        """Whether everything there was at the start has been read: nothing may be published before."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return when synced."""
        await self._synced.wait()

    def snapshot(self) -> Snapshot:
        """Return all objects; identical objects and tables where nothing has changed."""
        found, pods = self._store.snapshot(), self.pods.table()
        if pods is not found.pods:
            found = self._store.take_pods(pods)
        return found

    def renew(self) -> None:
        """Allow the next snapshot another slice of changed routes with high cost; on_change is called when some wait."""
        self._store.renew()

    def want(self, references: Set[Reference]) -> bool:
        """Name the Secrets, ConfigMaps and ClusterTrustBundles to read, by (kind, namespace, name); others are forgotten.

        True: all of them that exist are in `snapshot()`, or cannot be read and have been waited for. False: on_change
        will be called, then ask for the snapshot again.
        """
        return self._fetch.want(references)

    def select(self, selections: Set[Selection]) -> bool:
        """Name the Pods to follow, by namespace and labels; returns as `want` does."""
        return self.pods.want(selections)

    def present(self, ref: ObjectRef) -> Present | None:
        """Return version and status of an object of the gateway groups as last seen, None when it is not there."""
        return self._store.present(ref)

    def saying(self, kinds: Collection[str], texts: Collection[bytes]) -> list[ObjectRef]:
        """Return the objects of some kinds in whose status one of the texts is."""
        return self._store.saying(kinds, texts)

    def is_absent(self, namespace: str | None) -> bool:
        """Tell whether a namespace of the scope surely does not exist.

        Then nothing is in it, and nobody may read there: its Roles went with it. The others must not wait for it.
        """
        if namespace not in self._scope.namespaces or namespace == self._scope.own:
            return False
        for target, one in self._followed.items():
            if target.api.kind == "Namespace":
                return one.reflector.synced and ("", namespace) not in one.reflector.known
        return False

    def rescope(self, scope: Scope) -> None:
        """Watch other namespaces from now on; what is added joins when it has been read whole."""
        if scope != self._scope:
            self._scope = scope
            self._look.set()

    def release(self, kinds: Collection[str]) -> None:
        """Drop objects of these kinds that are in force although their kind was removed; objects of other kinds stay."""
        self._retention.release(kinds)

    # --- for those who look ---------------------------------------------------------------------

    @property
    def retained(self) -> Mapping[str, int]:
        """Objects that are in force although their kind was removed from the API server, by kind."""
        return self._retention.held

    @property
    def served(self) -> Mapping[str, Api]:
        """The kinds with CRDs that are served, in the version that is watched."""
        return self._served.apis if self._served else {}

    @property
    def missing(self) -> frozenset[str]:
        """The kinds that the server does not know; they are looked for again and again."""
        return self._served.missing if self._served else frozenset()

    @property
    def refused(self) -> Mapping[tuple[str, str, str], str]:
        """Objects that cannot be decoded, by (kind, namespace, name), and why; their last good version stays."""
        return self._store.problems

    @property
    def refusals(self) -> Mapping[str, int]:
        """How often an object could not be decoded, by kind; it only grows."""
        return self._store.refused

    @property
    def deferred(self) -> int:
        """Changed routes that wait for their slice (Store)."""
        return self._store.deferred

    @property
    def counts(self) -> Mapping[str, int]:
        """Objects held, by kind."""
        return self._store.counts

    @property
    def problems(self) -> Mapping[str, str]:
        """What goes wrong right now, by the collection or object that cannot be read; empty when all is well."""
        found = {
            str(target): one.reflector.problem
            for target, one in self._followed.items()
            if one.reflector.problem
        }
        found |= {
            f"{kind} {where}/{name}": message
            for (kind, where, name), message in self._fetch.problems.items()
        }
        found |= self.pods.problems
        if self._retention.problem:
            found["deletions"] = self._retention.problem
        if self._discovery_problem:
            found["discovery"] = self._discovery_problem
        return found

    @property
    def waiting(self) -> tuple[str, ...]:
        """The collections that have not been read yet, in order."""
        return tuple(
            sorted(str(one) for one, known in self._followed.items() if not known.reflector.synced)
        )

    @property
    def restarts(self) -> Counter[tuple[str, str]]:
        """How often watching began anew, by (kind, cause); it only grows."""
        total = Counter(self._ended)
        for target, one in self._followed.items():
            for cause, count in one.reflector.restarts.items():
                total[target.api.kind, cause] += count
        for cause, count in self.pods.restarts.items():
            total["Pod", cause] += count
        return total

    # --- what to follow -------------------------------------------------------------------------

    async def _follow(self, tasks: asyncio.TaskGroup) -> None:
        """Keep the set of reflectors like scope and server want it."""
        backoff = Backoff(self._pace.backoff_first, self._pace.backoff_most)
        while True:
            self._look.clear()
            try:
                served = await self._discovery.look()
            except ApiError as error:
                if str(error) != self._discovery_problem:
                    self._discovery_problem = str(error)
                    log.warning("the kinds of the API server cannot be read: %s; retrying", error)
                await asyncio.sleep(backoff.next())
                continue
            self._discovery_problem = ""
            backoff.reset()
            # Before the first set is known for sure, nothing is followed: it has to join as one.
            if self._followed or not served.undecided:
                self._adopt(served, tasks)
            await self._pause(served)

    async def _pause(self, served: Served) -> None:
        """Wait until it is time to look again."""
        pace = self._pace
        if served.undecided:
            seconds = pace.absent_after
        else:
            seconds = pace.discover_missing if served.missing - OPTIONAL else pace.discover
        try:
            async with asyncio.timeout(random.uniform(seconds, seconds * 1.2)):
                while not await self._is_asked(random.uniform(0.8, 1.2) * pace.discover_version):
                    self._note_version(await self._discovery.look_at_version())
        except TimeoutError:
            return
        # A reason to look comes once per reflector; and never look without a pause.
        await asyncio.sleep(pace.backoff_first)

    async def _is_asked(self, seconds: float) -> bool:
        """Wait for a reason to look at the kinds; False when there was none for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._look.wait()
        except TimeoutError:
            return False
        return True

    def _note_version(self, version: str) -> None:
        if version != self.bundle_version:
            self.bundle_version = version
            self._report_change()

    def _adopt(self, served: Served, tasks: asyncio.TaskGroup) -> None:
        before, self._served = self._served, served
        if before is None or before.missing != served.missing:
            for kind in sorted(served.missing - OPTIONAL):
                log.warning("the API server has no kind %s (its CRD is not installed)", kind)
            for kind in sorted(served.missing & OPTIONAL):
                log.info("the API server has no kind %s", kind)
            self._report_change()
        wanted = self._scope.targets((*BUILT_IN, *served.apis.values()))
        targets = frozenset(one for one in wanted if not self.is_absent(one.namespace))
        joining = targets - self._followed.keys()
        leaving = self._followed.keys() - targets
        group = _Group()
        for target in sorted(joining, key=str):
            # The same kind in another version: what is known stays until the new list says otherwise.
            old = next((one for one in leaving if _same(one, target)), None)
            known = dict.fromkeys(self._followed[old].reflector.known, "") if old else {}
            if old is not None:
                self._stop(old)
                leaving = leaving - {old}
            self._start(target, group, known, tasks)
        for target in leaving:
            self._leave(target, removed=target.api.kind in served.missing)
        self._note_version(served.bundle_version)

    def _leave(self, target: Target, *, removed: bool) -> None:
        """Stop watching a collection; `removed`: the API server no longer has its kind."""
        kind, one = target.api.kind, self._followed[target]
        if removed and kind not in REFERENCED_KINDS:
            names = [(kind, *key) for key in one.reflector.known]
            self._retention.lose(one.source, names)
        else:
            for key in list(one.reflector.known):
                self._on_gone(one.source, target, *key)
            self._retention.drop(kind, target.namespace)
        self._stop(target)

    def _start(
        self,
        target: Target,
        group: _Group,
        known: dict[tuple[str, str], str],
        tasks: asyncio.TaskGroup,
    ) -> None:
        source = Source()
        group.waiting.add(target)
        group.sources.append(source)
        reflector = Reflector(
            self._kube,
            target,
            partial(self._on_put, source, target),
            partial(self._on_delete, source, target),
            partial(self._on_listed, target, group),
            on_missing=self._look.set,
            known=known,
            pace=self._pace,
        )
        task = tasks.create_task(reflector.run())
        self._followed[target] = _Followed(reflector, source, group, task)

    def _stop(self, target: Target) -> None:
        one = self._followed.pop(target)
        one.task.cancel()
        for cause, count in one.reflector.restarts.items():
            self._ended[target.api.kind, cause] += count
        if not one.source.released:  # the others of its group wait for it no longer
            self._on_listed(target, one.group)

    # --- what comes in --------------------------------------------------------------------------

    def _on_put(self, source: Source, target: Target, item: Item) -> None:
        kind = target.api.kind
        self.events[kind] += 1
        if kind in REFERENCED_KINDS:
            self._fetch.note((kind, item.namespace, item.name), item.resource_version)
            return
        self._retention.forget((kind, item.namespace, item.name))
        self._store.put(source, kind, item)
        self._look_at_namespace(kind, item.name)

    def _on_delete(self, source: Source, target: Target, namespace: str, name: str) -> None:
        """The API server no longer has an object: the object or its kind was deleted."""
        kind = target.api.kind
        if kind in REFERENCED_KINDS:
            self._on_gone(source, target, namespace, name)
            return
        self.events[kind] += 1
        key = (kind, namespace, name)
        self._retention.ask(target.api, source, key, self._store.created(source, key))

    def _on_gone(self, source: Source, target: Target, namespace: str, name: str) -> None:
        """Remove an object of any kind."""
        kind = target.api.kind
        self.events[kind] += 1
        if kind in REFERENCED_KINDS:
            self._fetch.drop((kind, namespace, name))
        else:
            self._on_deleted(source, (kind, namespace, name))

    def _on_deleted(self, source: Source, name: Name) -> None:
        self._store.delete(source, *name)
        self._look_at_namespace(name[0], name[2])

    def _look_at_namespace(self, kind: str, name: str) -> None:
        """A namespace of the scope has come or gone: what is to be followed may be something else."""
        if kind == "Namespace" and name in self._scope.namespaces:
            followed = any(target.namespace == name for target in self._followed)
            if followed == self.is_absent(name):
                self._look.set()

    def _on_listed(self, target: Target, group: _Group) -> None:
        group.waiting.discard(target)
        if target.api.kind == "Namespace" and any(map(self.is_absent, self._scope.namespaces)):
            self._look.set()
        if group.waiting:
            return
        self._store.release(*group.sources)
        if not self._synced.is_set():
            self._synced.set()
            log.info("synced: %s", ", ".join(f"{n} {k}" for k, n in sorted(self.counts.items())))
            self._report_change()

    def _on_fetched(self, kind: str, item: Item) -> None:
        self._store.put(self._fetched, kind, item)

    def _on_unfetched(self, reference: Reference) -> None:
        self._store.delete(self._fetched, *reference)

    def _report_change(self) -> None:
        if self._synced.is_set():
            self.on_change()


def _same(one: Target, other: Target) -> bool:
    """Tell whether two targets are one collection in different versions."""
    return one.namespace == other.namespace and one.api.kind == other.api.kind
