"""Pods: the pods that XBackends select by labels, with one watch for each namespace and label set.

In: an API server, the selections of the translation.
Out: `table()` for `Snapshot.pods`, and `on_change` when it differs. Only the first address of a Pod
and its readiness are kept, so other changes have no effect. A selection that is no longer wanted is
dropped at once. Pods that can no longer be read stay, with a problem. A selection that exists at
the controller's start delays all translation until the server answers or refuses, or until the
selection is gone, because proxies may serve it.
Must never: watch Pods that no XBackend selects, or treat unread Pods as missing at the start. A
refusal of the server or a later selection must not delay all translation forever.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from functools import partial

import msgspec

from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.depth import decode_json
from controller.kube.errors import ApiError
from controller.kube.reflector import Item, Key, Reflector, Target
from controller.kube.sync_deadline import Open, SyncDeadline
from controller.kube.throttle import TRIES, RequestRate
from edgefast.api.core.selected_pod import SelectedPod, SelectedPods
from edgefast.collections.sorted_map import EMPTY, SortedMap

__all__ = ["NOT_YET", "Pods", "Selection", "Table", "list_pods"]

log = logging.getLogger(__name__)

#: Namespace, and labels as an API server takes them.
Selection = tuple[str, str]
Table = SortedMap[Selection, SelectedPods]

_API = APIS["v1", "Pod"]
_PAGE = 500
_LISTS = 8  # selections that `list_pods` reads at once
#: Phases in which nothing of a Pod runs any more.
_OVER = ("Succeeded", "Failed")
#: Why Pods cannot be read of which the server has said nothing, neither.
NOT_YET = "no answer yet"


class _Meta(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct):
    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)


class _Followed:
    """The Pods of one selection, as long as it is wanted; `make` gives the reflector that tells it of them."""

    def __init__(
        self, selection: Selection, make: Callable[[_Followed], Reflector], first: bool
    ) -> None:
        self.selection = selection
        self.reflector = make(self)
        self.first = first  # wanted since the controller began: there may be proxies that serve it
        self.task: asyncio.Task[None] | None = None
        self.refused = ""  # why it cannot be read, as the server has said, or shown
        self.faults = 0  # of the server, since a watch said something
        self.pods: dict[Key, SelectedPod] = {}

    @property
    def answered(self) -> bool:
        """It has been read, or it is known that it cannot be."""
        return self.reflector.synced or bool(self.refused)

    @property
    def found(self) -> SelectedPods:
        """What is known of them."""
        unread = self.refused or ("" if self.reflector.synced else NOT_YET)
        return SelectedPods(pods=tuple(sorted(set(self.pods.values()))), unread=unread)


class Pods:
    """Watches the Pods that XBackends select; single-threaded. `run` it as a task."""

    def __init__(self, kube: Kube, on_change: Callable[[], None], pace: RequestRate) -> None:
        self._kube = kube
        self._on_change = on_change
        self._pace = pace
        self._followed: dict[Selection, _Followed] = {}
        self._dirty: set[Selection] = set()
        self._table: Table = EMPTY
        self._look = asyncio.Event()
        self._leaving: list[asyncio.Task[None]] = []
        self._ended: Counter[str] = Counter()  # restarts of reflectors that are no more, by cause
        self._begun = False
        self._patience = SyncDeadline(pace.patience, on_change)

    async def run(self) -> None:
        """Follow what is wanted until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._look.clear()
                    for task in self._leaving:
                        task.cancel()
                    self._leaving.clear()
                    for one in self._followed.values():
                        if one.task is None:
                            one.task = group.create_task(one.reflector.run())
                    await self._look.wait()
        finally:
            self._patience.end()

    def want(self, selections: Set[Selection]) -> bool:
        """Say what is selected now; tell whether all of it has been read.

        When some has not, `on_change` is called later. What is selected the first time is waited for without end, unless it is refused;
        what comes later with patience (sync_deadline.py). It is called at once when something is new and not waited for: the table
        says of it now that it has not been read.
        """
        for selection in self._followed.keys() - selections:
            self._drop(selection)
        new = selections - self._followed.keys()
        for selection in sorted(new):
            self._followed[selection] = _Followed(
                selection, self._make_reflector, first=not self._begun
            )
            self._dirty.add(selection)
            self._look.set()
        self._begun = True
        go = self._patience.ask(self._list_open())
        if go and new:
            self._on_change()
        return go

    @property
    def waits(self) -> bool:
        """Tell whether some of what is selected is waited for."""
        return self._patience.waits(self._list_open())

    def _list_open(self) -> Iterator[Open]:
        return (
            (one.selection[0], one.first) for one in self._followed.values() if not one.answered
        )

    def table(self) -> Table:
        """Return the Pods by selection; the identical table where nothing has changed."""
        if self._dirty:
            draft = self._table.edit()
            for selection in self._dirty:
                one = self._followed.get(selection)
                if one is not None:
                    draft[selection] = one.found
                else:
                    draft.pop(selection, None)
            self._dirty.clear()
            self._table = draft.done()
        return self._table

    @property
    def problems(self) -> Mapping[str, str]:
        """What cannot be read right now, and why."""
        return {
            f"{one.reflector.target} ({selection[1]})": one.reflector.problem
            for selection, one in self._followed.items()
            if one.reflector.problem
        }

    @property
    def restarts(self) -> Counter[str]:
        """How often watching began anew, by cause; it only grows."""
        total = Counter(self._ended)
        for one in self._followed.values():
            total.update(one.reflector.restarts)
        return total

    def _make_reflector(self, one: _Followed) -> Reflector:
        namespace, labels = one.selection
        return Reflector(
            self._kube,
            Target(_API, namespace, label_selector=labels),
            partial(self._on_put, one),
            partial(self._on_delete, one),
            partial(self._notify, one),
            on_read=partial(self._on_read, one),
            on_error=partial(self._on_error, one),
            pace=self._pace,
        )

    def _drop(self, selection: Selection) -> None:
        one = self._followed.pop(selection)
        self._ended.update(one.reflector.restarts)
        self._dirty.add(selection)
        if one.task is not None:
            self._leaving.append(one.task)
            self._look.set()

    def _on_put(self, one: _Followed, item: Item) -> None:
        self._set(one, (item.namespace, item.name), _read(item))

    def _on_delete(self, one: _Followed, namespace: str, name: str) -> None:
        self._set(one, (namespace, name), None)

    def _on_error(self, one: _Followed, error: ApiError) -> None:
        """Tell when it is an answer: a refusal is, no answer at all or too much load is not; a fault of the server is when it lasts."""
        if one.refused or error.status in (0, 429):
            return
        # Between two tries credentials are replaced and versions go on, too.
        passing = error.passing or error.expired or error.status == 401
        one.faults += passing
        if not passing or one.faults >= TRIES:
            one.refused = error.reason
            self._notify(one)

    def _on_read(self, one: _Followed, followed: bool) -> None:
        """Let refusals and faults go, once a watch says something: what is listed and not watched is out of date at once."""
        if not followed and one.reflector.synced:
            return
        one.faults = 0
        if one.refused:
            one.refused = ""
            self._notify(one)

    def _notify(self, one: _Followed) -> None:
        """There is something else to say of a selection."""
        if self._followed.get(one.selection) is one:
            self._dirty.add(one.selection)
            self._on_change()

    def _set(self, one: _Followed, key: Key, pod: SelectedPod | None) -> None:
        # The selection may be followed anew by another one, which would never hear that this Pod is gone.
        if self._followed.get(one.selection) is not one or one.pods.get(key) == pod:
            return
        if pod is not None:
            one.pods[key] = pod
        else:
            del one.pods[key]
        self._dirty.add(one.selection)
        if one.reflector.synced:  # of the first list all is told at once
            self._on_change()


