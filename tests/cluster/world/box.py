"""The program that runs containers, compiled from native/box.c when it is not there yet.

Out: its path in the cache folder, named by what it was compiled from.
Must never: be compiled by two runs into one file at a time.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from cluster.tools.missing import debian
from cluster.tools.versions import CACHE

SOURCE = Path(__file__).parent / "native" / "box.c"
_FLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


def build_box() -> Path:
    """Return the program."""
    program = CACHE / f"box-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}"
    if not program.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = program.with_suffix(f".{os.getpid()}")
        subprocess.run([debian("cc"), *_FLAGS, "-o", str(part), str(SOURCE)], check=True)
        part.replace(program)
    return program
