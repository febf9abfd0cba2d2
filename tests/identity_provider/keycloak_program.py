"""Keycloak, fetched with Maven and built once into the cache folder.

In: a version and the hash of its archive. Out: the folder of a Keycloak that starts without a build of its own.
Needs Java and Maven; without them the tests that ask are skipped.
Must never: use an archive with another hash, or leave half an installation.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from cluster.tools.versions import CACHE
from wire.harness.programs import ALONE

VERSION = "26.7.3"
SHA256 = "27a6535553c3cdcd083872ba40629efafb3475e3b758e0c6f691395561dd0f1f"
#: Options of the build and of each start. Without `--cache=local` Keycloak searches for others on the network.
OPTIONS = ("--db=dev-mem", "--cache=local")
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_INSTALL = 600  # seconds: 180 MB, and half a minute of CPU


def keycloak_home() -> Path:
    """Return the folder of Keycloak."""
    home = CACHE / f"keycloak-{VERSION}"
    if home.exists():
        return home
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed here")
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(home.with_name(f"{home.name}.lock"), "wb") as lock:  # another process of these tests
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            _install(home)
    return home


def _install(home: Path) -> None:
    part = home.with_name(f"{home.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    artifact = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
    _run(
        "mvn", "-q", "-B", f"{_PLUGIN}:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={part}"
    )
    archive = part / f"keycloak-quarkus-dist-{VERSION}.zip"
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert found == SHA256, f"{archive.name} has SHA-256 {found}"
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(part)
    unpacked = part / f"keycloak-{VERSION}"
    script = unpacked / "bin" / "kc.sh"
    script.chmod(0o755)
    # The build writes no path of this folder: it may be moved.
    _run(str(script), "build", *OPTIONS)
    unpacked.rename(home)
    shutil.rmtree(part)


def _run(*command: str) -> None:
    done = subprocess.run(
        ["nice", "-n", "10", *command],
        env=ALONE,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_INSTALL,
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
