"""Watch: reports changed folders with inotify, and polls slowly as a fallback.

In: folders, the relevant names in them and the endings of such names.
Out: `wait()` returns after a change, and `events()` names files that are being written, were closed
or were renamed into the folder. Network and some overlay file systems send no events, and the
number of watches is limited. The caller therefore reads every POLL seconds anyway, or every
POLL_WITHOUT_INOTIFY seconds without inotify.
Must never: read a file.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from edgefast.providers.write_completion import WRITER_AT_MOST, Events

__all__ = ["Watch"]

log = logging.getLogger(__name__)

#: Seconds between looks without an event; with inotify it is a safety net only.
POLL = 5.0
POLL_WITHOUT_INOTIFY = 0.2
#: Editors and `kubectl cp` touch a file several times: wait until it is quiet, but not for ever.
QUIET = 0.01
QUIET_AT_MOST = 0.2
#: A file that changed and was not closed counts as half written for this long (seconds) after its last change.
BUSY = WRITER_AT_MOST
#: The same for a file that was created and never changed: a hard link is created, and never closed.
CREATED = 2.0
#: Files that were closed or renamed, which `events` names at most: the newest.
_FINISHED = 10_000

_IN_MODIFY, _IN_ATTRIB, _IN_CLOSE_WRITE = 0x2, 0x4, 0x8
_IN_MOVED_FROM, _IN_MOVED_TO, _IN_CREATE, _IN_DELETE = 0x40, 0x80, 0x100, 0x200
_IN_DELETE_SELF, _IN_MOVE_SELF, _IN_ONLYDIR = 0x400, 0x800, 0x1000000
_IN_ISDIR = 0x40000000
_MASK = (
    _IN_MODIFY | _IN_ATTRIB | _IN_CLOSE_WRITE | _IN_MOVED_FROM | _IN_MOVED_TO | _IN_CREATE
    | _IN_DELETE | _IN_DELETE_SELF | _IN_MOVE_SELF | _IN_ONLYDIR
)  # fmt: skip
_EVENT = struct.Struct("iIII")  # wd, mask, cookie, length of the name
_READ = 64 * 1024

#: Folder -> names that matter in it; None: every name with the right ending.
Folders = Mapping[Path, frozenset[str] | None]


class Watch:
    """Use inside one event loop; `close` at the end."""

    def __init__(self, endings: tuple[str, ...]) -> None:
        self._endings = endings
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._watched: dict[int, tuple[Path, frozenset[str] | None]] = {}  # by watch descriptor
        self._writing: dict[Path, float] = {}  # file: until when it counts as half written
        self._closed: dict[str, int] = {}  # file: when (ns since 1970); the newest last
        self._renamed: dict[str, int] = {}
        self._event = asyncio.Event()
        self._complete = self._fd >= 0
        if self._complete:
            asyncio.get_running_loop().add_reader(self._fd, self._on_readable)
        else:
            log.warning(
                "files: inotify is not available (%s); polling files",
                os.strerror(ctypes.get_errno()),
            )

    def follow(self, folders: Folders) -> bool:
        """Watch these folders and no others; True when one is new, so that a look is due."""
        if self._fd < 0:
            return False
        watched: dict[int, tuple[Path, frozenset[str] | None]] = {}
        complete = True
        for folder, names in folders.items():
            number = self._libc.inotify_add_watch(self._fd, os.fsencode(folder), _MASK)
            if number >= 0:
                if number in watched:  # two paths to one folder
                    other = watched[number][1]
                    names = None if names is None or other is None else names | other
                watched[number] = (folder, names)
            else:
                complete = False
                log.debug("%s cannot be watched: %s", folder, os.strerror(ctypes.get_errno()))
        if self._complete and not complete:
            log.warning(
                "files: some folders cannot be watched (check the fs.inotify limits); polling files"
            )
        self._complete = complete
        new = watched.keys() - self._watched.keys()
        for number in self._watched.keys() - watched.keys():
            self._libc.inotify_rm_watch(self._fd, number)
        self._watched = watched
        return bool(new)

    async def wait(self, within: float | None = None) -> None:
        """Return when something changed and is quiet, or when it is time to look anyway: in `within` seconds at the latest."""
        loop = asyncio.get_running_loop()
        patience = self._patience()
        if not await self._changed_within(patience if within is None else min(within, patience)):
            return
        end = loop.time() + QUIET_AT_MOST
        while loop.time() < end and await self._changed_within(QUIET):
            pass

    def look_now(self) -> None:
        """End `wait` soon, although nothing is known to have changed."""
        self._event.set()

    def events(self) -> Events:
        """Return the state of the writers of files; forget files without recent writes."""
        now = time.monotonic()
        self._writing = {path: until for path, until in self._writing.items() if now < until}
        busy = frozenset(map(os.path.realpath, self._writing))
        folders: dict[str, str] = {}  # thousands of files are in a few folders
        return Events(busy, _resolve(self._closed, folders), _resolve(self._renamed, folders))

    def close(self) -> None:
        """Stop watching."""
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _patience(self) -> float:
        patience = POLL if self._complete else POLL_WITHOUT_INOTIFY
        ends = min(self._writing.values(), default=None)
        return patience if ends is None else max(min(patience, ends - time.monotonic()), 0.0)

    async def _changed_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def _on_readable(self) -> None:
        try:
            data = os.read(self._fd, _READ)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size
            name = os.fsdecode(data[at : at + length].rstrip(b"\0"))
            at += length
            self._on_event(number, mask, name)

    def _on_event(self, number: int, mask: int, name: str) -> None:
        folder, names = self._watched.get(number, (None, None))
        if folder is None:
            if number < 0:  # the queue overflowed: anything may have changed, or have been closed
                self._writing.clear()
                self._event.set()
            return
        wanted = name in names if names is not None else name.endswith(self._endings)
        # Names that begin with ".." are the swap of a mounted ConfigMap or Secret.
        if name and not wanted and not mask & _IN_ISDIR and not name.startswith(".."):
            return
        path = folder / name
        created = mask & _IN_CREATE and not mask & _IN_ISDIR and not path.is_symlink()
        if mask & _IN_MODIFY or created:
            # `wait` acts when the writer closes the file; the first of these events only shortens its timeout.
            if not self._writing:
                self._event.set()
            self._finish(path)
            until = time.monotonic() + (BUSY if mask & _IN_MODIFY else CREATED)
            self._writing[path] = max(until, self._writing.get(path, 0.0))
            return
        self._writing.pop(path, None)
        if mask & _IN_MOVED_TO:
            self._finish(path, self._renamed)
        elif mask & _IN_CLOSE_WRITE:
            self._finish(path, self._closed)
        self._event.set()

    def _finish(self, path: Path, how: dict[str, int] | None = None) -> None:
        """Note how the writer of a file ended, None: it has not."""
        name = str(path)
        self._closed.pop(name, None)
        self._renamed.pop(name, None)
        if how is not None:
            how[name] = time.time_ns()
            if len(how) > _FINISHED:
                del how[next(iter(how))]


def _resolve(times: Mapping[str, int], folders: dict[str, str]) -> dict[str, int]:
    """Return the times by real path; `folders` are those resolved so far."""
    found: dict[str, int] = {}
    for name, when in times.items():
        folder, file = os.path.split(name)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        real = os.path.join(folders[folder], file)
        found[real] = max(when, found.get(real, 0))
    return found
