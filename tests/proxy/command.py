"""`edgefast run` (or another serving command) as a process, for the tests that look at it from outside: objects to serve, start, addresses, end."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from daemon.lines import LINE
from edgefast.httpd.address import Address
from edgefast.httpd.control_socket import send_command
from proxy.living import ROOT
from proxy.pki import Pair
from wire.harness.ports import free_port

Object = dict[str, Any]

PACKAGES = os.pathsep.join(
    (str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
)


def gateway_class() -> Object:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": "edge"},
        "spec": {"controllerName": "gateway.edge.io/gatewayclass-controller"},
    }


def gateway(*ports: int, tls: str = "") -> Object:
    listeners: list[Object] = []
    for port in ports:
        listener: Object = {"name": f"p{port}", "protocol": "HTTP", "port": port}
        if tls:
            listener["protocol"] = "HTTPS"
            listener["tls"] = {"certificateRefs": [{"name": tls}]}
        listeners.append(listener)
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "edge", "namespace": "default"},
        "spec": {"gatewayClassName": "edge", "listeners": listeners},
    }


def route(mark: str, name: str = "web") -> Object:
    redirect = {"type": "RequestRedirect", "requestRedirect": {"hostname": f"{mark}.test"}}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"parentRefs": [{"name": "edge"}], "rules": [{"filters": [redirect]}]},
    }


def tls_secret(pair: Pair) -> Object:
    data = {"tls.crt": pair.certificate, "tls.key": pair.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": "cert", "namespace": "default"},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }


def save(path: Path, *objects: Object) -> None:
    beside = path.with_suffix(".tmp")
    beside.write_text(yaml.safe_dump_all(objects))
    beside.rename(path)


class Process:
    """One `edgefast run`; leave it through `stop`."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        stderr: int | None = None,
        nofile: int | None = None,
        serve: str = "run",
        after: Process | None = None,
        python: str = "",
    ) -> None:
        """`after`: the command whose addresses it reuses. `python`: another interpreter of the same version, with the same packages."""
        if after is None:
            self.admin, self.metrics, self.ready = (free_port() for _ in range(3))
        else:
            self.admin, self.metrics, self.ready = after.admin, after.metrics, after.ready
        number = len(list(folder.glob("err-*")))
        self._err = folder / f"err-{number}"
        self._out = folder / f"out-{number}"
        command = [
            python or sys.executable,
            "-m",
            "edgefast.cli.main",
            serve,
            "--bind",
            "127.0.0.1",
        ]
        command += ["--admin", f"127.0.0.1:{self.admin}", "--metrics", f"127.0.0.1:{self.metrics}"]
        command += ["--ready", f"127.0.0.1:{self.ready}", "--min-drain", "0", *arguments]
        if serve == "run" and "--settle-time" not in arguments:
            command += ["--settle-time", "0"]
        if nofile is not None:
            # Without CAP_SYS_RESOURCE, with which the agent would raise the limit again.
            without = ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource"]
            command = [*(without if os.geteuid() == 0 else []), *command]
            command = ["prlimit", f"--nofile={nofile}:{nofile}", *command]
        with open(self._err, "wb") as err, open(self._out, "wb") as out:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err if stderr is None else stderr,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": PACKAGES} if python else None,
            )

    @property
    def said(self) -> str:
        return self._err.read_text()

    @property
    def logged(self) -> str:
        return self._out.read_text()

    def until(self, check: Callable[[], Any], what: str, deadline: float = 90.0) -> None:
        end = time.monotonic() + deadline
        while True:
            try:
                if check():
                    return
            except OSError:
                pass
            assert self.process.poll() is None, f"ended: {self.process.returncode}\n{self.said}"
            assert time.monotonic() < end, f"no {what}:\n{self.said}"
            time.sleep(0.01)

    def wait_ready(self) -> None:
        self.until(lambda: self.get(self.ready, "/ready")[0] == 200, "readiness")

    def get(self, port: int, path: str, method: str = "GET", body: str = "") -> tuple[int, str]:
        if (
            method == "POST" and port == self.admin
        ):  # an order, which is taken on a socket of its own
            status, answer = send_command(Address("127.0.0.1", port), path, 60, body.encode())
            return status, answer.decode()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, path, body=body or None)
            found = connection.getresponse()
            return found.status, found.read().decode()
        finally:
            connection.close()

    def dump(self) -> Any:
        return json.loads(self.get(self.admin, "/dump")[1])

    def workers(self) -> list[int]:
        found: list[int] = []
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):  # a thread that has ended since
                found += map(int, (task / "children").read_text().split())
        return found

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            status = self.process.wait(60)
        finally:
            self.kill()
        if status != 2:  # wrong usage is told as every command tells it
            assert [line for line in self.said.splitlines() if not LINE.match(line)] == []
        return status

    def kill(self) -> None:
        """SIGKILL to the agent alone."""
        self.process.kill()
        self.process.wait(20)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def begin(*arguments: str, **options: Any) -> Process:
        made.append(Process(tmp_path, *arguments, **options))
        return made[-1]

    yield begin
    for one in made:
        one.stop()


def mark_of(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        return (answer.getheader("location") or str(answer.status)).partition(".test")[0][7:]
    finally:
        connection.close()


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


Start = Callable[..., Process]
