"""Pipeline: the main loop of the controller, from objects to tables, fleets and statuses.

In: change notifications from the watches, the configuration and the observed fleets.
Out: for each fleet its tables to the stream, manifests to the fleets, statuses to the status
writer; only differences are processed again. A change after a pause is processed at once, others
after 5 ms without changes, and none waits longer than 100 ms (architecture D8). A pause lasts as
long as the CPU time of the previous run. Single changes therefore do not wait, and many changes are
combined. A translation that selects unread Pods is held, and the next one continues from it.
Must never: publish or write anything before every kind is synced, or end because of an object's
content.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Set
from typing import Protocol, TypeVar

import msgspec

from edgefast.api.snapshot import Key, Snapshot
from edgefast.daemon.process import keep_all
from edgefast.diagnostics.problem import Problem
from edgefast.table import Shards, compile_fleet
from edgefast.table.shards import diff
from edgefast.translate.backend.pod_selectors import Selection
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from edgefast.translate.translation import Translation

__all__ = ["Outcome", "Pipeline", "Sinks", "Source", "Work"]

log = logging.getLogger(__name__)

_T = TypeVar("_T")

QUIET = 0.005  # seconds without a change before a run, when there was one just before
REST = 0.002  # seconds without a run, at least, after which a change is the first one
CEILING = 0.100  # seconds that a change waits at most
_FEW = 8  # changes, and
#: Seconds of CPU that the last run took, up to which a run is not worth a thread. By the clock a busy machine would send every run
#: to one, where it waits for the interpreter's lock again and again, and would keep it there.
_QUICK = 0.004
_GROWTH = (
    1.25  # of the number of objects, after which the garbage collector is told to leave them alone
)
_GROWTH_LEAST = 500
#: Tables that have most of the objects: all routes, of whatever kind, and what they lead to.
_MANY = (
    *(name for name in Snapshot.__struct_fields__ if name.endswith("_routes")),
    "services",
    "endpoint_slices",
)
_PAUSE = 0.5  # seconds after a run that failed, which is a bug; they double
_PAUSE_MAX = 30.0
_LOOK_AT_CLOCK = 600.0  # seconds between runs for the sake of certificates that expire


class Source(Protocol):
    """Where objects come from."""

    async def ready(self) -> None:
        """Return when every kind is synced and whatever is referred to has been read."""

    def snapshot(self) -> Snapshot:
        """Return the objects as they are now, sharing what did not change."""

    def select(self, selections: Set[Selection]) -> bool:
        """Say which Pods a translation selects; False: some have to be read first, and `ready` returns when they are, or others may be selected."""


class Sinks(Protocol):
    """Where the outcome goes."""

    def publish(self, outcome: Outcome) -> None:
        """Give proxies what differs from the last outcome; returns at once."""

    async def sent(self) -> None:
        """Return when what was published is on its way, or soon."""

    def tell(self) -> None:
        """Apply and write what differs, of the outcome that was published last."""


class Work(msgspec.Struct):
    """What was done since the start; tests count here, not seconds."""

    runs: int = 0
    routes: int = 0  # translated
    virtual_hosts: int = 0
    clusters: int = 0
    resources: int = 0  # that differ from the tables before
    bytes: int = 0  # of those resources


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Revisions grow by one; `shards` by fleet, the same object where nothing changed."""

    revision: int
    translation: Translation
    shards: Mapping[str, Shards]
    changed: frozenset[str]  # fleets whose tables differ from the run before, new ones included

    def fleet_of(self) -> dict[Key, str]:
        """Return the fleet of each Gateway that has one."""
        found: dict[Key, str] = {}
        for infra in self.translation.infra:
            for gateway in infra.gateways:
                namespace, _, name = gateway.partition("/")
                found[(namespace, name)] = infra.name
        return found

    def problems(self) -> tuple[Problem, ...]:
        """Return all problems, of translation and of compilation."""
        found = dict.fromkeys(self.translation.problems)
        for shards in self.shards.values():
            found.update(dict.fromkeys(shards.problems))
        return tuple(found)


