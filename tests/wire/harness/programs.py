"""Programs that are not ours: the environment they are started in, and small ones in Go, built here.

In: nothing; the source of a program. Out: an environment; a path. Must never let the runtime of a sanitizer into a program that was
not built for it: curl hangs beside one, and dnsmasq never opens its port.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["ALONE", "build_go", "needs_go"]

ALONE = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed here")
#: Seconds: the first one of a machine compiles Go's own library.
_BUILD = 500


def build_go(folder: Path, source: str) -> str:
    """Build a program of one file and the standard library; returns its path."""
    (folder / "main.go").write_text(source)
    program = folder / "program"
    subprocess.run(
        ["go", "build", "-o", program, "main.go"],
        cwd=folder,
        check=True,
        env={**ALONE, "GO111MODULE": "off"},
        timeout=_BUILD,
    )
    return str(program)
