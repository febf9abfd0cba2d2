"""Steps: the programs that a release runs.

In: a command. Out: its output. Must never: wait for input, or hide why a program failed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["StepFailed", "run_step"]

#: Lines of the output of a failed program in the message.
_LAST = 20


class StepFailed(Exception):
    """A step of a release that failed; the text names the program and its last lines."""


def run_step(
    argv: Sequence[str | Path],
    *,
    seconds: float,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Run a program and return its standard output. StepFailed if it is missing, fails or takes longer than `seconds`."""
    shown = " ".join(map(str, argv[:4]))
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError as error:
        raise StepFailed(f"{argv[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise StepFailed(f"{shown} took longer than {seconds:.0f} s") from error
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_LAST:])
        raise StepFailed(f"{shown} ended with status {done.returncode}:\n{last}")
    return done.stdout
