"""Folders: the folders to watch for the paths that a user gives.

In: paths of files and folders, with links anywhere in them.
Out: folders with the relevant names in each, and the links on the way to a path. Editors replace
files, `mv` replaces folders and deployments replace links, so the parent folder of each of them is
watched as well.
Must never: raise for an error of the file system; a path that cannot be read counts as missing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["SUFFIXES", "find_folders", "find_links"]

SUFFIXES = (".yaml", ".yml", ".json")
#: Links followed on the way to a path, as the kernel does (path_resolution(7)).
_MAX_LINKS = 40


def find_folders(paths: Iterable[Path]) -> dict[Path, frozenset[str] | None]:
    """Return what to watch for files and folders: folder -> names that matter, None for all."""
    wanted: dict[Path, frozenset[str] | None] = {}
    for path in paths:
        if _is_folder(path):
            wanted.update((Path(folder), None) for folder in _walk_folders(path))
        for one in map(Path, find_links(path)):
            names = wanted.get(one.parent, frozenset())
            wanted[one.parent] = None if names is None else names | {one.name}
    return wanted


def _is_folder(path: Path) -> bool:
    """Tell whether it is one now; Path.is_dir raises for what the file system refuses to say."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return False


def _walk_folders(path: Path) -> Iterator[str]:
    """Yield a folder and all folders under it but hidden ones: the versions of mounted ConfigMaps are hidden and never change."""
    for folder, folders, _ in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield folder


def find_links(path: Path) -> Iterator[str]:
    """Yield every link met on the way to `path`, then what it leads to; never raises."""
    at = "/"
    try:
        todo = os.path.abspath(path).split(os.sep)[::-1]
    except OSError:  # a relative one, and the working folder is gone
        return
    links = 0
    while todo:
        name = todo.pop()
        if name in ("", os.curdir):
            continue
        if name == os.pardir:
            at = os.path.dirname(at)
            continue
        here = os.path.join(at, name)
        try:
            target = os.readlink(here) if links < _MAX_LINKS else ""
        except OSError:  # no link, or not there
            target = ""
        if not target:
            at = here
            continue
        links += 1
        yield here
        at = "/" if os.path.isabs(target) else at
        todo += target.split(os.sep)[::-1]
    if at != "/":
        yield at
