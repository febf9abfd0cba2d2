"""Applier: applies the desired objects of fleets to the cluster and deletes its own other objects.

In: `want` (manifests by fleet) and the Inventory.
Out: server-side apply with edgefast's field manager, deletes. A fleet is processed when its
manifests change, when another client changed or removed one of its objects, and when it is no
longer wanted. Fleets are processed in parallel, the objects of one in order. Refused requests are
reported, and retried later or after a change. Only the leader writes.
Source: architecture D8; Kubernetes API, server-side apply.
Must never: write or delete an object of another owner (managed_objects.py), or stop retrying.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from controller.fleets.drift import project
from controller.fleets.inventory import Held, Inventory
from controller.fleets.managed_objects import explain_foreign
from controller.fleets.object_ref import API_VERSION, WORKLOADS, ObjectRef, ref_of_manifest
from controller.fleets.placement import MANAGER, Manifest
from controller.fleets.replicas import release_replicas
from controller.fleets.workload_status import is_up
from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from controller.kube.throttle import Backoff

__all__ = ["Applier"]

log = logging.getLogger(__name__)

_AT_ONCE = 8  # fleets
_RETRY_FIRST = 0.5
_RETRY_MOST = 60.0
_PASSING = 3  # times in a row that a fault of the server may happen before anybody is told
_CALM = 120.0  # seconds without drift, after which the next one is repaired at once again
_REPAIRS = (
    3  # in a row that are made at once; somebody who never stops must not keep two of us busy
)
_DEADLINE = (
    5.0  # seconds for one write: it must end before another replica can lead (see Lease.remaining)
)
_UNSEEN = 10.0  # seconds until an object that was applied and never seen is applied again


class _Applied(msgspec.Struct):
    """What was applied last, and how the server wrote it."""

    manifest: Manifest
    projection: Any
    uid: str
    at: float
    seen: str  # resource version that was seen when it was applied, "" when there was none
    repairs: int = 0  # of drift, each within _CALM of the one before


class _ApplyProblem:
    """What goes wrong with one fleet."""

    def __init__(self) -> None:
        self.times = 0  # in a row
        self.text = ""
        self.backoff = Backoff(_RETRY_FIRST, _RETRY_MOST)
        self.due = 0.0


class _Deposed(Exception):
    """Another replica leads now."""


class Applier:
    """Applies the manifests of fleets, and deletes objects that are no longer wanted.

    `run` it as a task, beside `inventory.run()`.
    """

    def __init__(
        self,
        kube: Kube,
        holdings: Inventory,
        identity: str,
        leading: Callable[[], bool],
        on_problem: Callable[[str, str], None] = lambda fleet, text: None,
    ) -> None:
        """`identity`: Placement.identity. `on_problem`: fleet ("namespace/name") and text, "" when it is over."""
        self.applied = 0  # calls that applied something
        self.deleted = 0
        self.refused = 0  # calls that failed
        self._kube = kube
        self._inventory = holdings
        self._identity = identity
        self._leading = leading
        self._on_problem = on_problem
        self._given: Mapping[str, Sequence[Manifest]] = {}
        self._wanted: dict[str, dict[ObjectRef, Manifest]] | None = None
        self._kept: frozenset[str] = frozenset()
        self._done: dict[ObjectRef, _Applied] = {}
        self._last_problem: dict[str, _ApplyProblem] = {}
        self._dirty: set[str] = set()
        self._busy: set[str] = set()
        self._later: dict[str, float] = {}  # fleet -> time at which to look again
        self._led = False
        self._wake = asyncio.Event()
        holdings.on_object.append(self._on_object)
        holdings.on_synced.append(self._wake.set)

    # --- in -------------------------------------------------------------------------------------

    def want(self, fleets: Mapping[str, Sequence[Manifest]], keep: Collection[str] = ()) -> None:
        """Take all manifests there are to be, by fleet ("namespace/name"); what is not among them is deleted.

        Fleets in `keep` are left as they are: neither applied nor deleted. Cheap for sequences that are the very ones
        of the last call.
        """
        before = self._wanted or {}
        wanted = {}
        for fleet, manifests in fleets.items():
            if fleet in before and self._given.get(fleet) is manifests:
                wanted[fleet] = before[fleet]
                continue
            wanted[fleet] = _in_order(manifests)
            if wanted[fleet] != before.get(fleet):
                self._touch(fleet)
        for fleet in before.keys() - wanted.keys():
            self._touch(fleet)
        self._dirty |= self._kept - frozenset(keep)
        first, self._wanted = self._wanted is None, wanted
        self._given, self._kept = dict(fleets), frozenset(keep)
        if first:
            self._touch_all()
        self._wake.set()

    def wake(self) -> None:
        """Look again: who leads has changed."""
        self._wake.set()

    def failure(self, fleet: str) -> str:
        """Return what goes wrong with a fleet ("namespace/name"), "" for nothing."""
        problem = self._last_problem.get(fleet)
        return problem.text if problem else ""

    @property
    def settled(self) -> bool:
        """Tell whether everything wanted has been applied, and nothing else of ours is left."""
        rest = self._dirty or self._busy or self._last_problem
        return self._wanted is not None and self._inventory.synced and not rest

    def _on_object(self, ref: ObjectRef, there: bool) -> None:
        if not there:
            self._done.pop(ref, None)
        self._dirty.add(ref.fleet)
        self._wake.set()

    def _touch(self, fleet: str) -> None:
        """Attend to a fleet at once: what was refused may have been put right."""
        self._dirty.add(fleet)
        if (problem := self._last_problem.get(fleet)) is not None:
            problem.due = 0.0
            problem.backoff.reset()

    def _touch_all(self) -> None:
        for fleet in self._inventory.fleets() | (self._wanted or {}).keys():
            self._touch(fleet)

    # --- the loop -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Apply until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                wait = self._dispatch(group)
                try:
                    async with asyncio.timeout(wait):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    def _dispatch(self, group: asyncio.TaskGroup) -> float | None:
        """Begin with the fleets that are due; return the seconds until another one is, None for never."""
        if not self._leading():
            self._led = False
            return None
        if not self._led:
            # Whoever led before may have applied something else: look at everything.
            self._led = True
            self._done.clear()
            self._touch_all()
        if self._wanted is None or not self._inventory.synced:
            return None
        now = asyncio.get_running_loop().time()
        for fleet in [fleet for fleet, at in self._later.items() if at <= now]:
            del self._later[fleet]
            self._dirty.add(fleet)
        waits = [at - now for at in self._later.values()]
        for fleet in sorted(self._dirty - self._busy):
            problem = self._last_problem.get(fleet)
            if problem is not None and problem.due > now:
                waits.append(problem.due - now)
            elif len(self._busy) < _AT_ONCE:
                self._dirty.discard(fleet)
                self._busy.add(fleet)
                group.create_task(self._attend(fleet))
        return min(waits, default=None)

    async def _attend(self, fleet: str) -> None:
        """Apply what is wanted of a fleet, then delete what is not; a failure of one does not stop the others."""
        wanted = (self._wanted or {}).get(fleet, {})
        errors: dict[ObjectRef, ApiError] = {}
        try:
            for ref, manifest in wanted.items():
                await self._try(ref, partial(self._apply_one, ref, manifest, wanted), errors)
            if wanted or fleet not in self._kept:
                for ref in self._unwanted(fleet, wanted):
                    await self._try(ref, partial(self._delete_one, ref), errors)
        except _Deposed:
            self._dirty.add(fleet)
            return
        finally:
            self._busy.discard(fleet)
            self._wake.set()
        self._note(fleet, errors)

    async def _try(
        self, ref: ObjectRef, step: Callable[[], Awaitable[None]], errors: dict[ObjectRef, ApiError]
    ) -> None:
        if not self._leading():
            raise _Deposed
        if any(error.status == 0 for error in errors.values()):
            return  # the server does not answer: one deadline is enough
        try:
            await step()
        except ApiError as error:
            self.refused += 1
            errors[ref] = error

    def _note(self, fleet: str, errors: Mapping[ObjectRef, ApiError]) -> None:
        """Keep what went wrong; tell of it when it is new, or over."""
        before = self.failure(fleet)
        problem = self._last_problem.pop(fleet, None) or _ApplyProblem()
        message = ""
        if errors:
            problem.times += 1
            reported = problem.times >= _PASSING
            message = "; ".join(
                f"{ref}: {error}" for ref, error in errors.items() if reported or not error.passing
            )
            problem.text = message
            problem.due = asyncio.get_running_loop().time() + problem.backoff.next()
            self._last_problem[fleet] = problem
            self._dirty.add(fleet)
        if message != before:
            if message:
                log.warning("fleet %s cannot be applied; retrying: %s", fleet, message)
            else:
                log.info("fleet %s is applied again", fleet)
            self._on_problem(fleet, message)

    # --- one object -----------------------------------------------------------------------------

    async def _apply_one(
        self, ref: ObjectRef, manifest: Manifest, wanted: Collection[ObjectRef]
    ) -> None:
        held = self._inventory.get(ref)
        manifest = self._bind(ref, manifest)
        if not self._needs_apply(ref, manifest, held):
            return
        if held is None or not held.ours:
            await self._check_foreign(ref)
        if ref.kind == "Deployment" and "replicas" not in manifest["spec"]:
            if any(one.kind == "HorizontalPodAutoscaler" for one in wanted):
                await release_replicas(self._kube, _path_of(ref), manifest, _DEADLINE)
                if not self._leading():
                    raise _Deposed
        live = await self._kube.apply(manifest, MANAGER, force=True, deadline=_DEADLINE)
        self.applied += 1
        now = asyncio.get_running_loop().time()
        before = self._done.get(ref)
        again = before is not None and before.manifest == manifest and now - before.at < _CALM
        repairs = before.repairs + 1 if before is not None and again else 0
        if repairs == _REPAIRS:
            log.warning("%s is repeatedly changed by another client; edgefast restores it", ref)
        seen = _version(held) if held is not None else ""
        self._done[ref] = _Applied(
            manifest, project(live, manifest), live["metadata"]["uid"], now, seen, repairs
        )
        if self._inventory.get(ref) is None:
            self._later[ref.fleet] = now + _UNSEEN

    def _bind(self, ref: ObjectRef, manifest: Manifest) -> Manifest:
        """Return the manifest of a Secret as one that the garbage collector removes with the fleet's ServiceAccount.

        In Gateway Namespace mode no Secret may be deleted, and those of fleets of the mode before would stay: keys that
        nobody looks after. An owner is named by its uid, which only the server knows.
        """
        if ref.kind != "Secret":
            return manifest
        namespace, _, name = ref.fleet.partition("/")
        account = ObjectRef("ServiceAccount", namespace, name)
        held, done = self._inventory.get(account), self._done.get(account)
        uid = held.uid if held is not None else done.uid if done is not None else ""
        if not uid:
            return manifest  # it could not be made; with it comes another look
        owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": name, "uid": uid}
        return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}}

    def _needs_apply(self, ref: ObjectRef, manifest: Manifest, held: Held | None) -> bool:
        done = self._done.get(ref)
        if done is None or done.manifest != manifest:
            return True
        now = asyncio.get_running_loop().time()
        if held is None:
            # Its first event is on its way, most likely.
            return now - done.at >= _UNSEEN
        if _version(held) == done.seen or project(held.live, manifest) == done.projection:
            return False  # what was applied is on its way, or there
        due = done.at + (0 if done.repairs < _REPAIRS else min(2 ** (done.repairs - _REPAIRS), 60))
        if due > now:
            self._later[ref.fleet] = min(due, self._later.get(ref.fleet, due))
        return due <= now

    async def _check_foreign(self, ref: ObjectRef) -> None:
        """Raise when the name is taken by something that is not ours; what merely lost its label is."""
        live = await self._kube.read_metadata(_path_of(ref))
        message = "" if live is None else explain_foreign(live, self._identity)
        if message:
            raise ApiError(409, "Foreign", f"{message}; delete it so that the fleet can be created")

    # --- what is wanted no more -----------------------------------------------------------------

    def _unwanted(self, fleet: str, wanted: Collection[ObjectRef]) -> list[ObjectRef]:
        """Return our objects of a fleet that are not wanted: workloads first, what their pods use last."""
        return sorted(
            (
                ref
                for ref, held in self._inventory.objects_of(fleet).items()
                if held.ours and ref not in wanted and not self._is_needed(ref, wanted)
            ),
            key=lambda ref: (ref.kind not in WORKLOADS, ref.order),
        )

    def _is_needed(self, ref: ObjectRef, wanted: Collection[ObjectRef]) -> bool:
        """Tell whether a workload still serves in the place of its successor, of the other kind."""
        if ref.kind not in WORKLOADS:
            return False
        for one in wanted:
            if one.kind in WORKLOADS:
                held = self._inventory.get(one)
                return held is None or not is_up(held.live)
        return False

    async def _delete_one(self, ref: ObjectRef) -> None:
        held = self._inventory.get(ref)
        if held is None or "deletionTimestamp" in held.live["metadata"]:
            return
        # Only the very object that was looked at: another one of this name may be somebody else's.
        if await self._kube.delete(_path_of(ref), uid=held.uid, deadline=_DEADLINE):
            self.deleted += 1


def _in_order(manifests: Sequence[Manifest]) -> dict[ObjectRef, Manifest]:
    pairs = [(ref_of_manifest(one), one) for one in manifests]
    return dict(sorted(pairs, key=lambda pair: pair[0].order))


def _version(held: Held) -> str:
    return str(held.live["metadata"]["resourceVersion"])


def _path_of(ref: ObjectRef) -> str:
    return APIS[API_VERSION[ref.kind], ref.kind].path(ref.namespace, ref.name)
