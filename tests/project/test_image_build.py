"""Both images are built from the Dockerfile as `make image` does it, and start: as their user, with what each alone needs.

In: a base made by debootstrap and given as a build argument; buildah in place of a container engine; skopeo as a second reader of
the archives. Needs root and a network. WHEEL=dist in the environment builds them from the wheel of `make wheels`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefast import __version__
from examples.ports import Ports
from examples.running import get

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(2400)]

ROOT = Path(__file__).parents[2]
STORE = ROOT / "build" / "image"
#: Where `.ci/image` has its images.
ENVIRONMENT = {**os.environ, "CONTAINERS_STORAGE_CONF": f"{STORE}/storage.conf"}
#: Options of edgefast, and their ports.
ADDRESSES = {"admin": 19000, "metrics": 19001, "ready": 19003}
#: Flags of a .pyc file that is used whatever its source is (PEP 552).
UNCHECKED = b"\1\0\0\0"
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
    return {name: _inspect(name, "--config") for name in ("edgefast", "edgefast-controller")}


def _inspect(name: str, *options: str) -> Any:
    """What skopeo reads in an archive."""
    # `edgefast:1.2.3`, the chart's default, is short for this name.
    archive = f"oci-archive:{STORE}/{name}.tar:docker.io/library/{name}:{__version__}"
    command = ["skopeo", "inspect", *options, archive]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return json.loads(done.stdout)


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
    for name, image in images.items():
        config = image["config"]
        assert config["User"] == "65532:65532"
        assert config["Entrypoint"] == [name]
        assert not [one for one in config["Env"] if "PIP" in one or "http" in one.lower()]


def test_annotations_and_labels(images: dict[str, dict[str, Any]]) -> None:
    for name, image in images.items():
        manifest = _inspect(name, "--raw")
        for found in (manifest["annotations"], image["config"]["Labels"]):
            at = "org.opencontainers.image"
            assert (found[f"{at}.title"], found[f"{at}.version"]) == (name, __version__)
            assert found[f"{at}.licenses"] == "Apache-2.0"
            assert re.fullmatch(r"[0-9a-f]{40}(-modified)?", found[f"{at}.revision"])
            assert found.get(f"{at}.source", "https://").startswith("https://")
        digest = (STORE / f"{name}.digest").read_text().strip()
        assert _inspect(name)["Digest"] == digest


def test_times_and_modules(images: dict[str, dict[str, Any]]) -> None:
    """Each layer over the base has one time, that of a commit, and no .pyc depends on the time of its source."""
    for name, image in images.items():
        created = int(datetime.fromisoformat(image["created"]).timestamp())
        _, *layers = _inspect(name)["Layers"]
        modules = 0
        with tarfile.open(STORE / f"{name}.tar") as archive:
            for digest in layers:
                blob = archive.extractfile(f"blobs/{digest.replace(':', '/')}")
                times = set()
                with tarfile.open(fileobj=blob, mode="r|gz") as layer:
                    for member in layer:
                        times.add(int(member.mtime))
                        if member.name.endswith(".pyc"):
                            content = layer.extractfile(member)
                            assert content and content.read(8)[4:] == UNCHECKED, member.name
                            modules += 1
                # A layer of an earlier build is used again.
                assert len(times) <= 1 and max(times, default=0) <= created
        assert modules > 1000


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
    command = ["buildah", "run", "--isolation", "chroot", "--network", "host"]
    command += ["--volume", f"{tmp_path}/objects:/etc/edgefast:ro", made, "--"]
    command += ["edgefast", "run", "-f", "/etc/edgefast", "--min-drain", "0"]
    for name, port in ADDRESSES.items():
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


def test_the_services_of_the_compose_file(images: dict[str, Any], tmp_path: Path) -> None:
    """Entrypoint, command and mounts of examples/compose, on ports that are free here; names of services are loopback."""
    ports = Ports()
    folder = ROOT / "examples/compose"
    text = ports.replace((folder / "compose.yaml").read_text().replace('"3000"', '"3001"'))
    services = yaml.safe_load(text)["services"]
    objects = tmp_path / "objects"
    objects.mkdir()
    for path in (folder / "objects").iterdir():
        (objects / path.name).write_text(ports.replace(path.read_text().replace("3000", "3001")))
    names = [f"--add-host={name}:127.0.0.1" for name in services]
    tmp_path.chmod(0o755)
    with ExitStack() as running:
        for name, one in services.items():
            source, target, mode = one["volumes"][0].split(":")
            source = objects if source == "./objects" else folder / source
            image = one["image"].split(":")[0]
            command = one.get("entrypoint") or ["edgefast", *one["command"]]
            if name == "edgefast":
                command += [f"--{each}=127.0.0.1:{ports[port]}" for each, port in ADDRESSES.items()]
            made = _buildah("from", *names, image).strip()
            running.callback(_buildah, "rm", made)
            mount = f"{source}:{target}:{mode}"
            running.enter_context(_service(made, command, mount, tmp_path / name))
        published = int(services["edgefast"]["ports"][0].split(":")[0])
        deadline = time.monotonic() + 60
        while not _is_ready(ports[19003]) or get(published, "/")[0] != 200:
            assert time.monotonic() < deadline, (tmp_path / "edgefast").read_text()
            time.sleep(0.1)
        answer = urllib.request.urlopen(f"http://127.0.0.1:{published}/", timeout=10)
        assert answer.read() == (folder / "site/index.html").read_bytes()


@contextmanager
def _service(made: str, command: list[str], mount: str, log: Path) -> Iterator[None]:
    """A running container."""
    run = ["buildah", "run", "--isolation", "chroot", "--network", "host", "--volume", mount]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*run, made, "--", *command], env=ENVIRONMENT, stdout=out, stderr=out
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


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
