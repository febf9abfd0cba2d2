"""FileSource: the objects of watched files, folders and standard input.

In: paths. Out: a `Reading` (snapshot and problems) for every look; only files that changed are read,
only documents that changed are decoded. A file that cannot be read, is being written or is broken
keeps its last good content; an object that became invalid keeps its last good version; both are
problems. Must never raise for what is in a file, or give a snapshot from half of one.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgefast.problem import Problem, Source
from edgefast.providers.watch import Watch
from edgefast.resources.decode import DecodeCache, decode_documents
from edgefast.resources.limits import MAX_FILE_BYTES
from edgefast.resources.loaded import Loaded
from edgefast.resources.snapshot import Snapshot, check_duplicates
from edgefast.resources.text import DocumentMarks

__all__ = ["STANDARD_INPUT", "SUFFIXES", "FileSource", "Reading", "watch_files"]

SUFFIXES = (".yaml", ".yml", ".json")
STANDARD_INPUT = "<stdin>"
#: Files of one source; a folder with more is a mistake (/ or a home folder).
MAX_FILES = 100_000
#: A file changed this recently (seconds) may change again within the clock tick of its time stamp.
_FRESH = 0.1

_Key = tuple[str, str, str]


class Reading(msgspec.Struct, frozen=True):
    """One look at everything."""

    snapshot: Snapshot
    problems: tuple[Problem, ...]
    changed: bool  # since the look before
    usable: bool  # at least one file could be read, now or before
    files: int
    objects: int
    seconds: float  # that the look took


class _Stamp(NamedTuple):
    """When two looks give the same one, the content is the same."""

    modified: int
    changed: int
    size: int
    inode: int
    device: int


class _File(NamedTuple):
    stamp: _Stamp | None  # None: look again whatever the stamp says
    digest: bytes
    objects: tuple[tuple[_Key, Loaded], ...]
    problems: tuple[Problem, ...]
    read: bool  # its content was had at least once


class _Once(Exception):
    """Not a regular file: read once, never watched."""


class FileSource:
    """See the module's text. `read` blocks and is not reentrant: call it in a thread."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._files: dict[str, _File] = {}
        self._index: dict[_Key, Loaded] = {}
        self._snapshot = Snapshot()
        self._problems: tuple[Problem, ...] = ()
        self._cache = DecodeCache()
        self._first = True

    def read(self, busy: frozenset[str] = frozenset()) -> Reading:
        """Look at everything; files whose real path is in `busy` are taken as they were."""
        began = time.perf_counter()
        problems: list[Problem] = []
        files: dict[str, _File] = {}
        for name in self._expand(problems):
            if name not in files and (file := self._look(name, busy)) is not None:
                files[name] = file
        changed = self._first or _differ(self._files, files)
        self._first = False
        self._files = files
        if changed:
            self._reindex()
        found = (*problems, *(one for file in files.values() for one in file.problems))
        if changed or found != self._problems[: len(found)]:
            changed = True
            self._problems = (*found, *self._duplicates())
        return Reading(
            self._snapshot,
            self._problems,
            changed,
            any(file.read for file in files.values()),
            len(files),
            len(self._index),
            time.perf_counter() - began,
        )

    def folders(self) -> dict[Path, frozenset[str] | None]:
        """Say what to watch: folder -> names that matter, None for all."""
        wanted: dict[Path, frozenset[str] | None] = {}
        for path in self._paths:
            if str(path) == "-":
                continue
            if path.is_dir():
                wanted.update((Path(folder), None) for folder, _ in _walk(path))
                continue
            # The folder, not the file: editors replace files. A link's target may be elsewhere.
            for one in {path, path.resolve()}:
                names = wanted.get(one.parent, frozenset())
                wanted[one.parent] = None if names is None else names | {one.name}
        return wanted

    # --- which files ----------------------------------------------------------------------------

    def _expand(self, problems: list[Problem]) -> Iterator[str]:
        """Yield the names of all files: text, because a Path for each costs more than its stat."""
        count = 0
        for path in self._paths:
            if str(path) == "-" or not path.is_dir():
                yield STANDARD_INPUT if str(path) == "-" else str(path)
                continue
            empty = True
            try:
                for folder, names in _walk(path, onerror=_raise):
                    for name in names:
                        count += 1
                        if count > MAX_FILES:
                            message = f"more than {MAX_FILES} files"
                            problems.append(_problem(str(path), "TooMany", message))
                            return
                        empty = False
                        yield f"{folder}{os.sep}{name}"
            except OSError as error:
                problems.append(_unreadable(str(path), error))
                # What is under it stays as it was.
                prefix = str(path) + os.sep
                yield from (name for name in self._files if name.startswith(prefix))
                continue
            if empty:
                words = ", ".join(SUFFIXES)
                problems.append(_problem(str(path), "Required", f"no file ends in {words}"))

    # --- one file -------------------------------------------------------------------------------

    def _look(self, name: str, busy: frozenset[str]) -> _File | None:
        known = self._files.get(name)
        if known is not None and name == STANDARD_INPUT:
            return known
        if busy and os.path.realpath(name) in busy:
            return known
        try:
            if (
                known is not None
                and known.stamp is not None
                and known.stamp == _stamp(os.stat(name))
            ):
                return known
            data, stamp = _read(name, once=known is not None)
        except _Once:
            assert known is not None
            return known
        except OSError as error:
            problem = _unreadable(name, error)
            if known is None:
                return _File(None, b"", (), (problem,), False)
            return known._replace(stamp=None, digest=b"", problems=(problem,))
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if known is not None and digest == known.digest:
            return known._replace(stamp=stamp)
        return self._decode(name, data, known)._replace(stamp=stamp, digest=digest)

    def _decode(self, name: str, data: bytes, known: _File | None) -> _File:
        decoded = decode_documents(data, name, self._cache)
        problems = decoded.problems
        if known is not None and known.objects and any(_breaks_file(one) for one in problems):
            kept = _problem(name, "Invalid", "the file is not whole; its last good content stays")
            return known._replace(problems=(*problems, kept))
        before = dict(known.objects) if known is not None else {}
        objects = tuple(_settle(one, before) for one in decoded.objects)
        if known is not None and problems:
            present = {key for key, _ in objects}
            refused = {
                (one.object.kind, one.object.namespace, one.object.name)
                for one in problems
                if one.object is not None and one.severity == "error"
            }
            stale = tuple(
                (key, one) for key, one in known.objects if key in refused and key not in present
            )
            objects += stale
            problems += tuple(_stale_problem(one) for _, one in stale)
        return _File(None, b"", objects, problems, True)

    # --- all files ------------------------------------------------------------------------------

    def _reindex(self) -> None:
        index: dict[_Key, Loaded] = {}
        for file in self._files.values():
            for key, item in file.objects:
                index.setdefault(key, item)
        before = self._index
        changed = [item for key, item in index.items() if before.get(key) is not item]
        removed = [item.ref for key, item in before.items() if key not in index]
        self._snapshot = self._snapshot.replace(changed, removed)
        self._index = index

    def _duplicates(self) -> tuple[Problem, ...]:
        items = [item for file in self._files.values() for _, item in file.objects]
        return check_duplicates(items) if len(items) > len(self._index) else ()


