"""The proxy under test: one real `edgefast run` process tree on free loopback ports, with its log and its post-mortem.

In: Gateway API objects. Out: addresses to connect to, and at the end a verdict: still alive, no traceback in the log, no
connection left behind (by the kernel's account). Every run gets a Gateway `void` beside the objects of the test: its port
answers 404 by itself, which tells that the worker's loop has turned, and `/generation` there names the applied table.
"""

from __future__ import annotations

import contextlib
import copy
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
from wire.harness.logs import Logs
from wire.harness.ports import free_port

START = 90.0  # seconds: ceiling for a start on a busy machine with sanitizers
END = 30.0  # seconds: ceiling for an end on a busy machine
# Bytes a worker may hold when all is over: a ceiling against leaks, not a measure.
MEMORY = 256 << 20
_USUAL = ["--min-drain", "0", "--drain-timeout", "2"]
LIVE: list[Gateway] = []  # those that run, each once: for the log section of failed tests


class Gateway:
    """Use as a context manager. `port("void")` and `admin` are always there."""

    strict = True  # header rules of the product are checked on what it forwards
    alone = False  # needs a new process, which no other test has used

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
        self.served: list[str] = []  # the tests that used the process before
        self._first_workers: list[int] = []
        self._logs = Logs(self.folder)
        self._counters: dict[str, float] = {}  # their values at that time
        self._own_folder = self.folder

    # --- life -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._may_share() and (before := kept.borrow(self.workers)):
            self._adopt(before)
        else:
            self.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _: object) -> None:
        try:
            if error is not None:
                self.stop()
            else:
                self.check()
                if not self._give_back():
                    self.end()
        except BaseException as fault:
            error = fault
            self.stop()
            raise
        finally:
            if error is not None and self.past:
                error.add_note(self.past)

    def _may_share(self) -> bool:
        """Whether its process is started with the usual options."""
        usual = self._bind == ("127.0.0.1",) and self.file.suffix == ".yaml"
        return usual and not (self.alone or self._prefix) and self._arguments == _USUAL

    def _adopt(self, before: Gateway) -> None:
        """Serve the objects from the process of an earlier test."""
        for name in kept.ATTRIBUTES:
            setattr(self, name, getattr(before, name))
        LIVE.append(self)
        try:
            self._logs.begin()
            self._counters = kept.counters(self.get(self.metrics, "/metrics")[1].decode())
            self.apply(self.objects)
            self._logs.begin_out()
        except BaseException as fault:
            fault.add_note(self.past)
            self.stop()
            raise

    def _give_back(self) -> bool:
        """Leave the process to a later test, without the objects of this one. False: it is to end with them."""
        if self.workers_may_die or not self._may_share() or not kept.has_place(self.served):
            return False
        if max(map(proc.resident_bytes, self.worker_pids)) > MEMORY // 2:
            return False
        self.apply([])
        self.check_alive()
        self.check_log()
        LIVE.remove(self)
        before = copy.copy(self)
        before.served = [*self.served, kept.this_test()]
        kept.give_back(before)
        self._process = None
        if self._own_folder != self.folder:
            shutil.rmtree(self._own_folder, ignore_errors=True)
        return True

    @property
    def past(self) -> str:
        """Which tests the process served before this one; "" where there are none."""
        before = f"this gateway served {len(self.served)} tests before: {', '.join(self.served)}"
        return f"{kept.this_test()}: {before}" if self.served else ""

    def end(self) -> None:
        """Stop the process, check how it ends and the rest of its log, delete its files."""
        fault = self.stop()
        assert not fault, f"{fault}:\n{self.log_tail()}"
        self.check_log()
        self.remove()

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
        self.alone = self.alone or self.title != ""  # one that was started again is not passed on
        self.title = f"edgefast {self._process.pid}"
        self._counters, self.served = {}, []
        if self not in LIVE:  # it may have been started again
            LIVE.append(self)
        try:
            self.wait_until(self._is_ready, "ready", START)
            self.wait_until(self._has_generation, "the first table", START)
        except BaseException:
            self.stop()
            raise
        self._first_workers = self.worker_pids

    def stop(self) -> str:
        """SIGTERM, then SIGKILL when it does not end by itself; never leaves a process behind. Returns what was wrong with its end."""
        if self._process is None:
            return ""
        tree = proc.family(self._process.pid) if self._process.poll() is None else []
        self._process.terminate()
        try:
            status = self._process.wait(END)
            fault = f"edgefast ended with {status}" if status else ""
        except subprocess.TimeoutExpired:
            fault = f"edgefast did not end in {END} s"
            self._process.kill()
            self._process.wait(10)
        for pid in tree[1:]:
            if proc.is_edgefast(pid):
                fault = fault or f"edgefast left process {pid} behind"
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process = None
        if self in LIVE:
            LIVE.remove(self)
        return fault

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
        return self._logs.err

    @property
    def access_log(self) -> str:
        """Everything written to standard output in this test."""
        return self._logs.out

    def log_tail(self, lines: int = 60) -> str:
        """The end of both logs."""
        return self._logs.tail(lines)

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

    def check_alive(self) -> None:
        """It runs, with the workers of its start."""
        assert self._process is not None
        assert self._process.poll() is None, f"edgefast died:\n{self.log_tail()}"
        if not self.workers_may_die:
            workers = self.worker_pids
            assert workers == self._first_workers, f"a worker died:\n{self.log_tail()}"

    def check(self) -> None:
        """Check that it runs with the same workers as at the start, without leaks in the counts of the kernel and its own."""
        self.check_alive()
        self.check_no_leak()
        for gauge in ("requests", "connections", "tunnels"):
            name = f"edgefast_{gauge}_active"
            self.wait_until(lambda name=name: self.metric(name) == 0, f"{name} 0")  # type: ignore[misc]
        for pid in self.worker_pids:
            resident = proc.resident_bytes(pid)
            assert resident < MEMORY, f"worker {pid} holds {resident} bytes"

    def check_log(self) -> None:
        """Since the last check no traceback, sanitizer report or unhandled error was logged, and the access log is whole lines."""
        self._logs.check(self.expected_log, text=self.text_log, ended=self._process is None)
