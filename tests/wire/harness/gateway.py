"""The proxy under test: one real `edgefast run` process tree on free loopback ports, with its log and its post-mortem.

In: Gateway API objects. Out: addresses to connect to, and at the end a verdict: still alive, no traceback in the log, no
connection left behind (by the kernel's account). Every run gets a Gateway `void` beside the objects of the test: its port
answers 404 by itself, which tells that the worker's loop has turned, and `/generation` there names the applied table.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from wire.harness import kept, proc
from wire.harness import objects as make
from wire.harness.client import Address, Client, NoResponse
from wire.harness.ports import free_port

START = 90.0  # seconds: ceiling for a start on a busy machine with sanitizers
# Bytes a worker may hold when all is over: a ceiling against leaks, not a measure.
MEMORY = 256 << 20
_BAD = re.compile(
    r"Traceback \(most recent|Exception ignored|never retrieved|exception was never|"
    r"Error in |Unhandled|AddressSanitizer|runtime error:|Segmentation|core dumped|"
    r"callback failed|AssertionError|\bpanic\b",
)
_USUAL = ["--min-drain", "0", "--drain-timeout", "2"]
LIVE: list[Gateway] = []  # those that run, each once: for the log section of failed tests


class Gateway:
    """Use as a context manager. `port("void")` and `admin` are always there."""

    strict = True  # header rules of the product are checked on what it forwards
    alone = False  # needs a process of its own, which no other test has used

    def __init__(
        self,
        objects: Iterable[make.Object],
        *,
        workers: int = 1,
        bind: Sequence[str] = ("127.0.0.1",),
        arguments: Sequence[str] = (),
        prefix: Sequence[str] = (),
        json_file: bool = False,
        min_drain: int = 0,
        drain_timeout: int = 2,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="edgefast-wire-"))
        self.objects = list(objects)
        self.workers = workers
        self.void_port = free_port()
        self.admin = ("127.0.0.1", free_port())
        self.ready = ("127.0.0.1", free_port())
        self.metrics = ("127.0.0.1", free_port())
        self.generation = 0
        self.title = ""  # of its log, below a failed test
        self.file = self.folder / ("objects.json" if json_file else "objects.yaml")
        self.workers_may_die = False
        self.expected_log: list[str] = []  # patterns that are no failure in this run
        self.text_log = False  # some listener's access log is no JSON
        self._bind = tuple(bind)
        self._prefix = list(prefix)  # a command that starts another one: prlimit, taskset
        self._arguments = [*arguments, "--min-drain", str(min_drain)]
        self._arguments += ["--drain-timeout", str(drain_timeout)]
        self._process: subprocess.Popen[bytes] | None = None
        self._first_workers: list[int] = []
        self._log_start = 0
        self._begin = (0, 0)  # sizes of the logs when this test got the process
        self._counters: dict[str, float] = {}  # their values at that time
        self._own_folder = self.folder

    # --- life -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._may_share() and (process := kept.borrow(self.workers)):
            self._adopt(process)
        else:
            self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        kept_on = False
        try:
            if kind is None:
                self.check()
                kept_on = self._may_share() and not self.workers_may_die and self._give_back()
        finally:
            if not kept_on:
                self.stop()
        if kind is None and not kept_on:
            self._log_start = self._begin[1]
            self.check_log()
            self.remove()

    def _may_share(self) -> bool:
        """Whether its process is started with the usual options."""
        usual = self._bind == ("127.0.0.1",) and self.file.suffix == ".yaml"
        return usual and not (self.alone or self._prefix) and self._arguments == _USUAL

    def _adopt(self, process: dict[str, Any]) -> None:
        """Serve the objects from the process of an earlier test."""
        vars(self).update(process)
        LIVE.append(self)
        try:
            said = self._log_sizes()[1]
            self._counters = kept.counters(self.get(self.metrics, "/metrics")[1].decode())
            self.apply(self.objects)
            # The last line of the access log may be in the making.
            self._begin = (self.folder / "out").read_bytes().rfind(b"\n") + 1, said
        except BaseException:
            self.stop()
            raise
        self.begin_watch()

    def _give_back(self) -> bool:
        """Leave the process to a later test."""
        if max(map(proc.resident_bytes, self.worker_pids)) > MEMORY // 2:
            return False
        self._log_start = self._begin[1]
        self.check_log()
        self.write([])
        if not kept.give_back({name: getattr(self, name) for name in kept.ATTRIBUTES}):
            return False
        LIVE.remove(self)
        self._process = None
        if self._own_folder != self.folder:
            shutil.rmtree(self._own_folder, ignore_errors=True)
        return True

    def _log_sizes(self) -> tuple[int, int]:
        """Bytes of standard output and of standard error so far."""
        out, err = ((self.folder / name).stat().st_size for name in ("out", "err"))
        return out, err

    def remove(self) -> None:
        """Delete objects, state and logs; after failures they are kept."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self._own_folder, ignore_errors=True)

    def start(self) -> None:
        """Write the objects, start the process, wait until it serves."""
        self.write()
        command = [sys.executable, "-m", "edgefast.cli.main", "run", "-f", str(self.file)]
        command += ["--workers", str(self.workers), "--state-dir", str(self.folder / "state")]
        for name in ("admin", "ready", "metrics"):
            host, port = getattr(self, name)
            command += [f"--{name}", f"{host}:{port}"]
        for address in self._bind:
            command += ["--bind", address]
        with open(self.folder / "out", "ab") as out, open(self.folder / "err", "ab") as err:
            self._process = subprocess.Popen(
                [*self._prefix, *command, "--settle-time", "0", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self.title = f"edgefast {self._process.pid}"
        self._counters = {}
        if self not in LIVE:  # it may have been started again
            LIVE.append(self)
        try:
            self.wait_until(self._is_ready, "ready", START)
            self.wait_until(self._has_generation, "the first table", START)
        except BaseException:
            self.stop()
            raise
        self.begin_watch()

    def begin_watch(self) -> None:
        """What `check` and `check_log` speak of begins now."""
        self._first_workers = self.worker_pids
        self._log_start = self._log_sizes()[1]

    def stop(self) -> None:
        """SIGTERM, then SIGKILL when it does not end by itself; never leaves a process behind."""
        if self._process is None:
            return
        tree = proc.family(self._process.pid) if self._process.poll() is None else []
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        for pid in tree[1:]:
            if _is_python_child(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process = None
        if self in LIVE:
            LIVE.remove(self)

    @property
    def pid(self) -> int:
        """The agent's process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers."""
        return proc.children(self.pid)

    def terminate(self) -> None:
        """Send SIGTERM only."""
        os.kill(self.pid, signal.SIGTERM)

    def exit_status(self, deadline: float = START) -> int:
        """Wait for the end of the process."""
        assert self._process is not None
        return self._process.wait(deadline)

    # --- configuration --------------------------------------------------------------------------------------------

    def write(self, objects: Iterable[make.Object] | None = None) -> None:
        """Replace the file as an editor would (write beside, rename); does not wait."""
        if objects is not None:
            self.objects = list(objects)
        self.generation += 1
        documents = [*self.objects, *self._own_objects()]
        beside = self.file.with_suffix(".tmp")
        if self.file.suffix == ".json":
            beside.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
        else:
            beside.write_text(yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False))
        beside.rename(self.file)

    def apply(self, objects: Iterable[make.Object]) -> None:
        """Replace the objects and wait until every worker serves the new table."""
        self.write(objects)
        self.wait_until(self._has_generation, f"generation {self.generation}", START)

    def _own_objects(self) -> list[make.Object]:
        host = f"g-{self.generation}.test"
        redirect = {"type": "RequestRedirect", "requestRedirect": {"hostname": host}}
        matches = [make.path("/generation", "Exact")]
        return [
            make.gateway_class(),
            make.gateway("void", [make.listener(self.void_port)]),
            make.route("generation", [{"matches": matches, "filters": [redirect]}], parent="void"),
        ]

    def _is_ready(self) -> bool:
        return self.get(self.ready, "/ready")[0] == 200

    def _has_generation(self) -> bool:
        # New connections spread over the workers: with several, enough of them must agree in a row.
        wanted = f"g-{self.generation}.test"
        for _ in range(1 if self.workers == 1 else 12 * self.workers):
            try:
                with Client(self.void, deadline=5) as client:
                    location = client.request("GET", "/generation").value("location") or ""
            except (OSError, NoResponse):
                return False
            if wanted not in location:
                return False
        return True

    def wait_until(self, check: Callable[[], bool], what: str, deadline: float = START) -> None:
        """Poll a condition; a connection that ends without an answer is "not yet". A failure carries the end of the log."""
        end = time.monotonic() + deadline
        while True:
            assert self._process is not None
            status = self._process.poll()
            assert status is None, f"edgefast ended with {status}:\n{self.log_tail()}"
            with contextlib.suppress(OSError, NoResponse):
                if check():
                    return
            assert time.monotonic() < end, f"no {what} in {deadline} s:\n{self.log_tail()}"
            time.sleep(0.02)

    # --- addresses and what it tells ------------------------------------------------------------------------------

    @property
    def void(self) -> Address:
        """Where every path but /generation is answered with 404 by the proxy itself."""
        return ("127.0.0.1", self.void_port)

    def turn(self) -> None:
        """Return after the worker has done all that it had begun: it counts and logs behind an answer. With one worker."""
        assert self.workers == 1
        with Client(self.void) as client:
            assert client.request("GET", "/turn").status == 404

    @staticmethod
    def get(address: tuple[str, int], path: str, method: str = "GET") -> tuple[int, bytes]:
        """One request to an admin, readiness or metrics server."""
        connection = http.client.HTTPConnection(*address, timeout=START)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def dump(self) -> Any:
        """GET /dump of the admin server."""
        status, body = self.get(self.admin, "/dump")
        assert status == 200, body
        return json.loads(body)

    def metric(self, name: str, **labels: str) -> float:
        """Sum of a metric over all series that carry these labels, since the test began; there must be a metric of this name."""
        status, body = self.get(self.metrics, "/metrics")
        assert status == 200, body
        families = re.findall(r"^# TYPE (\S+) ", body.decode(), re.MULTILINE)
        assert {name, re.sub("_(bucket|count|sum)$", "", name)} & {*families}, name
        total = 0.0
        for line in body.decode().splitlines():
            if re.match(rf"{re.escape(name)}[ {{]", line) and all(
                f'{key}="{value}"' in line for key, value in labels.items()
            ):
                series, _, value = line.rpartition(" ")
                total += float(value) - self._counters.get(series, 0.0)
        return total

    @property
    def log(self) -> str:
        """Everything written to standard error in this test."""
        return self._read("err", self._begin[1])

    @property
    def access_log(self) -> str:
        """Everything written to standard output in this test."""
        return self._read("out", self._begin[0])

    def _read(self, name: str, start: int) -> str:
        return (self.folder / name).read_bytes()[start:].decode(errors="replace")

    def log_tail(self, lines: int = 60) -> str:
        """The end of both logs."""
        out, err = self.access_log.splitlines()[-15:], self.log.splitlines()[-lines:]
        return "\n".join(["--- stderr", *err, "--- stdout", *out])

    # --- verdict --------------------------------------------------------------------------------------------------

    def client_connections(self) -> list[proc.Connection]:
        """Connections that clients have open to any listener of the proxy."""
        found = proc.connections(proc.family(self.pid))
        listening = {item.local_port for item in found if item.state == "LISTEN"}
        return [i for i in found if i.local_port in listening and i.state != "LISTEN"]

    def check_no_leak(self, deadline: float = START) -> None:
        """All clients are gone: the proxy must hold no client connection and no dead upstream one."""
        end = time.monotonic() + deadline
        while True:
            own = {self.admin[1], self.ready[1], self.metrics[1]}
            left = [item for item in self.client_connections() if item.local_port not in own]
            tree = proc.family(self.pid)
            dead = [item for item in proc.connections(tree) if item.state == "CLOSE_WAIT"]
            if not left and not dead:
                return
            assert time.monotonic() < end, f"leaked: clients {left}, closed by the peer {dead}"
            time.sleep(0.02)

    def check(self) -> None:
        """Alive, the same workers as at the start, nothing leaked by the kernel's account and by its own."""
        assert self._process is not None
        assert self._process.poll() is None, f"edgefast died:\n{self.log_tail()}"
        if not self.workers_may_die:
            workers = self.worker_pids
            assert workers == self._first_workers, f"a worker died:\n{self.log_tail()}"
        self.check_no_leak()
        for gauge in ("requests", "connections", "tunnels"):
            name = f"edgefast_{gauge}_active"
            self.wait_until(lambda name=name: self.metric(name) == 0, f"{name} 0")  # type: ignore[misc]
        for pid in self.worker_pids:
            resident = proc.resident_bytes(pid)
            assert resident < MEMORY, f"worker {pid} holds {resident} bytes"

    def check_log(self) -> None:
        """No traceback, sanitizer report or unhandled error was logged, and the access log is whole lines."""
        for line in self._read("err", self._log_start).splitlines():
            if _BAD.search(line) and not any(re.search(it, line) for it in self.expected_log):
                raise AssertionError(f"the log has {line!r}:\n{self.log_tail()}")
        for entry in (self.folder / "out").read_bytes()[self._begin[0] :].split(b"\n"):
            assert entry.isascii() and entry.decode().isprintable(), entry
            assert not entry or self.text_log or isinstance(json.loads(entry), dict), entry


def _is_python_child(pid: int) -> bool:
    # The number may have been given to another process since: only end what is ours.
    try:
        return b"edgefast" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
