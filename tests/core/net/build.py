"""Builds driver.pyx: the socket layer with sessions for tests, as a module of its own.

In: edgefast/core, driver.pyx, the variant from EDGEFAST_DEBUG and EDGEFAST_SANITIZE, as in setup.py. Out: the module, built once for each
state of the sources and kept under build/. Must never be part of the wheel.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
CORE = ROOT / "edgefast" / "core"
DEBUG = os.environ.get("EDGEFAST_DEBUG") == "1"
SANITIZE = os.environ.get("EDGEFAST_SANITIZE") == "1"


def _flags() -> list[str]:
    flags = [
        "-std=c11",
        "-fPIC",
        "-shared",
        "-idirafter",
        str(ROOT / "csrc"),
        "-fvisibility=hidden",
    ]
    flags += ["-O1", "-g", "-fno-omit-frame-pointer"] if DEBUG or SANITIZE else ["-O2", "-g1"]
    if SANITIZE:
        flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    return flags


def _directives() -> list[str]:
    checks = str(DEBUG)
    pairs = {
        "language_level": "3",
        "boundscheck": checks,
        "wraparound": "False",
        "initializedcheck": checks,
        "nonecheck": checks,
        "cdivision": "True",
    }
    return [word for name, value in pairs.items() for word in ("-X", f"{name}={value}")]


def build(source: Path) -> Path:
    """Path of the compiled module; CalledProcessError carries the compilers' words."""
    parts = sorted([*source.parent.glob("*.p[yx]*"), *CORE.rglob("*.p[yx][xdi]")])
    state = hashlib.sha256(b"".join(part.read_bytes() for part in parts))
    state.update(repr((DEBUG, SANITIZE, sys.version)).encode())
    folder = ROOT / "build" / "net" / state.hexdigest()[:16]
    target = folder / f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:  # several processes test at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            made = folder / f"{source.stem}.c"
            cython = [
                sys.executable,
                "-m",
                "cython",
                "-3",
                *_directives(),
                "-I",
                str(CORE),
                "-I",
                str(ROOT),
            ]
            subprocess.run([*cython, str(source), "-o", str(made)], check=True, cwd=ROOT)
            beside = folder / "beside.so"
            include = f"-I{sysconfig.get_paths()['include']}"
            subprocess.run(
                ["gcc", *_flags(), include, str(made), "-o", str(beside)], check=True, cwd=ROOT
            )
            beside.rename(target)
    return target


def load(source: Path = HERE / "driver.pyx") -> ModuleType:
    """Import the module."""
    spec = importlib.util.spec_from_file_location(source.stem, build(source))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[source.stem] = module
    spec.loader.exec_module(module)
    return module
