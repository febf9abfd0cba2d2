"""What a one-shot subcommand works on: the objects of the files named, read once.

In: paths (files, folders, - for standard input) and the configuration file. Out: `Inputs`: the snapshot, the settings and
every problem found on the way. It must never raise for what a user wrote in a file; a file that cannot be read is a problem
like any other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from edgefast.problem import Problem, Source
from edgefast.providers.files import FileSource, Reading
from edgefast.resources.decode import decode_config
from edgefast.translate.settings import Settings, settings_from


class Inputs(msgspec.Struct, frozen=True):
    """Objects and settings of one call; `problems` has those of the configuration first."""

    reading: Reading
    settings: Settings
    problems: tuple[Problem, ...]


def read_inputs(paths: Sequence[Path], config: Path | None = None) -> Inputs:
    """Read and decode everything; the settings carry the time, so that expired certificates are found."""
    reading = FileSource(paths).read()
    settings, wrong = read_settings(config)
    return Inputs(reading, settings, (*wrong, *reading.problems))


def read_settings(config: Path | None) -> tuple[Settings, tuple[Problem, ...]]:
    """Settings of the configuration file, or the defaults with the problems that it has."""
    now = int(time.time())
    if config is None:
        return settings_from(now=now), ()
    try:
        data = config.read_bytes()
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        return settings_from(now=now), (
            Problem(None, "", "Invalid", why, source=Source(str(config), 1)),
        )
    decoded, problems = decode_config(data, str(config))
    return settings_from(decoded, now=now), problems
