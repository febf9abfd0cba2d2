"""Standalone: the pipeline of `edgefast run`, from files to served traffic.

In: a FileSource, translation settings, an agent.
Out: an `Outcome` for every table, passed to the caller's report. Each stage gets its previous
result, so a small change costs little: read (changed files) -> translate (changed routes) ->
compile (changed hosts) -> publish (difference). If a file cannot be read completely at start, the
last valid table is served until it can. Without such a table, a file that cannot be parsed ends the
start.
Must never: stop the service because of a file's content or a file system error; the previous table
stays.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Iterable

import msgspec

from edgefast import ir
from edgefast.api.snapshot import Snapshot
from edgefast.daemon.process import keep_all
from edgefast.diagnostics.problem import Problem
from edgefast.providers.files import SUFFIXES, FileSource, Reading, watch_files
from edgefast.providers.publish_gate import HOLD, START_AT_MOST, Written
from edgefast.providers.watch import Watch
from edgefast.providers.writers import find_writers
from edgefast.proxy.agent.agent import Agent, Published
from edgefast.proxy.pipelines.object_status import list_objects
from edgefast.proxy.process.sd_notify import notify
from edgefast.proxy.tables.last_good import LastGoodError
from edgefast.proxy.tls.last_good_pairs import LastGoodPairs
from edgefast.table import Shards, compile_fleet
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from edgefast.translate.translation import Translation

__all__ = ["FilesPending", "FilesUnparsed", "NothingServed", "Outcome", "Standalone"]

log = logging.getLogger(__name__)

#: Seconds before the next try after one that failed for no reason that is known; they double.
_PAUSE = 1.0
_PAUSE_MAX = 60.0
#: A start that waits longer than this (seconds) for files logs it.
_LONG = 1.5
#: Files that the message about incomplete files names at most.
_SHOWN = 8


#: Adds objects to a snapshot of files; returns problems with it.
Complete = Callable[[Snapshot], tuple[Snapshot, tuple[Problem, ...]]]


class NothingServed(Exception):
    """At start, no listener at all could be served."""


class FilesPending(Exception):
    """At start, a file was being written for START_AT_MOST seconds."""


class FilesUnparsed(Exception):
    """At start, a file cannot be parsed: it may contain policies for the other files."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one look at the files; times in milliseconds."""

    fleet: ir.Fleet | None  # None: the table is the last good one from disk
    shards: Shards | None  # what it is compiled to
    problems: tuple[Problem, ...]
    published: Published
    files: int
    objects: int
    took: float
    closed: frozenset[str] = frozenset()  # listeners of the fleet that only keep their place


