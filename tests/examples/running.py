"""One example running as its reader would run it: origins and gateway on free ports, and the promises of its comments."""

from __future__ import annotations

import http.client
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from examples.ports import Ports
from wire.harness.gateway import Gateway
from wire.harness.programs import ALONE

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DEADLINE = 90.0

_PROMISE = re.compile(r"^#   (curl .*?)\s+# (\d{3})((?: \S+)*)$", re.M)


@dataclass(frozen=True)
class Promise:
    """One curl line and what its comment says: status, service that answers, and fields (`path=/a`, `location=...`)."""

    command: str
    status: int
    service: str
    fields: tuple[tuple[str, str], ...]


def read_promises(text: str) -> list[Promise]:
    """The curl lines in an example's comment."""
    found = []
    for command, status, rest in _PROMISE.findall(text):
        words = rest.split()
        service = words.pop(0) if words and "=" not in words[0] else ""
        fields = tuple((name, value) for name, _, value in (word.partition("=") for word in words))
        found.append(Promise(command, int(status), service, fields))
    return found


class Example:
    """Use as a context manager; the origins and the gateway run inside it."""

    def __init__(
        self,
        name: str,
        folder: Path,
        more: tuple[Path, ...] = (),
        gateway: Gateway | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        """`options`: further ones of `edgefast run`. `gateway`: a running gateway that serves the example, instead of a new one."""
        self.ports = Ports()
        self._gateway = gateway
        if gateway is not None:
            for fixed, (_, port) in ((19000, gateway.admin), (19001, gateway.metrics)):
                self.ports.choose(fixed, port)
        self.folder = folder
        self.file = folder / name
        text = (
            (EXAMPLES / name)
            .read_text()
            .replace("/tmp/edgefast-example.sock", str(folder / "socket"))
        )
        self.text = self.ports.replace(text)
        self.file.write_text(self.text)
        self.promises = read_promises(self.text)
        self._more = more
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Example:
        command = [sys.executable, str(EXAMPLES / "origin.py"), str(self.file)]
        command += self._run_command() if self._gateway is None else []
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            if self._gateway is not None:
                self._gateway.apply(self._objects())
            self._wait_ready(self._process)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            self._process.wait(20)

    def _run_command(self) -> list[str]:
        command = ["--run", "--", sys.executable, "-m", "edgefast.cli.main", "run"]
        command += ["--workers", "1", "-f", str(self.file)]
        for path in self._more:
            command += ["-f", str(path)]
        for name, fixed in (("admin", 19000), ("metrics", 19001), ("ready", 19003)):
            command += [f"--{name}", f"127.0.0.1:{self.ports[fixed]}"]
        command += map(self.ports.replace, self._options)
        return [*command, "--min-drain", "0", "--drain-timeout", "2", "--settle-time", "0"]

    def _objects(self) -> list[dict[str, Any]]:
        """The objects of the files without the class, which a gateway of the harness has already."""
        found = [
            one
            for path in (self.file, *self._more)
            for one in yaml.safe_load_all(path.read_text())
            if one and one["kind"] != "GatewayClass"
        ]
        return found

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + DEADLINE
        while True:
            assert process.poll() is None, f"ended with {process.returncode}:\n{self.log}"
            try:
                if self._gateway is None:
                    if get(self.ports[19003], "/ready")[0] == 200:
                        return
                elif "origins are ready" in self.log:
                    return
            except OSError:
                pass
            assert time.monotonic() < end, f"not ready in {DEADLINE} s:\n{self.log}"
            time.sleep(0.02)

    @property
    def log(self) -> str:
        """All output of the gateway and the origins."""
        said = (self.folder / "log").read_text(errors="replace")
        return said if self._gateway is None else said + self._gateway.log_tail()


def get(port: int, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """One GET on loopback."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def curl(command: str) -> tuple[int, dict[str, str], bytes]:
    """Run a curl line as written; returns the status, the headers in lower case and the body."""
    arguments = shlex.split(command)
    assert arguments[0] == "curl", command
    made: Any = subprocess.run(
        ["curl", "-s", "-S", "-i", "--max-time", "20", *arguments[1:]],
        capture_output=True,
        timeout=30,
        env=ALONE,
    )
    assert made.returncode == 0, f"{command}: {made.stderr.decode()}"
    head, _, body = made.stdout.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 1") or ("-L" in arguments and head.startswith(b"HTTP/1.1 3")):
        head, _, body = body.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    return int(status.split()[1]), headers, body


def leave_the_hour() -> None:
    """Wait for the next hour when this one ends soon: limits would begin anew amid the promises."""
    left = 3600 - time.time() % 3600
    if left < 45:
        time.sleep(left)
