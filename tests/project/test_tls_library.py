"""The library that the engine's TLS is made of: the one that was asked for, hidden from everybody else, and how a build says what it lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgefast.core import engine

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
BUILDER = ROOT / "csrc/libraries/build.py"


def test_the_engine_says_what_it_is_linked_with() -> None:
    """`make test` runs on the system's library, `make test-aws-lc` says in its environment that it does not."""
    name = "AWS-LC" if os.environ.get("EDGEFAST_TLS") == "aws-lc" else "OpenSSL"
    said, version = engine.tls_library().split()
    assert said == name
    assert version[0].isdigit()


def test_the_engine_shows_no_name_but_its_own() -> None:
    """Python's ssl loads another libssl into the process: neither may find the other's functions."""
    argv = ["nm", "--dynamic", "--defined-only", "--format=posix", engine.__file__]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    shown = {line.split()[0] for line in done.stdout.splitlines()}
    assert "PyInit_engine" in shown
    assert not {name for name in shown if name.startswith(("SSL_", "EVP_", "CRYPTO_", "OPENSSL_"))}


def _run(
    *command: str | Path, place: Path, tls: str = "", path: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "EDGEFAST_TLS": tls, "XDG_CACHE_HOME": str(place)}
    environment["PATH"] = path or environment["PATH"]
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_what_a_build_lacks_is_named_at_once(tmp_path: Path) -> None:
    """A machine without cargo and cmake; nothing is fetched, nothing is left behind but a lock."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("make", "cc", "c++"):
        (tools / name).symlink_to("/bin/true")
    done = _run(BUILDER, "aws-lc", place=tmp_path, path=str(tools))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("The build of AWS-LC needs cargo (Debian: cargo")
    assert "cmake (Debian: cmake)" in done.stderr and "gcc" not in done.stderr
    assert all(left.suffix == ".lock" for left in (tmp_path / "edgefast").iterdir())


def test_another_library_is_no_library() -> None:
    done = _run("setup.py", "--version", place=Path("/nonexistent"), tls="boringssl")
    assert done.returncode == 1
    assert done.stderr == "EDGEFAST_TLS is 'boringssl'; there are: system, aws-lc\n"
