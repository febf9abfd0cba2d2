"""The scripts that documents show, run as a reader would, with the commands of this environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_script(
    script: str, where: str, *, env: Mapping[str, str] | None = None, log: Callable[[], str] = str
) -> tuple[str, str]:
    """Return its standard output, and all there is to show when that is not as expected; it has to end well."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-uo", "pipefail", "-c", script],
        cwd=ROOT,
        env=env if env is not None else {**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
    )
    shown = f"{where}\n{script}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}\n{log()}"
    assert done.returncode == 0 and "Traceback" not in done.stderr, shown
    return done.stdout, shown
