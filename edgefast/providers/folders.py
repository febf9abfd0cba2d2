"""Folders: which files a path stands for, and which folders tell when that changes.

In: paths of files and folders, with links anywhere in them. Out: the files under a folder, and the
folders to watch with the names that matter in each. Editors replace files, `mv` replaces folders and
deployments swap links, so the folder of each of them is watched, not only the folder itself. Must
never raise for what the file system will not say: what cannot be looked at is not there now.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

__all__ = ["SUFFIXES", "find_folders", "walk_files"]

SUFFIXES = (".yaml", ".yml", ".json")
#: Links followed on the way to a path, as the kernel does (path_resolution(7)).
_MAX_LINKS = 40


def find_folders(paths: Iterable[Path]) -> dict[Path, frozenset[str] | None]:
    """Return what to watch for files and folders: folder -> names that matter, None for all."""
    wanted: dict[Path, frozenset[str] | None] = {}
    for path in paths:
        if _is_folder(path):
            wanted.update((Path(folder), None) for folder, _ in walk_files(path))
        for one in map(Path, _hinges(path)):
            names = wanted.get(one.parent, frozenset())
            wanted[one.parent] = None if names is None else names | {one.name}
    return wanted


def walk_files(
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


def _is_folder(path: Path) -> bool:
    """Tell whether it is one now; Path.is_dir raises for what the file system refuses to say."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return False


def _hinges(path: Path) -> Iterator[str]:
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
