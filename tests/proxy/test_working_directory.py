"""The folder that a process is started in gives it no code: modules there have the names of what it imports, and say so when they run."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proxy.command import gateway, gateway_class, mark_of, route, save
from proxy.pki import Authority
from wire.harness.ports import free_port
from xds.living import write_files

pytestmark = pytest.mark.wire

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
DEADLINE = 60.0  # seconds: against hangs

#: Modules of Python's own library, of others, and of the product.
_MODULES = ("json", "logging", "uvloop", "msgspec", "h11", "yaml", "grpc", "sitecustomize")
_PACKAGES = ("edgefast", "controller", "asyncio", "click", "kubernetes_asyncio")
_TAKEN = (
    "import os\nopen({mark!r}, 'a').close()\nraise SystemExit('taken from the working directory')\n"
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder to start in."""
    folder = tmp_path / "hostile"
    for name in _PACKAGES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(_TAKEN.format(mark=str(tmp_path / "taken")))
    for name in _MODULES:
        (folder / f"{name}.py").write_text(_TAKEN.format(mark=str(tmp_path / "taken")))
    return folder


class Started:
    """A command in the hostile folder."""

    def __init__(self, folder: Path, program: str, *words: str) -> None:
        self._err = folder.parent / "err"
        with self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [BIN / program, *words],
                cwd=folder,
                env={name: value for name, value in os.environ.items() if "PYTHON" not in name},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
            )

    @property
    def said(self) -> str:
        return self._err.read_text()

    def until(self, check: Callable[[], Any]) -> None:
        end = time.monotonic() + DEADLINE
        while not check():
            assert self.process.poll() is None and time.monotonic() < end, self.said
            time.sleep(0.01)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.process.wait(DEADLINE)


_OFF = ("--metrics", "off", "--ready", "off", "--min-drain", "0", "--workers", "2")


def answered(port: int, mark: str) -> bool:
    try:
        return mark_of(port) == mark
    except OSError:
        return False


def test_a_standalone_gateway(hostile: Path, tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "all.yaml", gateway_class(), gateway(port), route("own"))
    words = ["run", "-f", str(tmp_path / "all.yaml"), "--bind", "127.0.0.1", "--admin", "off"]
    run = Started(hostile, "edgefast", *words, *_OFF)
    try:
        run.until(lambda: answered(port, "own"))
    finally:
        assert run.stop() == 0, run.said
    assert not (tmp_path / "taken").exists() and "is gone" not in run.said


def test_a_proxy_of_a_controller(hostile: Path, tmp_path: Path) -> None:
    """It finds no controller; its workers live all the same, which `/dump` tells."""
    files = write_files(tmp_path, Authority())
    admin = free_port()
    words = ["proxy", "--xds", f"127.0.0.1:{free_port()}", "--node", "edge-0", *_OFF]
    words += ["--ca", str(files.ca), "--cert", str(files.certificate), "--key", str(files.key)]
    proxy = Started(hostile, "edgefast", *words, "--admin", f"127.0.0.1:{admin}")
    try:
        dump = [BIN / "edgefast", "dump", "--admin", f"127.0.0.1:{admin}", "-o", "json"]
        proxy.until(
            lambda: (
                subprocess.run(dump, cwd=hostile, capture_output=True, text=True)
                .stdout.replace(" ", "")
                .count('"engine":')
                == 2
            )
        )
    finally:
        proxy.stop()
    assert not (tmp_path / "taken").exists() and "is gone" not in proxy.said


def is_served(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 10):
        return True
    return False


def test_the_manager_of_a_shutdown(hostile: Path, tmp_path: Path) -> None:
    port = free_port()
    words = ["--listen", f"127.0.0.1:{port}", "--ready-file", str(tmp_path / "ready")]
    manager = Started(hostile, "edgefast", "shutdown-manager", *words)
    try:
        manager.until(lambda: is_served(port))
        drain = [BIN / "edgefast", "shutdown", "--admin", f"127.0.0.1:{free_port()}"]
        drain += ["--ready-file", str(tmp_path / "ready"), "--min-drain", "0"]
        done = subprocess.run(drain, cwd=hostile, capture_output=True, text=True, timeout=DEADLINE)
        assert (tmp_path / "ready").exists(), done.stderr
    finally:
        assert manager.stop() == 0, manager.said
    assert not (tmp_path / "taken").exists()


def test_a_controller(hostile: Path, tmp_path: Path) -> None:
    """It gets as far as the API server that is not there."""
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        f"clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{free_port()}'}}}}]\n"
        "users: [{name: a, user: {}}]\n"
    )
    write_files(tmp_path, Authority())
    words = ["run", "--kubeconfig", str(config), "--certs", str(tmp_path), "--xds", "127.0.0.1:0"]
    words += ["--xds-token", "off", "--relay", "off", "--probes", "off", "--metrics", "off"]
    words += ["--admin", "127.0.0.1:0"]
    controller = Started(hostile, "edgefast-controller", *words)
    try:
        controller.until(lambda: "Unreachable" in controller.said)
    finally:
        assert controller.stop() == 0, controller.said
    assert not (tmp_path / "taken").exists() and "Traceback" not in controller.said


def test_whatever_is_started_by_a_modules_name_looks_nowhere_else() -> None:
    """`-m` puts the working directory first; `-P` keeps it out."""
    made = [ROOT / "Dockerfile", *ROOT.glob("edgefast/**/*.py"), *ROOT.glob("controller/**/*.py")]
    texts = {path: path.read_text() for path in made}
    started = {
        f"{path.name}: {line.strip()}"
        for path, text in texts.items()
        for line in text.splitlines()
        if re.search(r'"-m"|/bin/python\S* .*-m ', line)
        and not re.search(r'"-P", "-m"|/bin/python\S* -P -m ', line)
    }
    assert started == set()
    assert "PYTHONSAFEPATH=1" in texts[ROOT / "Dockerfile"]