async def watch_files(source: FileSource, watch: Watch) -> Reading:
    """Wait for a change and return what it came to."""
    while True:
        await watch.wait()
        reading = await asyncio.to_thread(source.read, watch.busy())
        changed = reading.changed
        # A folder may have been filled before it was watched, and so may folders in it.
        while watch.follow(await asyncio.to_thread(source.folders)):
            reading = await asyncio.to_thread(source.read, watch.busy())
            changed |= reading.changed
        if changed:
            return reading


def _differ(before: dict[str, _File], after: dict[str, _File]) -> bool:
    return before.keys() != after.keys() or any(
        before[name].objects is not file.objects or before[name].problems != file.problems
        for name, file in after.items()
    )


def _walk(
    path: Path, onerror: Callable[[OSError], object] | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Yield folders with their files, both sorted; hidden ones are left out.

    Hidden folders are where mounted ConfigMaps keep their versions; the visible links are read.
    """
    for folder, folders, names in os.walk(path, onerror=onerror):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield (
            folder,
            sorted(name for name in names if name.endswith(SUFFIXES) and not name.startswith(".")),
        )


def _raise(error: OSError) -> None:
    raise error


def _stamp(facts: os.stat_result) -> _Stamp:
    return _Stamp(facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino, facts.st_dev)


def _read(name: str, *, once: bool) -> tuple[bytes, _Stamp | None]:
    """Return content and stamp; with `once`, raises _Once for what is no regular file."""
    if name == STANDARD_INPUT:
        return sys.stdin.buffer.read(MAX_FILE_BYTES + 1), None
    # Never wait for a writer of a FIFO that a folder happens to hold.
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        facts = os.fstat(file.fileno())
        regular = stat.S_ISREG(facts.st_mode)
        if not regular:
            if once:
                raise _Once
            os.set_blocking(file.fileno(), True)
        data = file.read(MAX_FILE_BYTES + 1)
    fresh = time.time() - max(facts.st_mtime, facts.st_ctime) < _FRESH
    return data, None if fresh and regular else _stamp(facts)


def _settle(one: Loaded, before: dict[_Key, Loaded]) -> tuple[_Key, Loaded]:
    """Return the key, and the item of the last time when object and lines are the same."""
    meta = one.obj.metadata
    key = (type(one.obj).__name__, meta.namespace, meta.name)
    old = before.get(key)
    if old is None or old.obj is not one.obj:
        return key, one
    a, b = old.marks, one.marks
    if not isinstance(a, DocumentMarks) or not isinstance(b, DocumentMarks):
        return key, one
    same = (
        a.base == b.base and a.lines is b.lines and (a.document, a.prefix) == (b.document, b.prefix)
    )
    return key, old if same else one


def _breaks_file(problem: Problem) -> bool:
    """Tell a text that cannot be read on from an object that is wrong."""
    return problem.object is None and problem.severity == "error"


def _problem(name: str, reason: str, message: str) -> Problem:
    return Problem(None, "", reason, message, source=Source(name, 1))


def _unreadable(name: str, error: OSError) -> Problem:
    return _problem(name, "Invalid", f"cannot be read: {error.strerror or error}")


def _stale_problem(one: Loaded) -> Problem:
    return Problem(
        one.ref,
        "",
        "Invalid",
        "its last good version stays in use",
        source=Source(one.file, 1),
        severity="warning",
    )
