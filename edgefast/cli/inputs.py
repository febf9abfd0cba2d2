"""What a one-shot subcommand works on: the objects of the files named, decoded once.

In: paths (files, folders, - for standard input) and the configuration file. Out: `Inputs`: the snapshot, the settings and
every problem found on the way. It must never raise for what a user wrote in a file; a file that cannot be read is a problem
like any other.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from edgefast.problem import Problem, Source
from edgefast.resources.decode import decode_config, decode_documents
from edgefast.resources.loaded import Loaded
from edgefast.resources.snapshot import Snapshot, check_duplicates
from edgefast.translate.settings import Settings, settings_from

SUFFIXES = (".yaml", ".yml", ".json")
STANDARD_INPUT = "<stdin>"


class Inputs(msgspec.Struct, frozen=True):
    """Objects and settings of one call."""

    snapshot: Snapshot
    settings: Settings
    problems: tuple[Problem, ...]
    objects: int
    files: int


def read_inputs(paths: Iterable[Path], config: Path | None = None) -> Inputs:
    """Read and decode everything; settings look at the clock, so that expired certificates are found."""
    loaded: list[Loaded] = []
    problems: list[Problem] = []
    files = 0
    for name, data in _read_all(paths, problems):
        files += 1
        decoded = decode_documents(data, name)
        loaded.extend(decoded.objects)
        problems.extend(decoded.problems)
    problems.extend(check_duplicates(loaded))
    settings = settings_from(None, now=int(time.time()))
    if config is not None:
        for name, data in _read_all([config], problems):
            made, wrong = decode_config(data, name)
            problems.extend(wrong)
            settings = settings_from(made, now=int(time.time()))
    return Inputs(Snapshot.of(loaded), settings, tuple(problems), len(loaded), files)


def _read_all(paths: Iterable[Path], problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    for path in _expand(paths, problems):
        name = STANDARD_INPUT if str(path) == "-" else str(path)
        try:
            yield name, sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        except OSError as error:
            problems.append(_unreadable(name, error.strerror or str(error)))


def _expand(paths: Iterable[Path], problems: list[Problem]) -> Iterator[Path]:
    for path in paths:
        if str(path) == "-" or not path.is_dir():
            yield path
            continue
        found = sorted(
            item for item in path.rglob("*") if item.suffix in SUFFIXES and item.is_file()
        )
        if not found:
            problems.append(_unreadable(str(path), f"no file ends in {', '.join(SUFFIXES)}"))
        yield from found


def _unreadable(name: str, why: str) -> Problem:
    return Problem(None, "", "Invalid", f"cannot be read: {why}", source=Source(name, 1))
