"""The published wheels: what they need and show, and that they serve on a Debian system without compiler and headers.

`make wheels` builds them first. Each system is made by debootstrap. Needs root and a network.
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from edgefast import __version__
from release.debian_tree import make_tree
from release.interpreters import PLACE
from release.wheels import DIST, SUMS, VERSIONS

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[2]
#: Python version -> the Debian release whose own Python it is.
SYSTEMS = {"3.11": "bookworm", "3.13": "trixie"}
PACKAGES = ("ca-certificates", "python3", "python3-venv")
#: What every Linux with glibc has.
#: Minor version of glibc: what Ubuntu 22.04 and RHEL 9 have.
OLDEST_GLIBC = 34
LIBRARIES = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


@pytest.fixture(scope="module")
def wheels() -> dict[str, Path]:
    """The wheel of each Python version."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker of this run waits, then finds them
        found = {version: _find(version) for version in VERSIONS}
        missing = [version for version, wheel in found.items() if wheel is None]
        if missing:
            options = [f"--python={version}" for version in missing]
            build = [sys.executable, "-m", "release.wheels", *options]
            done = subprocess.run(
                build, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
    made = {version: _find(version) for version in VERSIONS}
    assert all(made.values()), made
    return {version: wheel for version, wheel in made.items() if wheel}


def _find(version: str) -> Path | None:
    """A wheel that is newer than the engine's sources, or None."""
    tag = f"cp{version.replace('.', '')}"
    found = sorted(DIST.glob(f"edgefast-{__version__}-{tag}-{tag}-manylinux_*.whl"))
    sources = [*(ROOT / "edgefast/core").rglob("*.p[yx][xdi]"), *(ROOT / "csrc").rglob("*.[ch]")]
    newest = max(path.stat().st_mtime for path in sources)
    return found[-1] if found and found[-1].stat().st_mtime > newest else None


@pytest.mark.parametrize("version", VERSIONS)
def test_modules_need_the_libc_alone_and_show_no_library(
    wheels: dict[str, Path], version: str, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheels[version]) as archive:
        archive.extractall(tmp_path)
    modules = list(tmp_path.rglob("*.so"))
    assert len(modules) >= 9
    for module in modules:
        needed = _run(["readelf", "--dynamic", str(module)])
        assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", needed)) <= LIBRARIES, module
        shown = _run(["nm", "--dynamic", "--defined-only", str(module)])
        assert not re.search(r"\b(nghttp2_|SSL_|EVP_|CRYPTO_)", shown), module
    tag = re.search(r"manylinux_2_(\d+)_", wheels[version].name)
    assert tag and int(tag[1]) <= OLDEST_GLIBC


def test_checksums_and_bills_of_materials(wheels: dict[str, Path]) -> None:
    sums = dict(line.split("  ")[::-1] for line in (DIST / SUMS).read_text().splitlines())
    for wheel in wheels.values():
        sbom = wheel.with_suffix(".cdx.json")
        for path in (wheel, sbom):
            assert sums[path.name] == hashlib.sha256(path.read_bytes()).hexdigest()
        document = json.loads(sbom.read_text())
        assert document["bomFormat"] == "CycloneDX"
        component = document["metadata"]["component"]
        assert component["hashes"][0]["content"] == sums[wheel.name]
        assert {one["name"] for one in component["components"]} == {"AWS-LC", "nghttp2"}
        needed = {one["name"] for one in document["components"] if one["scope"] == "required"}
        assert {"uvloop", "orjson", "cffi"} <= needed


@pytest.mark.parametrize("version", VERSIONS)
def test_it_serves_without_compiler_and_headers(wheels: dict[str, Path], version: str) -> None:
    system = PLACE / f"bare-{SYSTEMS[version]}"
    make_tree(SYSTEMS[version], PACKAGES, system)
    assert not [*system.glob("usr/bin/*gcc*"), *system.rglob("Python.h")]
    for path in ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
        if Path(path).exists():
            shutil.copy(path, system / path[1:])
    shutil.copy(wheels[version], system / "tmp")
    shutil.rmtree(system / "opt/edgefast", ignore_errors=True)
    # Its own /proc; the demo ends with `unshare`.
    chroot = ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--root={system}"]
    chroot += ["--mount-proc", "--"]
    _run([*chroot, "python3", "-m", "venv", "/opt/edgefast"])
    pip = ["/opt/edgefast/bin/pip", "install", "--quiet", "--only-binary=:all:"]
    _run([*chroot, *pip, f"/tmp/{wheels[version].name}"])
    library = "from edgefast.core import engine; print(engine.tls_library())"
    assert _run([*chroot, "/opt/edgefast/bin/python", "-c", library]).startswith("AWS-LC ")
    with _demo([*chroot, "/opt/edgefast/bin/edgefast", "demo"]) as (plain, secret):
        context = ssl._create_unverified_context()
        for connection in (
            http.client.HTTPConnection("127.0.0.1", plain, timeout=30),
            http.client.HTTPSConnection("localhost", secret, timeout=30, context=context),
        ):
            with closing(connection):
                connection.request("GET", "/")
                assert connection.getresponse().status == 200


@contextmanager
def _demo(command: list[str]) -> Iterator[tuple[int, int]]:
    """A running demo; yields its ports of HTTP and HTTPS."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as demo:  # fmt: skip
        try:
            assert demo.stderr is not None
            text = ""
            while len(set(re.findall(r"curl .*?:(\d+)/", text))) < 2:
                line = demo.stderr.readline()
                assert line, text
                text += line
            plain = re.search(r"http://[^ :]*:(\d+)/", text)
            secret = re.search(r"https://[^ :]*:(\d+)/", text)
            assert plain and secret, text
            yield int(plain[1]), int(secret[1])
        finally:
            demo.kill()  # `unshare` ignores SIGTERM, and its child ends with it
            demo.communicate(timeout=60)


def _run(argv: list[str]) -> str:
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
