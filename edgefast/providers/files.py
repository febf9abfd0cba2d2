"""FileSource: the objects of watched files, folders and standard input.

In: paths, and documents that a command makes (document.py).
Out: a `Reading` (snapshot and problems) for every read. A read decodes only documents that changed
in files that changed. It is accepted when no link or folder moved meanwhile, the publish gate
(publish_gate.py) waits for no file, and each file can be parsed or was completely read before.
Otherwise the previous reading stays. A file that cannot be read, has errors or became empty keeps
its last valid content. The same applies to all files of a folder that cannot be read. An object
that became invalid keeps its last valid version. A route without a valid version fails closed. Each
of these cases is a problem.
Must never: raise for the content of a file or an error of the file system, or return a snapshot of
half a file or of two versions of a folder.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edgefast.api.decode.decode import DecodeCache, decode_documents
from edgefast.api.decode.document import DEFAULT_NAMESPACE
from edgefast.api.decode.fail_closed.policy import OwnPolicy, note_newer
from edgefast.api.limits import MAX_FILE_BYTES
from edgefast.api.loaded import Loaded, Refused
from edgefast.api.migration.access_annotations import find_annotated_guard
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.snapshot import Snapshot, check_duplicates
from edgefast.diagnostics.problem import Problem, Source
from edgefast.diagnostics.reasons.word import Word
from edgefast.providers.content import FileBeingWritten, NotRegular, Stamp, read_file
from edgefast.providers.document import Document
from edgefast.providers.folders import SUFFIXES, find_folders
from edgefast.providers.listing import Entry, list_files
from edgefast.providers.name_index import index_files, key_of
from edgefast.providers.publish_gate import PublishGate, Written
from edgefast.providers.source_file import Look, Reading, SourceFile, differ, reuse_loaded
from edgefast.providers.stale import Kept, Key, keep_stale
from edgefast.providers.truncation import breaks_file, find_truncation, find_unparsed
from edgefast.providers.write_completion import NO_EVENTS, Events, Wait, WriteCompletion

if TYPE_CHECKING:
    from edgefast.providers.watch import Watch

__all__ = ["STANDARD_INPUT", "SUFFIXES", "FileSource", "Reading", "watch_files"]

STANDARD_INPUT = "<stdin>"
#: Files of one source; a folder with more is a mistake (/ or a home folder).
MAX_FILES = 100_000
#: Reads of a source with moving links, before the next look tries again.
_TRIES = 5
_MOVED = "links or folders of the path changed during every read"
#: Seconds until the next look when links moved in each of the tries.
_MOVED_AGAIN = 0.1
_WAITS = "the file is incomplete; changes of all files wait until it is corrected or removed"


class FileSource:
    """Reads Kubernetes objects from files, folders and standard input.

    `read` blocks and is not reentrant: call it in a thread.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        namespace: str = DEFAULT_NAMESPACE,
        *,
        settle: float | None = None,
        documents: Sequence[Document] = (),
        adopt: bool = False,
    ) -> None:
        """`namespace`: of objects without a namespace; `settle`: seconds after its last write in which a file is not read.

        Without `settle` files are read as they are. `documents`: read in addition to `paths`. `adopt`: read objects of
        Envoy Gateway as those of edgefast.
        """
        self._paths = tuple(paths)
        self._documents = {one.name: one for one in documents}
        self._namespace = namespace
        self._adopt = adopt
        self._settling = None if settle is None else WriteCompletion(settle)
        #: Seconds until the next look is due; None: when something changes.
        self.due: float | None = None
        #: Files that the last look was held for; None: it counts.
        self.held: tuple[Written, ...] | None = None
        #: For each file of the last look that cannot be parsed and was never read whole: why.
        self.unparsed: tuple[Problem, ...] = ()
        self._hold = PublishGate()
        self._overdue: tuple[Problem, ...] = ()  # of a hold, already reported
        self._files: dict[str, SourceFile] = {}
        self._pipes: dict[str, SourceFile] = {}  # what could be read once only
        self._index: dict[Key, Loaded] = {}
        self._doubled = False  # two sound objects have one name
        self._count = 0  # of those in use, closed ones not among them
        self._snapshot = Snapshot()
        self._found: tuple[Problem, ...] = ()
        self._problems: tuple[Problem, ...] = ()
        self._cache = DecodeCache()
        self._first = True
        self._undelivered = False
        self._owed: set[str] = set()  # files and folders that were never read whole

    def read(self, events: Events = NO_EVENTS) -> Reading:
        """Look at everything; `events` says which files are being written."""
        began = time.perf_counter()
        look = self._look_over(events)
        if look is None:
            self.due, self.held = _MOVED_AGAIN, ()
            moved = (_problem(str(one), "Invalid", _MOVED) for one in self._paths[:1])
            return self._as_before((*self._problems, *moved), began)
        self.due = look.wait
        hold = self._hold.decide(look.written)
        files, problems = look.files, [*look.problems, *hold.problems]
        self.held = tuple(look.written) if hold.held else None
        self.unparsed = tuple(one.unparsed for one in look.unparsed if one.unparsed)
        # `edgefast check` reads once, and reports what there is.
        if hold.held or (self.unparsed and not (self._first and self._settling is None)):
            for file in look.unparsed:
                problems += (*file.problems, *_explain_wait(file))
            overdue = hold.overdue or bool(self.unparsed)
            return self._wait_on(tuple(problems), began, overdue=overdue)
        if self._settling is not None:
            self._settling.forget(look.paths)
        changed = self._first or self._undelivered or bool(self._overdue)
        changed = changed or differ(self._files, files)
        self._overdue = ()
        self._owed = look.lost if self._first else self._owed & look.lost
        self._owed |= {name for name, one in files.items() if not one.read} - hold.left_out
        self._first = self._undelivered = False
        self._files = files
        found = (*problems, *(one for file in files.values() for one in file.problems))
        if changed or found != self._found:
            changed = True
            self._found = found
            self._reindex()
            self._problems = (*found, *self._duplicates())
        usable = bool(self._count) and not self._owed
        return self._reading(self._problems, began, changed=changed, usable=usable)

    def _look_over(self, events: Events) -> Look | None:
        """Read until no link or folder moves meanwhile; None when they always do."""
        for _ in range(_TRIES):
            look = Look(events)
            for one, reachable in self._expand(look):
                look.paths.add(one.path)
                if one.name in look.files:
                    continue
                file = self._look(one, look) if reachable else self._files.get(one.name)
                if file is not None:
                    look.files[one.name] = file
                    if file.unparsed is not None:
                        look.unparsed.append(file)
            if not look.pins.moved():
                return look
        return None

    def _wait_on(self, problems: tuple[Problem, ...], began: float, *, overdue: bool) -> Reading:
        """Return the previous reading for a look that is held, with the reason if that takes long."""
        if not overdue:
            return self._as_before(problems, began)
        changed = self._undelivered or self._overdue != problems
        self._overdue, self._undelivered = problems, False
        reported = tuple(dict.fromkeys((*self._problems, *problems)))
        usable = bool(self._count) and not self._owed
        return self._reading(reported, began, changed=changed, usable=usable)

    def _as_before(self, problems: tuple[Problem, ...], began: float) -> Reading:
        """Return the previous reading; at the start an empty one, with the reason."""
        if self._first:
            return self._reading(problems, began, changed=False, usable=False)
        usable = bool(self._count) and not self._owed
        return self._reading(self._problems, began, changed=False, usable=usable)

    def _reading(
        self, problems: tuple[Problem, ...], began: float, *, changed: bool, usable: bool
    ) -> Reading:
        seconds = time.perf_counter() - began
        files = len(self._files)
        return Reading(self._snapshot, problems, changed, usable, files, self._count, seconds)

    def report_again(self) -> None:
        """Let the next reading be a changed one: what the last one said has not been taken in."""
        self._undelivered = True

    def folders(self) -> dict[Path, frozenset[str] | None]:
        """Say what to watch: folder -> names that matter, None for all."""
        files = (path for path in self._paths if str(path) != "-")
        return find_folders(chain(files, *(one.paths for one in self._documents.values())))

    # --- which files ----------------------------------------------------------------------------

    def _expand(self, look: Look) -> Iterator[tuple[Entry, bool]]:
        """Yield all files, and whether each can be looked at; else it stays as it was.

        Names are text, because a Path for each costs more than its stat.
        """
        count = 0
        yield from ((Entry(name, name), True) for name in self._documents)
        for path in self._paths:
            name = str(path)
            if name == "-":
                yield Entry(STANDARD_INPUT, STANDARD_INPUT), True
                continue
            linked = look.pins.pin_way(path)
            try:
                is_folder = stat.S_ISDIR(os.stat(path).st_mode)
            except OSError as error:
                if under := self._under(path):
                    look.lost.add(name)
                    look.problems.append(_unreadable(name, error))
                    yield from ((Entry(one, one), False) for one in under)
                    continue
                is_folder = False  # a file, or nothing yet: the look at it says why
            if not is_folder:
                yield Entry(name, name, linked), True
                continue
            empty = True
            try:
                for one in list_files(name, look.pins, linked):
                    count += 1
                    if count > MAX_FILES:
                        message = f"more than {MAX_FILES} files"
                        look.problems.append(_problem(name, "TooMany", message))
                        look.lost.add(name)
                        return
                    empty = False
                    yield one, True
            except OSError as error:
                look.lost.add(name)
                look.problems.append(_unreadable(name, error))
                yield from ((Entry(one, one), False) for one in self._under(path))
                continue
            if empty:
                words = ", ".join(SUFFIXES)
                look.problems.append(_problem(name, "Required", f"no file ends in {words}"))

    def _under(self, path: Path) -> list[str]:
        prefix = os.path.join(path, "")
        return [name for name in self._files if name.startswith(prefix)]

    # --- one file -------------------------------------------------------------------------------

    def _look(self, one: Entry, look: Look) -> SourceFile | None:
        name = one.name
        known = self._files.get(name) or self._pipes.get(name)
        if known is not None and name == STANDARD_INPUT:
            return known
        try:
            if known is not None and known.stamp is not None:
                facts, at = os.stat(one.path), known.stamp
                # Field by field: no stamp is made for each of ten thousand files.
                if (
                    facts.st_mtime_ns == at.modified
                    and facts.st_ctime_ns == at.changed
                    and facts.st_size == at.size
                    and facts.st_ino == at.inode
                    and facts.st_dev == at.device
                ):
                    return known
            data, stamp, regular = self._read(one, look, known)
        except NotRegular:
            assert known is not None
            return known
        except FileBeingWritten as error:
            return self._wait_for(one, error.wait, look, known)
        except OSError as error:
            problem = _unreadable(name, error)
            if known is None:
                return SourceFile(None, b"", (), (problem,), False)
            return known._replace(stamp=None, digest=b"", problems=(problem,))
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if known is not None and digest == known.digest:
            return known._replace(stamp=stamp)
        if not data and known is not None and known.objects:
            # A full disk, or a writer that has just begun, leaves exactly this.
            problem = _problem(
                name, "Invalid", "the file is empty; its last good content stays in use"
            )
            hint = "remove the file to take its objects out of service"
            problem = msgspec.structs.replace(problem, hint=hint)
            return known._replace(stamp=stamp, digest=digest, problems=(problem,))
        file = self._decode(name, data, known)._replace(stamp=stamp, digest=digest)
        if not regular:
            self._pipes[name] = file
        return file

    def _read(
        self, one: Entry, look: Look, known: SourceFile | None
    ) -> tuple[bytes, Stamp | None, bool]:
        if one.name == STANDARD_INPUT:
            return sys.stdin.buffer.read(MAX_FILE_BYTES + 1), None, False
        if (document := self._documents.get(one.name)) is not None:
            return document.read(), None, True
        settling = self._settling
        if settling is None:
            if look.events.busy and os.path.realpath(one.path) in look.events.busy:
                raise FileBeingWritten(Wait(0.0, "the file is being written"))
            return read_file(one.path, None, once=known is not None)

        def judge(fd: int, facts: os.stat_result) -> Wait | None:
            return settling.judge(one.path, fd, facts, one.linked, look.events)

        return read_file(one.path, judge, once=known is not None)

    def _wait_for(
        self, one: Entry, wait: Wait, look: Look, known: SourceFile | None
    ) -> SourceFile | None:
        """Keep the last content of a file that is being written."""
        if self._settling is None:
            return known
        look.wait = wait.seconds if look.wait is None else min(wait.seconds, look.wait)
        if known is None:
            known = SourceFile(None, b"", (), (), False)
        in_use = known.read or bool(known.objects)
        look.written.append(Written(one.name, one.path, wait.why, known.read, in_use))
        return known

    def _decode(self, name: str, data: bytes, known: SourceFile | None) -> SourceFile:
        decoded = decode_documents(
            data, name, self._cache, namespace=self._namespace, adopt=self._adopt
        )
        problems, policies = decoded.problems, decoded.policies
        end = None
        if cut := find_truncation(data, decoded):
            end = _problem(
                name,
                "Invalid",
                f"the file is cut off: {cut.why}",
                data.rstrip().count(b"\n") + 1,
            )
            problems += (end,) if known is not None or not cut.told else ()
        broken = cut is not None or any(breaks_file(one) for one in problems)
        if broken and known is not None and (known.read or known.objects):
            stays = _problem(
                name, "Invalid", "the file is incomplete; its last good content stays in use"
            )
            return known._replace(problems=(*problems, stays))
        unparsed = find_unparsed(data, decoded, end) if broken else None
        before = dict(known.objects) if known is not None else {}
        objects = tuple(reuse_loaded(one, before) for one in decoded.objects)
        present = [key for key, _ in objects]
        kept = keep_stale(before.items(), known.kept if known else Kept(), present, problems)
        kept = kept._replace(objects=tuple(_note_newer(kept, decoded.refused)))
        problems += kept.problems
        whole = not broken
        return SourceFile(
            None,
            b"",
            objects + kept.objects,
            problems,
            whole,
            kept,
            decoded.refused,
            policies,
            _find_guarded(objects + kept.objects),
            unparsed,
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
    import asyncio  # `edgefast check` reads files once, and starts without it (20 ms)

    while True:
        await watch.wait(source.due)
        reading = await asyncio.to_thread(source.read, watch.events())
        changed = reading.changed
        # A folder may have been filled before it was watched, and so may folders in it.
        while watch.follow(await asyncio.to_thread(source.folders)):
            reading = await asyncio.to_thread(source.read, watch.events())
            changed |= reading.changed
        if changed:
            return reading


def _problem(name: str, reason: Word, message: str, line: int = 1) -> Problem:
    return Problem(None, "", reason, message, source=Source(name, line))


def _unreadable(name: str, error: OSError) -> Problem:
    return _problem(name, "Invalid", f"cannot be read: {error.strerror or error}")


def _explain_wait(file: SourceFile) -> Iterator[Problem]:
    if file.unparsed is not None and file.unparsed.source is not None:
        yield _problem(file.unparsed.source.file, "Invalid", _WAITS)


def _note_newer(kept: Kept, refused: Iterable[Refused]) -> Iterator[tuple[Key, Loaded]]:
    """Give the objects kept; a policy with the error and the targets of its next version."""
    found = {key_of(one.closed): one.closed.obj for one in reversed([*refused]) if one.closed}
    for key, item in kept.objects:
        newer = found.get(key)
        obj = note_newer(item.obj, newer if isinstance(newer, OwnPolicy) else None)
        yield key, item if obj is item.obj else msgspec.structs.replace(item, obj=obj)


def _find_guarded(objects: Iterable[tuple[Key, Loaded]]) -> tuple[ForeignPolicy, ...]:
    found = (find_annotated_guard(one) for _, one in objects)
    return tuple(one for one in found if one is not None)