def _read(item: Item) -> SelectedPod | None:
    """Return what is known of a Pod, None of one that serves nothing."""
    try:
        pod = decode_json(item.raw, _Pod)
    except msgspec.MsgspecError as error:
        log.warning("Pod %s/%s: cannot be read: %s", item.namespace, item.name, error)
        return None
    status = pod.status
    ready = any(one.type == "Ready" and one.status == "True" for one in status.conditions or ())
    if not ready or not status.pod_ip or status.phase in _OVER:
        return None
    return SelectedPod(address=status.pod_ip, leaving=pod.metadata.deletion_timestamp is not None)


async def list_pods(
    kube: Kube, selections: Set[Selection]
) -> tuple[Table, dict[Selection, ApiError]]:
    """Read once what `Pods` would follow, several at a time; and which cannot be read, and why."""
    draft = EMPTY.edit()
    refused: dict[Selection, ApiError] = {}
    turns = asyncio.Semaphore(_LISTS)

    async def read(selection: Selection) -> None:
        async with turns:
            try:
                found = await _list(kube, selection)
            except ApiError as error:
                refused[selection] = error
                draft[selection] = SelectedPods(unread=error.reason)
                return
        draft[selection] = SelectedPods(pods=tuple(sorted(found)))

    async with asyncio.TaskGroup() as group:
        for selection in sorted(selections):
            group.create_task(read(selection))
    return draft.done(), refused


async def _list(kube: Kube, selection: Selection) -> set[SelectedPod]:
    """Read all pages of a selection; ApiError when one cannot be had."""
    namespace, labels = selection
    found: set[SelectedPod] = set()
    cursor = ""
    while True:
        page = await kube.list(_API, namespace, limit=_PAGE, cursor=cursor, label_selector=labels)
        read = (_read(Item(namespace, "", "", raw)) for raw in page.items or ())
        found.update(pod for pod in read if pod is not None)
        cursor = page.cursor
        if not cursor:
            return found
