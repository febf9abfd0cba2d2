"""A proxy under test: how it is found, configured, started pinned, awaited and stopped.

In: a `Scenario` and the origin's port. Out: a `Running` proxy that has answered a request.
Must never hide a proxy: one that is missing, cannot do a scenario, or does not come up within
its bounds raises `PeerUnavailable`, whose text goes into the table.
"""

import http.client
import shutil
import socket
import ssl
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import http2_client
from bench.certificate import Certificate
from bench.newest import find_newest, read_missing
from bench.process import PROXY_CPU, find_tree, read_pss_bytes, start_pinned, stop_process
from bench.scenario import Scenario

START_SECONDS = 60.0
START_BYTES = 6 << 30
MEMORY_CHECK_SECONDS = 1.0
READY, READY_SECONDS = b"ready", 0.2  # a datagram that is not answered yet


class PeerUnavailable(Exception):
    """This proxy cannot take part in this row; the text says why."""


@dataclass(frozen=True)
class Setup:
    """What a configuration is rendered from; `port` is free, `folder` is empty and its own."""

    scenario: Scenario
    folder: Path
    port: int
    origin_port: int
    certificate: Certificate


@dataclass(frozen=True)
class Running:
    """A started proxy that has answered 200 once; ready_seconds from exec to that answer."""

    peer: "Peer"
    setup: Setup
    process: subprocess.Popen[bytes]
    ready_seconds: float

    def pids(self) -> list[int]:
        """All processes of the proxy now."""
        return find_tree(self.process.pid)

    def stop(self) -> None:
        """End the proxy and everything it started."""
        stop_process(self.process)


class Peer(ABC):
    """One kind of proxy."""

    name: str
    policies: bool = False  # takes scenarios with a policy
    routes: bool = True  # chooses a backend by host and path

    @abstractmethod
    def find_program(self) -> Path | None:
        """The executable, or None when it is not installed."""

    @abstractmethod
    def read_version(self) -> str:
        """Version for the machine line."""

    @abstractmethod
    def render(self, setup: Setup) -> list[str]:
        """Write the configuration into setup.folder; returns the command line."""

    def adapt(self, scenario: Scenario) -> Scenario:
        """What this proxy does of it."""
        return scenario

    def check_scenario(self, scenario: Scenario) -> str | None:
        """Why this proxy cannot do the scenario, or None."""
        return None

    def read_facts(self) -> dict[str, float]:
        """What goals must know of it beside what is measured."""
        return {}

    def find_log(self, setup: Setup) -> Path:
        """The file that takes the access log: what the proxy prints, unless it names a file."""
        named = setup.folder / "access.log"
        return named if named.exists() else setup.folder / f"{self.name}.out"

    def prepare_reload(self, running: Running, scenario: Scenario) -> Callable[[], None]:
        """Write what a running proxy shall serve next; returns what makes it take it up."""
        raise PeerUnavailable("no reload measured for this proxy")

    def start(self, setup: Setup) -> Running:
        """Render, start on the proxy CPU and wait for the first 200 on the last route."""
        if self.find_program() is None:
            raise PeerUnavailable(read_missing(self.name) or "not installed")
        if setup.scenario.policy and not self.policies:
            raise PeerUnavailable("has no such policies here")
        if reason := self.check_scenario(setup.scenario):
            raise PeerUnavailable(reason)
        argv = self.render(setup)
        began = time.monotonic()
        process = start_pinned(argv, PROXY_CPU, setup.folder, self.name)
        try:
            wait_ready(process, setup)
        except PeerUnavailable as error:
            stop_process(process)
            err = (setup.folder / f"{self.name}.err").read_text(errors="replace").strip()
            out = (setup.folder / f"{self.name}.out").read_text(errors="replace").strip()
            last = (err or out).splitlines()[-1:] or ["no output"]
            raise PeerUnavailable(f"{error} ({last[0][:200]})") from None
        return Running(self, setup, process, time.monotonic() - began)


def find_program(name: str) -> Path | None:
    """The newest that `make bench` has made, else of the PATH or of /usr/sbin, where Debian keeps servers."""
    newest = find_newest(name)
    if newest is not None:
        return newest
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    return Path(found) if found else None


def read_first_line(argv: list[str]) -> str:
    """First line of what a version command prints, on either stream."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return (done.stdout.decode(errors="replace").strip().splitlines() or ["unknown"])[0]


def find_free_port(datagrams: bool = False) -> int:
    """A TCP port of 127.0.0.1, or a UDP port, that was free a moment ago."""
    with socket.socket(type=socket.SOCK_DGRAM if datagrams else socket.SOCK_STREAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def connect(setup: Setup, host: str, timeout: float = 5.0) -> http.client.HTTPConnection:
    """A client connection to the proxy; where the scenario has TLS that of `host`, unverified. OSError without one."""
    client = http.client.HTTPConnection("127.0.0.1", setup.port, timeout=timeout)
    if setup.scenario.tls_clients:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", setup.port), timeout)
        try:
            client.sock = context.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise
    return client


def echo(setup: Setup, data: bytes, timeout: float = 5.0) -> bytes:
    """What comes back for a datagram; OSError when nothing does."""
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.settimeout(timeout)
        client.connect(("127.0.0.1", setup.port))
        client.send(data)
        return client.recv(1 << 16)


def get_status(setup: Setup, index: int, timeout: float = 5.0) -> int:
    """Status of one GET of route `index` on a new connection; 0 when there was no answer."""
    route = setup.scenario.make_route(index)
    if setup.scenario.http2:
        port, path, host = setup.port, route.prefix, route.host
        try:
            if setup.scenario.grpc:
                return http2_client.call(port, path, host, timeout).status
            return http2_client.ask(port, "GET", path, host, timeout=timeout).status
        except OSError:
            return 0
    if setup.scenario.stream == "udp":
        try:
            return 200 if echo(setup, READY, READY_SECONDS) == READY else 0
        except OSError:
            return 0
    client = None
    try:
        client = connect(setup, route.host, timeout)
        client.request("GET", route.prefix, headers={"Host": route.host})
        response = client.getresponse()
        response.read()
        return response.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        if client is not None:
            client.close()


def wait_ready(process: subprocess.Popen[bytes], setup: Setup) -> None:
    """Poll the listener until the last route answers 200, within START_SECONDS and START_BYTES."""
    began = checked = time.monotonic()
    while (now := time.monotonic()) - began < START_SECONDS:
        if process.poll() is not None:
            raise PeerUnavailable(f"ended with status {process.returncode} at start")
        if now - checked > MEMORY_CHECK_SECONDS:
            checked = now
            if read_pss_bytes(find_tree(process.pid)) > START_BYTES:
                raise PeerUnavailable(f"more than {START_BYTES >> 30} GiB while loading")
        if get_status(setup, setup.scenario.routes - 1) == 200:
            return
        time.sleep(0.002)
    raise PeerUnavailable(f"not ready within {START_SECONDS:.0f} s")
