"""The npm packages of these tests, installed once into the cache folder from the lock file in `node`.

In: node/package-lock.json, which pins every package with its hash. Out: the path of the installed Node and a script.
Needs npm the first time only; without it the tests that ask are skipped. The packages bring their own Node.
Must never: run an install script, or leave half an installation.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from cluster.tools.versions import CACHE
from wire.harness.programs import ALONE

HERE = Path(__file__).parent / "node"
_INSTALL = 500  # seconds
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


def node_command(script: str) -> list[str]:
    """Return the command that runs a script of `node` with its packages."""
    home = _install()
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        pytest.skip(f"no Node package for {platform.machine()}")
    program = home / "node_modules" / f"node-linux-{machine}" / "bin" / "node"
    # Packages are searched beside the script.
    text = (HERE / script).read_bytes()
    beside = home / f"{hashlib.sha256(text).hexdigest()[:12]}-{script}"
    if not beside.exists():
        part = beside.with_suffix(f".{os.getpid()}")
        part.write_bytes(text)
        part.replace(beside)
    return [str(program), str(beside)]


def _install() -> Path:
    lock_file = HERE / "package-lock.json"
    version = hashlib.sha256(lock_file.read_bytes()).hexdigest()[:12]
    home = CACHE / f"oidc-provider-{version}"
    if home.exists():
        return home
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed here")
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(home.with_suffix(".lock"), "wb") as lock:  # another process of these tests
        fcntl.flock(lock, fcntl.LOCK_EX)
        if home.exists():
            return home
        part = home.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, part)
        done = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"],
            cwd=part,
            env=ALONE,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL,
        )
        assert done.returncode == 0, f"npm ci: {done.stdout}{done.stderr}"
        part.rename(home)
    return home
