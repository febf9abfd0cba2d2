"""Reflector: keeps a local copy of one collection equal to the server's, across all errors.

In: a Target.
Out: `on_put` for every new or changed object, `on_delete` for every removed one, and `on_synced`
after all objects of the first list. Lists come in pages. Watches continue from the last bookmark.
After a 410, the list is read again and compared, so that no object is put or deleted twice. Errors
are counted by cause, described in `problem`, and retried forever with jitter.
Source: Kubernetes API concepts, "Efficient detection of changes".
Must never: drop an object because the server is not reachable, or report a collection as synced
that it has not read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable

import msgspec

from controller.kube.apis import Api
from controller.kube.client import Kube
from controller.kube.depth import decode_json
from controller.kube.errors import SILENT, ApiError, error_from
from controller.kube.throttle import Backoff, RequestRate

__all__ = ["Item", "Key", "Reflector", "Target"]

log = logging.getLogger(__name__)

#: (namespace, name); the namespace of cluster-scoped objects is "".
Key = tuple[str, str]


class Target(msgspec.Struct, frozen=True):
    """What is reflected; `namespace` None is all of them, `metadata_only` leaves spec, data and status out."""

    api: Api
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.api.plural}.{self.api.api_version}{where}"


class Item(msgspec.Struct, frozen=True):
    """An object as it came; `raw` belongs to a whole page: decode it at once, or copy it with bytes()."""

    namespace: str
    name: str
    resource_version: str
    raw: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Head(msgspec.Struct):
    metadata: _Meta


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Reflector:
    """Lists and watches one collection of the API server.

    `run` it as a task. Callbacks run inside it and must not block.
    """

    def __init__(
        self,
        kube: Kube,
        target: Target,
        on_put: Callable[[Item], None],
        on_delete: Callable[[str, str], None],
        on_synced: Callable[[], None] = lambda: None,
        *,
        on_missing: Callable[[], None] = lambda: None,
        on_read: Callable[[bool], None] = lambda followed: None,
        on_error: Callable[[ApiError], None] = lambda error: None,
        known: dict[Key, str] | None = None,
        pace: RequestRate | None = None,
    ) -> None:
        self.target = target
        #: Resource version of every object that has been put and not deleted.
        self.known: dict[Key, str] = {} if known is None else known
        self.synced = False
        self.restarts: Counter[str] = Counter()  # of watches and lists, by cause
        self.problem = ""  # what goes wrong now, in words; "": nothing
        self._kube = kube
        self._on_put = on_put
        self._on_delete = on_delete
        self._on_synced = on_synced
        self._on_missing = on_missing
        self._on_read = on_read  # told, too, whether it was a watch that said something
        self._on_error = on_error
        self._pace = pace or RequestRate()
        self._backoff = Backoff(self._pace.backoff_first, self._pace.backoff_most)
        self._position = ""  # the resource version to watch from; "": list first
        self._failures = 0  # watches in a row that gave nothing

    async def run(self) -> None:
        """Reflect until cancelled."""
        while True:
            try:
                if not self._position:
                    await self._list()
                cause = await self._watch()
            except ApiError as error:
                cause = self._take(error)
                self._on_error(error)
            self.restarts[cause] += 1
            if cause != "closed":
                await asyncio.sleep(self._backoff.next())

    # --- listing --------------------------------------------------------------------------------

    async def _list(self) -> None:
        """Read all pages, put what differs, delete what is no more."""
        try:
            found, version = await self._read_pages(self._pace.page)
        except ApiError as error:
            if not error.expired:
                raise
            # The pages took longer than the server keeps a version: all at once, as client-go does.
            found, version = await self._read_pages(0)
        for key in [key for key in self.known if key not in found]:
            self._forget(key)
        self._position = version
        self._settle()
        self._recover(followed=False)
        if not self.synced:
            self.synced = True
            self._on_synced()

    async def _read_pages(self, limit: int) -> tuple[set[Key], str]:
        found: set[Key] = set()
        cursor = ""
        target = self.target
        while True:
            page = await self._kube.list(
                target.api,
                target.namespace,
                limit=limit,
                cursor=cursor,
                label_selector=target.label_selector,
                field_selector=target.field_selector,
                metadata_only=target.metadata_only,
                deadline=self._pace.page_deadline,
            )
            for raw in page.items or ():
                if (key := self._put(raw)) is not None:
                    found.add(key)
            cursor = page.cursor
            if not cursor:
                return found, page.metadata.resource_version

    # --- watching -------------------------------------------------------------------------------

    async def _watch(self) -> str:
        """Follow events until the watch ends; return why."""
        began = time.monotonic()
        pace, target = self._pace, self.target
        events = self._kube.watch(
            target.api,
            target.namespace,
            resource_version=self._position,
            seconds=random.uniform(pace.watch_least, pace.watch_most),
            silence=pace.silence,
            label_selector=target.label_selector,
            field_selector=target.field_selector,
            metadata_only=target.metadata_only,
        )
        self._failures += 1
        try:
            # Closed here and now, not by the garbage collector: the connection goes with it.
            async with contextlib.aclosing(events):
                async for lines in events:
                    self._recover(followed=True)
                    for line in lines:
                        self._take_event(line)
                        self._settle()
        finally:
            if time.monotonic() - began > pace.healthy_after:
                self._settle()
        if self._failures < pace.failures:
            # An end in order; but a server that ends them at once is not asked without pause.
            return "closed" if time.monotonic() - began > 1.0 else "short"
        self._position = ""
        return "useless"

    def _take_event(self, line: bytes) -> None:
        try:
            event = decode_json(line, _Event)
        except msgspec.MsgspecError as error:
            self._position = ""  # whatever it was, it is in the list
            raise ApiError(0, "Malformed", f"an invalid watch event: {error}") from None
        match event.type:
            case "ADDED" | "MODIFIED":
                self._put(event.object)
            case "DELETED":
                meta = self._meta(event.object)
                if meta is not None:
                    self._position = meta.resource_version or self._position
                    self._forget((meta.namespace, meta.name))
            case "BOOKMARK":
                meta = self._meta(event.object)
                if meta is not None and meta.resource_version:
                    self._position = meta.resource_version
                return
            case "ERROR":
                raise error_from(0, event.object)
            case _:
                return  # newer than we are

    # --- objects --------------------------------------------------------------------------------

    def _meta(self, raw: msgspec.Raw) -> _Meta | None:
        try:
            return decode_json(raw, _Head).metadata
        except msgspec.MsgspecError as error:
            self.restarts["malformed"] += 1
            log.warning("%s: an object with invalid metadata: %s", self.target, error)
            return None

    def _put(self, raw: msgspec.Raw) -> Key | None:
        meta = self._meta(raw)
        if meta is None:
            return None
        # The names of an object are kept in many places: as one text each.
        key = (sys.intern(meta.namespace), sys.intern(meta.name))
        if self._position:  # inside a watch; versions of listed objects are older than their list
            self._position = meta.resource_version
        if self.known.get(key) != meta.resource_version:
            self.known[key] = meta.resource_version
            self._on_put(Item(*key, meta.resource_version, raw))
        return key

    def _forget(self, key: Key) -> None:
        if self.known.pop(key, None) is not None:
            self._on_delete(*key)

    # --- trouble --------------------------------------------------------------------------------

    def _take(self, error: ApiError) -> str:
        """Note what went wrong and where to go on; return its cause in one word."""
        cause = _cause_of(error)
        if cause == "expired":
            # Normal after a long silence: said only if the list fails as well.
            self._position = ""
            return cause
        if cause == "silent":
            # Some API servers send no bookmarks for a kind in which nothing happens: asking again tells.
            return cause
        if cause == "missing":
            self._position = ""
            self._on_missing()
        if self._failures >= self._pace.failures:
            # The position may be one that the server does not know (its store was restored).
            self._position = ""
            self._failures = 0
        message = str(error)
        if message != self.problem:
            self.problem = message
            log.warning("%s: %s; retrying", self.target, message)
        return cause

    def _settle(self) -> None:
        """Something came of it: the next failure is a first one."""
        self._failures = 0
        self._backoff.reset()

    def _recover(self, *, followed: bool) -> None:
        self._on_read(followed)
        if self.problem:
            log.info("%s: watched again", self.target)
            self.problem = ""


def _cause_of(error: ApiError) -> str:
    if error.expired:
        return "expired"
    if error.forbidden:
        return "forbidden"
    if error.not_found:
        return "missing"
    if error.reason == SILENT:
        return "silent"
    if error.status == 0:
        return "unreachable"
    return "throttled" if error.status == 429 else "error"
