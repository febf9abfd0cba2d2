"""FileSource: the objects of watched files, folders and standard input.

In: paths. Out: a `Reading` (snapshot and problems) for every look; only files that changed are read,
only documents that changed are decoded. A file that cannot be read, is being written, is broken or
became empty keeps its last good content, and so does all that is under a folder that cannot be had;
an object that became invalid keeps its last good version, and the place of a route without one stays
closed; all are problems. Must never raise for what is in a file or what the file system says, or give
a snapshot from half of a file.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from edgefast.problem import Problem, Source
from edgefast.providers.folders import SUFFIXES, find_folders, walk_files
from edgefast.providers.names import index_files, key_of
from edgefast.providers.stale import Kept, Key, keep_stale
from edgefast.providers.watch import Watch
from edgefast.reasons.word import Word
from edgefast.resources.decode.annotatedguard import find_annotated_guard
from edgefast.resources.decode.decode import DecodeCache, decode_documents
from edgefast.resources.decode.document import DEFAULT_NAMESPACE
from edgefast.resources.decode.newerpolicy import note_newer_files
from edgefast.resources.decode.text import DocumentMarks
from edgefast.resources.foreign.foreignpolicy import ForeignPolicy
from edgefast.resources.limits import MAX_FILE_BYTES
from edgefast.resources.loaded import Loaded, Refused
from edgefast.resources.snapshot import Snapshot, check_duplicates

__all__ = ["STANDARD_INPUT", "SUFFIXES", "FileSource", "Reading", "watch_files"]

STANDARD_INPUT = "<stdin>"
#: Files of one source; a folder with more is a mistake (/ or a home folder).
MAX_FILES = 100_000
#: A file changed this recently (seconds) may change again within the clock tick of its time stamp.
_FRESH = 0.1


class Reading(msgspec.Struct, frozen=True):
    """One look at everything."""

    snapshot: Snapshot
    problems: tuple[Problem, ...]
    changed: bool  # since the look before
    # Whether a table made of it may take the place of the one before: there is an object, and all
    # that was found at the first look has been had whole since, or is gone.
    usable: bool
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
    objects: tuple[tuple[Key, Loaded], ...]
    problems: tuple[Problem, ...]
    read: bool  # its content was had whole at least once
    kept: Kept = Kept()  # the last of `objects`, which are not in it any more in sound form
    refused: tuple[Refused, ...] = ()
    policies: tuple[ForeignPolicy, ...] = ()
    guarded: tuple[ForeignPolicy, ...] = ()  # objects with annotations that decide access

    @property
    def sound(self) -> tuple[tuple[Key, Loaded], ...]:
        stale = len(self.kept.objects)
        return self.objects[:-stale] if stale else self.objects

    @property
    def closed(self) -> tuple[tuple[Key, Loaded], ...]:
        """What keeps places of objects with mistakes closed; nothing of a kind while one may be a kept object under another name."""
        if not self.refused:  # nearly always
            return ()
        found = tuple((key_of(one.closed), one.closed) for one in self.refused if one.closed)
        named = {key for key, _ in found}
        hidden = {key[0] for key, _ in self.kept.objects if key not in named}
        return tuple((key, one) for key, one in found if key[0] not in hidden)


class _Once(Exception):
    """Not a regular file: read once, never watched."""


class FileSource:
    """See the module's text. `read` blocks and is not reentrant: call it in a thread."""

    def __init__(self, paths: Sequence[Path], namespace: str = DEFAULT_NAMESPACE) -> None:
        """`namespace` is of objects that name none."""
        self._paths = tuple(paths)
        self._namespace = namespace
        self._files: dict[str, _File] = {}
        self._index: dict[Key, Loaded] = {}
        self._doubled = False  # two sound objects have one name
        self._count = 0  # of those in use, closed ones not among them
        self._snapshot = Snapshot()
        self._found: tuple[Problem, ...] = ()
        self._problems: tuple[Problem, ...] = ()
        self._cache = DecodeCache()
        self._first = True
        self._undelivered = False
        self._owed: set[str] = set()  # found at the first look, never had whole

    def read(self, busy: frozenset[str] = frozenset()) -> Reading:
        """Look at everything; files whose real path is in `busy` are taken as they were."""
        began = time.perf_counter()
        problems: list[Problem] = []
        files: dict[str, _File] = {}
        lost: set[str] = set()
        for name, reachable in self._expand(problems, lost):
            if name in files:
                continue
            file = self._look(name, busy) if reachable else self._files.get(name)
            if file is not None:
                files[name] = file
        changed = self._first or self._undelivered or _differ(self._files, files)
        unread = lost.union(name for name, file in files.items() if not file.read)
        self._owed = unread if self._first else self._owed & unread
        self._first = self._undelivered = False
        self._files = files
        found = (*problems, *(one for file in files.values() for one in file.problems))
        if changed or found != self._found:
            changed = True
            self._found = found
            self._reindex()
            self._problems = (*found, *self._duplicates())
        return Reading(
            self._snapshot,
            self._problems,
            changed,
            bool(self._count) and not self._owed,
            len(files),
            self._count,
            time.perf_counter() - began,
        )

    def tell_again(self) -> None:
        """Let the next reading be a changed one: what the last one said has not been taken in."""
        self._undelivered = True

    def folders(self) -> dict[Path, frozenset[str] | None]:
        """Say what to watch: folder -> names that matter, None for all."""
        return find_folders(path for path in self._paths if str(path) != "-")

    # --- which files ----------------------------------------------------------------------------

    def _expand(self, problems: list[Problem], lost: set[str]) -> Iterator[tuple[str, bool]]:
        """Yield the names of all files, and whether each can be looked at; else it stays as it was.

        Names are text, because a Path for each costs more than its stat. `lost` takes the folders
        that cannot be had whole.
        """
        count = 0
        for path in self._paths:
            if str(path) == "-":
                yield STANDARD_INPUT, True
                continue
            try:
                is_folder = stat.S_ISDIR(os.stat(path).st_mode)
            except OSError as error:
                if under := self._under(path):
                    lost.add(str(path))
                    problems.append(_unreadable(str(path), error))
                    yield from ((name, False) for name in under)
                    continue
                is_folder = False  # a file, or nothing yet: the look at it says why
            if not is_folder:
                yield str(path), True
                continue
            empty = True
            try:
                for folder, names in walk_files(path, onerror=_raise):
                    for name in names:
                        count += 1
                        if count > MAX_FILES:
                            message = f"more than {MAX_FILES} files"
                            problems.append(_problem(str(path), "TooMany", message))
                            lost.add(str(path))
                            return
                        empty = False
                        yield f"{folder}{os.sep}{name}", True
            except OSError as error:
                lost.add(str(path))
                problems.append(_unreadable(str(path), error))
                yield from ((name, False) for name in self._under(path))
                continue
            if empty:
                words = ", ".join(SUFFIXES)
                problems.append(_problem(str(path), "Required", f"no file ends in {words}"))

    def _under(self, path: Path) -> list[str]:
        prefix = os.path.join(path, "")
        return [name for name in self._files if name.startswith(prefix)]

    # --- one file -------------------------------------------------------------------------------

    def _look(self, name: str, busy: frozenset[str]) -> _File | None:
        known = self._files.get(name)
        if known is not None and name == STANDARD_INPUT:
            return known
        if busy and os.path.realpath(name) in busy:
            return known
        try:
            if known is not None and known.stamp is not None:
                facts, at = os.stat(name), known.stamp
                # Field by field: no stamp is made for each of ten thousand files.
                if (
                    facts.st_mtime_ns == at.modified
                    and facts.st_ctime_ns == at.changed
                    and facts.st_size == at.size
                    and facts.st_ino == at.inode
                    and facts.st_dev == at.device
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
        if not data and known is not None and known.objects:
            # A full disk, or a writer that has just begun, leaves exactly this.
            problem = _problem(name, "Invalid", "the file is empty; its last good content stays")
            hint = "remove the file to take its objects out of service"
            problem = msgspec.structs.replace(problem, hint=hint)
            return known._replace(stamp=stamp, digest=digest, problems=(problem,))
        return self._decode(name, data, known)._replace(stamp=stamp, digest=digest)

    def _decode(self, name: str, data: bytes, known: _File | None) -> _File:
        decoded = decode_documents(data, name, self._cache, namespace=self._namespace)
        problems = decoded.problems
        broken = any(_breaks_file(one) for one in problems)
        if broken and known is not None and (known.read or known.objects):
            stays = _problem(name, "Invalid", "the file is not whole; its last good content stays")
            return known._replace(problems=(*problems, stays))
        before = dict(known.objects) if known is not None else {}
        objects = tuple(_settle(one, before) for one in decoded.objects)
        present = [key for key, _ in objects]
        kept = keep_stale(before.items(), known.kept if known else Kept(), present, problems)
        noted = note_newer_files((one for _, one in kept.objects), problems, decoded.policies)
        still = tuple((key, noted.get(one.ref, one)) for key, one in kept.objects)
        kept = kept._replace(objects=still)
        problems += kept.problems
        return _File(
            None,
            b"",
            objects + kept.objects,
            problems,
            not broken,
            kept,
            decoded.refused,
            decoded.policies,
            _find_guarded(objects + kept.objects),
        )

    # --- all files ------------------------------------------------------------------------------

    def _reindex(self) -> None:
        files = self._files.values()
        index, self._count, self._doubled, policies = index_files(files)
        before = self._index
        changed = [item for key, item in index.items() if before.get(key) is not item]
        removed = [item.ref for key, item in before.items() if key not in index]
        self._snapshot = msgspec.structs.replace(
            self._snapshot.replace(changed, removed),
            refused=self._refused(),
            unread=not all(file.read for file in files),
            foreign_policies=(*policies, *(one for file in files for one in file.guarded)),
        )
        self._index = index

    def _refused(self) -> dict[Key, Refused]:
        """Return the objects that have a mistake, whether or not a version of before is in use."""
        refused: dict[Key, Refused] = {}
        for file in self._files.values():
            for one in file.refused:
                refused.setdefault((one.ref.kind, one.ref.namespace, one.ref.name), one)
        return refused

    def _duplicates(self) -> tuple[Problem, ...]:
        if not self._doubled:
            return ()
        items = [item for file in self._files.values() for _, item in file.sound]
        return check_duplicates(items)


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
        before[name].objects is not file.objects
        or before[name].problems != file.problems
        or before[name].policies != file.policies
        or before[name].guarded != file.guarded
        or before[name].refused is not file.refused  # what keeps its place closed
        for name, file in after.items()
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


def _settle(one: Loaded, before: dict[Key, Loaded]) -> tuple[Key, Loaded]:
    """Return the key, and the item of the last time when object and lines are the same."""
    key = key_of(one)
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


def _problem(name: str, reason: Word, message: str) -> Problem:
    return Problem(None, "", reason, message, source=Source(name, 1))


def _unreadable(name: str, error: OSError) -> Problem:
    return _problem(name, "Invalid", f"cannot be read: {error.strerror or error}")


def _find_guarded(objects: Iterable[tuple[Key, Loaded]]) -> tuple[ForeignPolicy, ...]:
    found = (find_annotated_guard(one) for _, one in objects)
    return tuple(one for one in found if one is not None)