class Standalone:
    """Serves files: reads, translates, compiles and publishes them.

    `run` is a part of the agent's life.
    """

    def __init__(
        self,
        agent: Agent,
        source: FileSource,
        settings: Callable[[], Settings],
        report: Callable[[Outcome], None],
        problems: Iterable[Problem] = (),
        complete: Complete | None = None,
    ) -> None:
        """`problems`: those found before, in the configuration file; they stay. `complete`: adds backends to the objects of the files."""
        self._agent = agent
        self._source = source
        self._settings = settings
        self._report = report
        self._before = tuple(problems)
        self._complete = complete
        self._pairs = LastGoodPairs()
        self._translation: Translation | None = None
        self._shards: Shards | None = None
        self._kept: Shards | None = None  # the last good table, while it is served
        self._serving = False  # the start is over, and something could be served

    async def run(self) -> None:
        """Serve the objects of the files until cancelled; raises NothingServed, FilesPending and FilesUnparsed at start."""
        watch = Watch(SUFFIXES)
        self._agent.drain.on_hangup = watch.look_now
        try:
            watch.follow(await asyncio.to_thread(self._source.folders))
            await self._start(watch)
            notify("READY=1")
            keep_all()
            pause = _PAUSE
            while True:
                try:
                    self._report(await self._take(await watch_files(self._source, watch)))
                    pause = _PAUSE
                except Exception:
                    log.exception("the files could not be applied; the previous table stays in use")
                    self._source.report_again()
                    watch.look_now()
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _PAUSE_MAX)
        finally:
            watch.close()

    async def _start(self, watch: Watch) -> None:
        began = time.perf_counter()
        reading = await asyncio.to_thread(self._source.read)
        limit = HOLD if self._agent.last_good is not None else START_AT_MOST
        reading = await self._wait_for_writers(reading, watch, limit)
        if not reading.usable:
            self._kept = await self._load_last_good()
        if self._kept is None:
            reading = await self._wait_for_writers(reading, watch, START_AT_MOST - limit)
            if (held := self._source.held) is not None:
                raise FilesPending(await asyncio.to_thread(_explain_hold, held))
            if self._source.unparsed:
                raise FilesUnparsed(_explain_unparsed(self._source.unparsed))
        outcome = await self._take(reading, began)
        self._report(outcome)
        if not self._agent.serving and self._agent.drain.phase == "serving":
            raise NothingServed(_explain_nothing(outcome))
        self._serving = True
        if self._agent.on_serving is not None:
            await self._agent.on_serving()
        self._approve(reading)

    async def _wait_for_writers(self, reading: Reading, watch: Watch, seconds: float) -> Reading:
        """Return a reading of complete files, or the last one after `seconds`: missing files may contain policies for others."""
        began, reported = time.monotonic(), False
        while self._source.held is not None and time.monotonic() - began < seconds:
            if not reported and time.monotonic() - began > _LONG:
                why = "; ".join(one.line() for one in reading.problems)
                log.warning("start: waiting for files: %s", why)
                reported = True
            await watch.wait(self._source.due)
            reading = await asyncio.to_thread(self._source.read, watch.events())
        return reading

    async def _take(self, reading: Reading, began: float | None = None) -> Outcome:
        """Bring one reading into service, or the last good table in its place."""
        began = time.perf_counter() - reading.seconds if began is None else began
        if self._kept is not None and not reading.usable:
            published = await self._agent.publish(self._kept)
            problems = self._collect(reading, (), published)
            return _outcome((None, None), problems, published, reading, began)
        self._kept = None
        translation, shards, held_back = await asyncio.to_thread(self._compile, reading)
        published = await self._agent.publish(shards)
        self._approve(reading)
        problems = self._collect(
            reading, (*held_back, *translation.problems, *shards.problems), published
        )
        fleet = next(iter(translation.ir.fleets), None)
        self._agent.objects = functools.partial(list_objects, translation)
        outcome = _outcome((fleet, shards), problems, published, reading, began)
        return msgspec.structs.replace(outcome, closed=translation.statuses.closed_listeners())

    def _compile(self, reading: Reading) -> tuple[Translation, Shards, tuple[Problem, ...]]:
        snapshot, held_back = self._pairs.keep(reading.snapshot)
        if self._complete is not None:
            snapshot, unused = self._complete(snapshot)
            held_back = (*held_back, *unused)
        translation = translate(snapshot, self._settings(), self._translation)
        fleet = next(iter(translation.ir.fleets), ir.Fleet(name="standalone"))
        shards = compile_fleet(fleet, self._shards)
        self._translation, self._shards = translation, shards
        return translation, shards, held_back

    def _approve(self, reading: Reading) -> None:
        """Let the table be kept for the next start, unless it is one of half the files."""
        if self._serving and reading.usable and self._shards is not None:
            self._agent.keeper.approve(self._shards.version)

    def _collect(
        self, reading: Reading, translated: Iterable[Problem], published: Published
    ) -> tuple[Problem, ...]:
        """Join all problems, each once; the agent shows those of the files too."""
        found = dict.fromkeys((*self._before, *reading.problems, *translated))
        self._agent.source_problems = tuple(found)
        return tuple({**found, **dict.fromkeys(published.problems)})

    async def _load_last_good(self) -> Shards | None:
        kept = self._agent.last_good
        if kept is None:
            return None
        try:
            shards = await asyncio.to_thread(kept.load)
        except LastGoodError as error:
            log.warning("not all files can be read and no last good table exists: %s", error)
            return None
        age = time.time() - (kept.saved_at or time.time())
        log.error(
            "NOT ALL FILES CAN BE READ: serving the last good table from %s, written %.0f s "
            "ago, until they can; changes of files are not applied before that",
            kept.path,
            age,
        )
        return shards


def _outcome(
    served: tuple[ir.Fleet | None, Shards | None],
    problems: tuple[Problem, ...],
    published: Published,
    reading: Reading,
    began: float,
) -> Outcome:
    return Outcome(
        fleet=served[0],
        shards=served[1],
        problems=problems,
        published=published,
        files=reading.files,
        objects=reading.objects,
        took=(time.perf_counter() - began) * 1000,
    )


def _explain_hold(held: Iterable[Written]) -> str:
    """Return which files are not complete, and which processes write them."""
    found = []
    for one in held:
        writers = ", ".join(find_writers(one.path)) or "not known"
        found.append(f"{one.name}: {one.why}; writer: {writers}")
    which = _list_some(found) or "links or folders change during every read"
    return f"files are not complete after {START_AT_MOST:g} s: {which}"


def _explain_unparsed(found: Iterable[Problem]) -> str:
    """Return which files cannot be parsed, with the line of each mistake, and what to do."""
    which = _list_some([one.line() for one in found])
    return f"files cannot be parsed: {which}; nothing is served; correct or remove them"


def _explain_nothing(outcome: Outcome) -> str:
    """Return why nothing is served, and what to do."""
    if outcome.fleet is not None and not outcome.fleet.listeners:
        return (
            "no Gateway in the files has a served listener; edgefast stops; "
            "correct the problems above, or add a Gateway"
        )
    return (
        "no listener can be opened, or no worker runs; edgefast stops; correct the problems above"
    )


def _list_some(found: list[str]) -> str:
    more = f" | and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return " | ".join(found[:_SHOWN]) + more