class Pipeline:
    """Runs the controller's loop: objects in, tables, fleets and statuses out.

    `run` is a task of the process.
    """

    def __init__(
        self,
        source: Source,
        settings: Callable[[], Settings],
        sinks: Sinks,
        observe: Callable[[str, float], None] = lambda stage, seconds: None,
    ) -> None:
        """`settings` is asked before every run; `observe` gets the seconds of each stage."""
        self._source = source
        self._settings = settings
        self._sinks = sinks
        self._observe = observe
        self._dirty = asyncio.Event()
        self._events = 0
        self._last_event = 0.0
        self._ended = 0.0  # when the last run was over
        self._took = 1.0  # seconds of CPU for its tables; the first run goes to a thread
        self._spent = (
            0.0  # seconds of CPU of the process, from its objects until everybody was told
        )
        self._before: Outcome | None = None
        self._held: Translation | None = None  # newer than that of `_before`
        self._forgetful = False  # the run before failed: do without its memory
        self._frozen = -1  # objects when the garbage collector was last told to leave them alone
        self.work = Work()
        #: Told of each fleet whose table is another one: its name, the tables before (None: it is new) and now (None: it is gone).
        self.on_change: Callable[[str, Shards | None, Shards | None], None] = lambda *_: None

    @property
    def outcome(self) -> Outcome | None:
        """The last outcome, None before the first."""
        return self._before

    def mark(self) -> None:
        """Say that something changed."""
        self._events += 1
        self._last_event = time.monotonic()
        self._dirty.set()

    async def run(self) -> None:
        """Run whenever something changed, until cancelled."""
        await self._source.ready()
        self.mark()
        pause = _PAUSE
        while True:
            try:
                await self._wait()
                await self._source.ready()
                await self._run_once()
                pause = _PAUSE
            except Exception:
                log.exception(
                    "objects could not be processed; the previous tables and statuses stay in use"
                )
                self._observe("failed", 0.0)
                self._forgetful, self._held = True, None
                await asyncio.sleep(pause)
                pause = min(pause * 2, _PAUSE_MAX)
                self.mark()

    async def _wait(self) -> None:
        """Return when a run is due."""
        try:
            async with asyncio.timeout(_LOOK_AT_CLOCK):
                await self._dirty.wait()
        except TimeoutError:
            return
        began = time.monotonic()
        if began - self._ended >= min(CEILING, max(REST, self._spent)):
            return
        while (now := time.monotonic()) < began + CEILING:
            left = self._last_event + QUIET - now
            if left <= 0:
                return
            await asyncio.sleep(left)

    async def _run_once(self) -> None:
        self._dirty.clear()
        events, self._events = self._events, 0
        began, spent = time.perf_counter(), time.process_time()
        snapshot = self._source.snapshot()
        settings = self._settings()
        self._observe("snapshot", time.perf_counter() - began)
        before, threaded = self._before, events > _FEW or self._took > _QUICK
        known = None if self._forgetful else before
        memory = self._held or (known.translation if known else None)
        translation, self._took = await _time(
            lambda: self._translate(snapshot, settings, memory), threaded
        )
        self._count_work(translation)
        if not self._source.select(translation.selections):
            self._held = translation
            self._ended, self._spent = time.monotonic(), time.process_time() - spent
            return
        outcome, computed = await _time(lambda: self._compile(translation, known), threaded)
        if before is not None and known is None:
            outcome = _relate(outcome, before)
        self._forgetful, self._held = False, None
        self._before = outcome
        self._took += computed
        handed = time.perf_counter()
        try:
            self._sinks.publish(outcome)
            # Requests wait for tables, whose last message is their end; nobody waits for manifests, statuses and sums.
            await self._sinks.sent()
            self._sinks.tell()
        finally:
            self._count(outcome, before)
        ended = time.perf_counter()
        self._observe("hand_over", ended - handed)
        self._observe("run", ended - began)
        self._ended, self._spent = time.monotonic(), time.process_time() - spent
        self._freeze(snapshot)

    def _freeze(self, snapshot: Snapshot) -> None:
        """Keep what has come to stay from the garbage collector, now and then.

        Objects live as long as their Kubernetes twins: looking at all of them again and again would hold up the loop.
        What is garbage is collected first, since it would stay for ever.
        """
        count = sum(len(getattr(snapshot, name)) for name in _MANY)
        if self._frozen < 0 or count > self._frozen * _GROWTH + _GROWTH_LEAST:
            self._frozen = count
            keep_all()

    def _translate(
        self, snapshot: Snapshot, settings: Settings, previous: Translation | None
    ) -> Translation:
        began = time.perf_counter()
        translation = translate(snapshot, settings, previous)
        self._observe("translate", time.perf_counter() - began)
        return translation

    def _compile(self, translation: Translation, before: Outcome | None) -> Outcome:
        began = time.perf_counter()
        old_fleets = {one.name: one for one in before.translation.ir.fleets} if before else {}
        old_shards = before.shards if before else {}
        shards: dict[str, Shards] = {}
        for fleet in translation.ir.fleets:
            if old_fleets.get(fleet.name) is fleet:
                shards[fleet.name] = old_shards[fleet.name]
            else:
                shards[fleet.name] = compile_fleet(fleet, old_shards.get(fleet.name))
        self._observe("compile", time.perf_counter() - began)
        return Outcome(
            revision=before.revision + 1 if before else 1,
            translation=translation,
            shards=shards,
            changed=_changed(shards, old_shards),
        )

    def _count_work(self, translation: Translation) -> None:
        work, done = self.work, translation.work
        work.routes += done.routes
        work.virtual_hosts += done.virtual_hosts
        work.clusters += done.clusters

    def _count(self, outcome: Outcome, before: Outcome | None) -> None:
        work = self.work
        work.runs += 1
        for fleet in outcome.changed:
            old = before.shards.get(fleet) if before else None
            delta = diff(old, outcome.shards[fleet])
            self.on_change(fleet, old, outcome.shards[fleet])
            work.resources += len(delta.put)
            work.bytes += sum(len(one.data) for one in delta.put)
        for fleet, old in before.shards.items() if before else ():
            if fleet not in outcome.shards:
                self.on_change(fleet, old, None)


async def _time(compute: Callable[[], _T], threaded: bool) -> tuple[_T, float]:
    """Compute, in a thread or here, and tell the seconds of CPU that it took."""

    def timed() -> tuple[_T, float]:
        began = time.thread_time()
        made = compute()
        return made, time.thread_time() - began

    return await asyncio.to_thread(timed) if threaded else timed()


def _changed(new: Mapping[str, Shards], old: Mapping[str, Shards]) -> frozenset[str]:
    return frozenset(
        name
        for name, shards in new.items()
        if name not in old or old[name].version != shards.version
    )


def _relate(outcome: Outcome, before: Outcome) -> Outcome:
    """Return an outcome that was made without memory as the successor of the one before."""
    return msgspec.structs.replace(
        outcome,
        revision=before.revision + 1,
        # Nobody knows how far the run that failed got: all of it is handed over again.
        changed=frozenset(outcome.shards),
    )
