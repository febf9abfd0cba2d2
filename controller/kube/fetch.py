"""Fetch: reads the referenced Secrets, ConfigMaps and ClusterTrustBundles, and no others.

In: the existing names (from a watch of metadata) and the references.
Out: `on_item` with the present version of each referenced object, `on_gone` when it is deleted or
no longer referenced, `on_settled` when no read is pending. A version stays until the next one was
read.
Must never: read an object without a reference, or delay others forever for one that cannot be read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Set

import msgspec

from controller.kube.apis import APIS, Api
from controller.kube.client import Kube
from controller.kube.depth import decode_json
from controller.kube.errors import ApiError
from controller.kube.reflector import Item
from controller.kube.sync_deadline import Open, SyncDeadline
from controller.kube.throttle import TRIES, Backoff, RequestRate

__all__ = ["Fetch", "Reference"]

log = logging.getLogger(__name__)

#: (kind, namespace, name) of a Secret, ConfigMap or ClusterTrustBundle, which has namespace "".
Reference = tuple[str, str, str]


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Head(msgspec.Struct):
    metadata: _Meta


class _Wanted:
    """A reference and what has been had of it."""

    def __init__(self, pace: RequestRate) -> None:
        self.version = ""  # that was read; "": none
        self.first = False  # wanted since the controller began, and there since then
        self.answered = False  # read, or known that it cannot be
        self.queued = False
        self.busy = False
        self.again = False  # it changed while it was being read
        self.tries = 0
        self.backoff = Backoff(pace.backoff_first, pace.fetch_most)
        self.timer: asyncio.TimerHandle | None = None


class Fetch:
    """Reads only the Secrets, ConfigMaps and ClusterTrustBundles that are referenced.

    Single-threaded. `run` it as a task.
    """

    def __init__(
        self,
        kube: Kube,
        on_item: Callable[[str, Item], None],
        on_gone: Callable[[Reference], None],
        on_settled: Callable[[], None],
        pace: RequestRate,
        find_api: Callable[[str], Api] = lambda kind: APIS["v1", kind],
    ) -> None:
        """`find_api` says where objects of a kind are now."""
        self.problems: dict[Reference, str] = {}  # what cannot be read, and why
        self._kube = kube
        self._on_item = on_item
        self._on_gone = on_gone
        self._on_settled = on_settled
        self._pace = pace
        self._find_api = find_api
        self._there: dict[Reference, str] = {}  # what exists -> resource version
        self._wanted: dict[Reference, _Wanted] = {}
        self._open: set[Reference] = set()  # wanted, existing, and not answered yet
        self._queue: deque[Reference] = deque()
        self._work = asyncio.Semaphore(0)  # one for each entry of the queue
        self._begun = False
        self._patience = SyncDeadline(pace.patience, on_settled)

    async def run(self) -> None:
        """Read until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._pace.fetches):
                    group.create_task(self._work_on())
        finally:
            for one in self._wanted.values():
                _cancel(one.timer)
            self._patience.end()

    # --- what there is --------------------------------------------------------------------------

    def note(self, reference: Reference, version: str) -> None:
        """An object exists in this version."""
        self._there[reference] = version
        wanted = self._wanted.get(reference)
        if wanted is not None and wanted.version != version:
            wanted.again = wanted.busy
            self._enqueue(reference, wanted)

    def drop(self, reference: Reference) -> None:
        """An object is gone."""
        self._there.pop(reference, None)
        wanted = self._wanted.get(reference)
        if wanted is not None:
            self._reset(reference, wanted)

    # --- what is wanted -------------------------------------------------------------------------

    def want(self, references: Set[Reference]) -> bool:
        """Say what is referred to now; tell whether all of it that exists has been read.

        When some has not, `on_settled` is called later. What is referred to the first time is waited for without end, unless it is
        refused; what comes later with patience (sync_deadline.py).
        """
        for reference in self._wanted.keys() - references:
            self._reset(reference, self._wanted.pop(reference))
        for reference in references - self._wanted.keys():
            wanted = self._wanted[reference] = _Wanted(self._pace)
            if reference in self._there:
                wanted.first = not self._begun
                self._enqueue(reference, wanted)
        self._begun = True
        return self._patience.ask(self._list_open())

    def _list_open(self) -> Iterator[Open]:
        return ((one[1], self._wanted[one].first) for one in self._open)

    def _reset(self, reference: Reference, wanted: _Wanted) -> None:
        """Forget what was read of an object that is gone or not wanted any more."""
        _cancel(wanted.timer)
        self.problems.pop(reference, None)
        if wanted.version:
            self._on_gone(reference)
        wanted.version, wanted.answered, wanted.again, wanted.tries = "", False, False, 0
        wanted.first = False
        self._close(reference)

    def _enqueue(self, reference: Reference, wanted: _Wanted) -> None:
        if not wanted.answered and reference not in self._open:
            self._open.add(reference)
        if not wanted.queued and not wanted.busy:
            _cancel(wanted.timer)
            wanted.queued = True
            self._queue.append(reference)
            self._work.release()

    def _close(self, reference: Reference) -> None:
        if reference in self._open:
            self._open.discard(reference)
            if not self._patience.waits(self._list_open()):
                self._on_settled()

    # --- reading --------------------------------------------------------------------------------

    async def _work_on(self) -> None:
        while True:
            await self._work.acquire()
            reference = self._queue.popleft()
            wanted = self._wanted.get(reference)
            if wanted is None:
                continue
            wanted.queued = False
            if reference not in self._there:
                continue
            wanted.busy, wanted.again = True, False
            try:
                await self._read(reference, wanted)
            finally:
                wanted.busy = False
            if wanted.again and self._there.get(reference) not in (None, wanted.version):
                self._enqueue(reference, wanted)

    async def _read(self, reference: Reference, wanted: _Wanted) -> None:
        kind, namespace, name = reference
        try:
            data = await self._kube.read(
                self._find_api(kind).path(namespace, name), deadline=self._pace.fetch_deadline
            )
            version = decode_json(data, _Head).metadata.resource_version
        except (ApiError, msgspec.MsgspecError) as error:
            if self._wanted.get(reference) is wanted and reference in self._there:
                self._fail(reference, wanted, error)
            return
        if self._wanted.get(reference) is not wanted or reference not in self._there:
            return  # nobody wants it any more, or it went while it was read
        if self.problems.pop(reference, None) is not None:
            log.info("%s %s/%s: can be read again", *reference)
        wanted.version, wanted.answered, wanted.tries = version, True, 0
        wanted.backoff.reset()
        self._on_item(kind, Item(namespace, name, version, msgspec.Raw(data)))
        self._close(reference)

    def _fail(self, reference: Reference, wanted: _Wanted, error: Exception) -> None:
        """Try again later; tell whether the others have to wait for it until then."""
        if isinstance(error, ApiError) and error.not_found:
            # Deleted a moment ago: the watch will say so.
            wanted.answered = True
            self._close(reference)
            return
        message = str(error) if isinstance(error, ApiError) else "its JSON is not valid"
        if self.problems.get(reference) != message:
            self.problems[reference] = message
            log.warning("%s %s/%s: cannot be read: %s; retrying", *reference, message)
        wanted.tries += 1
        # No answer at all is no fact about this object; a refusal is one. Between two tries credentials are replaced.
        silent = isinstance(error, ApiError) and error.status in (0, 429)
        passing = isinstance(error, ApiError) and (error.passing or error.status == 401)
        if not silent and (not passing or wanted.tries >= TRIES):
            wanted.answered = True
            self._close(reference)
        loop = asyncio.get_running_loop()
        wanted.timer = loop.call_later(wanted.backoff.next(), self._retry, reference, wanted)

    def _retry(self, reference: Reference, wanted: _Wanted) -> None:
        if self._wanted.get(reference) is wanted and reference in self._there:
            self._enqueue(reference, wanted)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
