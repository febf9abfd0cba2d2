"""Listing: the files under a path, and pins that detect links or folders that moved during a read.

In: a path.
Out: `Entry`s in the order of names, and in `Pins` the identity of each link and folder on the way
to them. In a mounted ConfigMap or Secret, `..data` is a link to the folder of one version. The
listing uses that version, because the kubelet creates and removes the visible links after the
change. Errors of the file system go to the caller.
Must never: read a file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from edgefast.providers.folders import SUFFIXES, find_links

__all__ = ["Entry", "Pins", "list_files"]

_MOUNT = "..data"


class Entry(NamedTuple):
    """A file: its name in messages, the path to read it from, and when the newest link to it was made (ns; 0: no link)."""

    name: str
    path: str
    linked: int = 0


class _Identity(NamedTuple):
    """Identity of a link or folder until it is replaced."""

    inode: int = 0
    device: int = 0
    changed: int = 0  # of links alone: a folder changes with each file in it
    made: int = 0
    target: str = ""


class Pins:
    """Identities of links and folders, each taken before the link or folder is first used."""

    def __init__(self) -> None:
        self._seen: dict[str, _Identity | None] = {}

    def pin(self, path: str) -> int:
        """Take the identity of a link or folder; return when a link was made (ns), 0 for anything else."""
        if path not in self._seen:
            self._seen[path] = _identify(path)
        found = self._seen[path]
        return found.made if found is not None else 0

    def pin_way(self, path: str | Path) -> int:
        """Pin every link on the way to a path, and the folder there; return when the newest link was made (ns)."""
        newest, last = 0, ""
        for one in find_links(Path(path)):
            newest, last = max(newest, self.pin(one)), one
        self.pin(os.path.dirname(last))
        return newest

    def moved(self) -> bool:
        """Tell whether a pinned link or folder was replaced."""
        return any(_identify(path) != found for path, found in self._seen.items())


def _identify(path: str) -> _Identity | None:
    """Return the identity of a link or folder, an empty one for files (they are replaced one by one), None for nothing."""
    try:
        facts = os.lstat(path)
        if stat.S_ISLNK(facts.st_mode):
            ids = (facts.st_ino, facts.st_dev, facts.st_ctime_ns, facts.st_mtime_ns)
            return _Identity(*ids, os.readlink(path))
    except OSError:
        return None
    return _Identity(facts.st_ino, facts.st_dev) if stat.S_ISDIR(facts.st_mode) else _Identity()


def list_files(path: str, pins: Pins, linked: int = 0) -> Iterator[Entry]:
    """Yield the files under a folder, sorted, without hidden ones and without folders behind links; raises OSError.

    `linked`: when the newest link on the way to the folder was made.
    """
    return _list(path, path, pins, linked)


def _list(name: str, path: str, pins: Pins, linked: int) -> Iterator[Entry]:
    pins.pin(path)
    with os.scandir(path) as listing:
        found = list(listing)
    visible = {one.name: one for one in found if not one.name.startswith(".")}
    mount = next((one for one in found if one.name == _MOUNT and one.is_symlink()), None)
    mounted = 0
    if mount is not None and mount.is_dir():
        mounted = max(linked, pins.pin_way(mount.path))
        visible = {key: one for key, one in visible.items() if not _leads_to_mount(one)}
        with os.scandir(mount.path) as listing:
            visible |= {one.name: one for one in listing if not one.name.startswith(".")}
    folders: list[tuple[str, os.DirEntry[str], int]] = []
    for key in sorted(visible):
        one = visible[key]
        placed = linked if mount is None or not one.path.startswith(mount.path) else mounted
        if one.is_dir(follow_symlinks=False):
            folders.append((key, one, placed))
        elif key.endswith(SUFFIXES) and not one.is_dir():
            if one.is_symlink():
                placed = max(placed, pins.pin_way(one.path))
            yield Entry(f"{name}{os.sep}{key}", one.path, placed)
    for key, one, placed in folders:
        yield from _list(f"{name}{os.sep}{key}", one.path, pins, placed)


def _leads_to_mount(one: os.DirEntry[str]) -> bool:
    """Tell whether it is a visible link of a mount; the listing has its target already."""
    try:
        return one.is_symlink() and os.readlink(one.path).startswith(f"{_MOUNT}/")
    except OSError:
        return False
