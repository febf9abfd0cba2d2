"""Both images are built from the Dockerfile as `make image` does it, and start: as their user, with what each alone needs.

In: a base made by debootstrap and given as a build argument; buildah in place of a container engine. Needs root and a network.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgefast import __version__
from examples.ports import Ports
from examples.running import get

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(2400)]

ROOT = Path(__file__).parents[2]
STORE = ROOT / "build" / "image"
#: Where `.ci/image` has its images.
ENVIRONMENT = {**os.environ, "CONTAINERS_STORAGE_CONF": f"{STORE}/storage.conf"}
#: Bytes of it after a build, all layers and both archives among them.
_MOST_DISK = 8 << 30


def _buildah(*arguments: str, wrong: bool = False) -> str:
    done = subprocess.run(
        ["buildah", *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode != 0) == wrong, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def images() -> dict[str, dict[str, Any]]:
    """The configuration of each image, by name."""
    STORE.mkdir(parents=True, exist_ok=True)
    with (STORE / "lock").open("w") as lock:
        fcntl.flock(
            lock, fcntl.LOCK_EX
        )  # another worker of this run builds them too, then finds them
        done = subprocess.run(
            [".ci/image"], cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {}
    for name in ("edgefast", "edgefast-controller"):
        with tarfile.open(STORE / f"{name}.tar") as archive:
            (manifest,) = json.load(archive.extractfile("manifest.json"))  # type: ignore[arg-type]
            # What `edgefast:1.2.3`, the chart's default, is short for.
            assert f"docker.io/library/{name}:{__version__}" in manifest["RepoTags"]
            found[name] = json.load(archive.extractfile(manifest["Config"]))["config"]  # type: ignore[arg-type]
    return found


@pytest.fixture(params=["edgefast", "edgefast-controller"])
def container(images: dict[str, Any], request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """(image, container) of each image in turn."""
    made = _buildah("from", request.param).strip()
    yield request.param, made
    _buildah("rm", made)


def _run(container: str, *command: str, wrong: bool = False, options: tuple[str, ...] = ()) -> str:
    where = ("--isolation", "chroot", "--network", "host", *options)
    return _buildah("run", *where, container, "--", *command, wrong=wrong)


def test_configuration(images: dict[str, dict[str, Any]]) -> None:
    for name, config in images.items():
        assert config["User"] == "65532:65532"
        assert config["Entrypoint"] == [name]
        assert not [one for one in config["Env"] if "PIP" in one or "http" in one.lower()]


def test_the_disk_that_it_takes(images: dict[str, Any]) -> None:
    command = ["du", "--summarize", "--one-file-system", "--block-size=1", str(STORE)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(done.stdout.split()[0]) < _MOST_DISK


def test_what_is_inside(container: tuple[str, str]) -> None:
    """The version, the modules that a target needs, no installer and none of the builder's settings."""
    image, made = container
    said = _run(made, image, "version")
    assert f"{image} {__version__}" in said
    assert ("AWS-LC" in said) == (image == "edgefast"), "the engine has the library of the images"
    assert _run(made, "id", "-u").strip() == "65532"
    assert "grpc" in _run(made, "python3", "-c", "import grpc; print(grpc.__name__)")
    _run(made, "python3", "-c", "import kubernetes_asyncio", wrong=image == "edgefast")
    _run(made, "python3", "-m", "pip", "--version", wrong=True)
    # The builder's settings were mounted: an empty file may be left of them.
    _run(made, "sh", "-c", "test -s /etc/pip.conf -o -e /wheels -o -e /src", wrong=True)
    _run(made, "gcc", "--version", wrong=True)


def test_the_proxy_serves(images: dict[str, Any], tmp_path: Path) -> None:
    """As the command of the image does, on ports that are free here."""
    ports = Ports()
    (tmp_path / "objects").mkdir()
    text = ports.replace((ROOT / "examples" / "quickstart.yaml").read_text())
    (tmp_path / "objects" / "quickstart.yaml").write_text(text)
    tmp_path.chmod(0o755)
    made = _buildah("from", "edgefast").strip()
    addresses = {"admin": 19000, "metrics": 19001, "ready": 19003}
    command = ["buildah", "run", "--isolation", "chroot", "--network", "host"]
    command += ["--volume", f"{tmp_path}/objects:/etc/edgefast:ro", made, "--"]
    command += ["edgefast", "run", "-f", "/etc/edgefast", "--min-drain", "0"]
    for name, port in addresses.items():
        command += [f"--{name}", f"127.0.0.1:{ports[port]}"]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not _is_ready(ports[19003]):
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert get(ports[8080], "/")[0] == 503  # nothing listens behind it
    finally:
        process.terminate()
        process.wait(30)
        _buildah("rm", made)


def _is_ready(port: int) -> bool:
    try:
        return get(port, "/ready")[0] == 200
    except OSError:
        return False


def test_the_controller_starts_and_says_what_it_lacks(images: dict[str, Any]) -> None:
    """Without a cluster it cannot go on; with one it is what the cluster tests run."""
    made = _buildah("from", "edgefast-controller").strip()
    try:
        said = _run(made, "edgefast-controller", "run", wrong=True)
        assert "Traceback" not in said
        assert "kube" in said.lower()
    finally:
        _buildah("rm", made)
