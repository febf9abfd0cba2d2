"""Inputs: the objects of the given files, read once for a one-shot subcommand.

In: paths (files, folders, - for standard input) and the configuration file.
Out: `Inputs`: the snapshot, the settings and every problem found on the way. A file that cannot be
read is a problem like any other.
Must never: raise for the content of a user's file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from edgefast.api.decode.decode import LoadedConfig, load_config
from edgefast.diagnostics.problem import Problem, Source
from edgefast.providers.added_backends import AddedBackend, add_backends
from edgefast.providers.files import FileSource, Reading
from edgefast.translate.settings import IngressSettings, Settings, check_config, settings_from


class Inputs(msgspec.Struct, frozen=True):
    """Objects and settings of one call; `problems` has those of the configuration first."""

    reading: Reading
    settings: Settings
    problems: tuple[Problem, ...]
    unparsed: tuple[Problem, ...] = ()  # one for each file that cannot be parsed


def read_inputs(
    paths: Sequence[Path],
    config: Path | None = None,
    *,
    standalone: bool = True,
    adopt: bool = False,
    ignore_foreign_policies: bool = False,
    ingress: IngressSettings | None = None,
    backends: Sequence[AddedBackend] = (),
) -> Inputs:
    """Read and decode everything; the settings carry the time, so that expired certificates are found.

    `standalone`: the settings are those of `edgefast run`, else those of a controller. `adopt`: of files for another one.
    `ignore_foreign_policies`: serve targets of other projects' policies without these policies.
    `ingress`: which Ingresses are served. `backends`: for Services that have no endpoints in the files.
    """
    source = FileSource(paths, adopt=adopt)
    reading = source.read()
    snapshot, unused = add_backends(reading.snapshot, backends)
    reading = msgspec.structs.replace(reading, snapshot=snapshot)
    loaded, wrong = read_config(config, standalone=standalone)
    settings = settings_from(
        loaded.config if loaded else None,
        standalone=standalone,
        now=int(time.time()),
        adopt=adopt,
        ignore_foreign_policies=ignore_foreign_policies,
        ingress=ingress,
    )
    return Inputs(reading, settings, (*wrong, *reading.problems, *unused), source.unparsed)


def read_config(
    path: Path | None, *, standalone: bool = True
) -> tuple[LoadedConfig | None, tuple[Problem, ...]]:
    """Read the configuration file: None when there is none or it has errors, and all problems of it."""
    if path is None:
        return None, ()
    try:
        data = path.read_bytes()
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        return None, (Problem(None, "", "Invalid", why, source=Source(str(path), 1)),)
    loaded, problems = load_config(data, str(path))
    unused = check_config(loaded) if loaded and standalone else ()
    return loaded, (*problems, *unused)
