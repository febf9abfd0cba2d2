"""A container's end: the proxy drains, hooks wait for it, SIGTERM comes when there is nothing left to do."""

from __future__ import annotations

import http.client
import http.server
import json
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from edgefast.cli.main import main
from edgefast.httpd.address import Address
from edgefast.httpd.control_socket import command_names
from edgefast.proxy.shutdown import drain_proxy
from proxy.command import Start, gateway, gateway_class, route, save
from proxy.living import ROOT, taken
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "edgefast.cli.main", *arguments]


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers={"Host": "10.1.2.3:19002"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Manager:
    """`edgefast shutdown-manager` as a process."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.port = free_port()
        self.file = folder / "shutdown-ready"
        given = ["--listen", f"127.0.0.1:{self.port}", "--ready-file", str(self.file), *arguments]
        self.process = subprocess.Popen(
            command("shutdown-manager", *given), cwd=ROOT, stderr=subprocess.DEVNULL
        )
        until(self._lives, "a healthy manager")

    def _lives(self) -> bool:
        assert self.process.poll() is None
        try:
            return get(self.port, "/healthz") == (200, "ok\n")
        except OSError:
            return False

    def ask(self, source: str = "127.0.0.1") -> list[tuple[int, str]]:
        """Ask `/shutdown/ready` as a hook does; the answer is put into the list."""
        answers: list[tuple[int, str]] = []
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=60, source_address=(source, 0)
        )
        connection.request("GET", "/shutdown/ready")

        def wait() -> None:
            answer = connection.getresponse()
            answers.append((answer.status, answer.read().decode()))
            connection.close()

        threading.Thread(target=wait, daemon=True).start()
        return answers


def until(check: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + 60
    while not check():
        assert time.monotonic() < end, f"no {what}"
        time.sleep(0.01)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Callable[..., Manager]]:
    made: list[Manager] = []

    def begin(*arguments: str) -> Manager:
        made.append(Manager(tmp_path, *arguments))
        return made[-1]

    yield begin
    for one in made:
        one.process.kill()
        one.process.wait(60)


class FakeAdmin(http.server.ThreadingHTTPServer):
    """Says how many connections are left, from a list; the last one again and again."""

    def __init__(self, counts: list[int | None]) -> None:
        self.counts = counts
        self.orders: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._thread.start()
        self._orders = _Orders(f"\0{command_names(self.address)[0]}", _Handler)
        self._orders.orders = self.orders
        self._order_thread = threading.Thread(target=self._orders.serve_forever, args=(0.01,))
        self._order_thread.start()

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.server_address[1])

    def stop(self) -> None:
        for server, thread in ((self, self._thread), (self._orders, self._order_thread)):
            server.shutdown()
            thread.join(20)
            server.server_close()


class _Orders(socketserver.ThreadingUnixStreamServer):
    orders: list[str]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: FakeAdmin

    def do_POST(self) -> None:
        self.server.orders.append(self.path)
        self._send(202, b"draining\n")

    def do_GET(self) -> None:
        counts = self.server.counts
        count = counts.pop(0) if len(counts) > 1 else counts[0]
        if count is None:
            self._send(500, b"")
        else:
            self._send(200, json.dumps({"active": count, "phase": "draining"}).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def drain(counts: list[int | None], **timings: Any) -> tuple[bool, float, list[str], FakeAdmin]:
    server = FakeAdmin(counts)
    said: list[str] = []
    began = time.monotonic()
    chosen = {"min_drain": 0.0, "drain_timeout": 20.0, "exit_at_connections": 0, **timings}
    try:
        done = drain_proxy(server.address, say=said.append, poll=0.02, **chosen)
    finally:
        server.stop()
    return done, time.monotonic() - began, said, server


def test_it_waits_until_nobody_is_left() -> None:
    done, _, said, server = drain([3, 2, None, 1, 0])
    assert done
    assert server.orders == ["/healthcheck/fail"]
    assert server.counts == [0]
    assert "0 connections are left" in said[-1]


def test_it_waits_for_load_balancers_even_when_nobody_is_there() -> None:
    done, took, _, _ = drain([0], min_drain=0.4)
    assert done
    assert took >= 0.4


def test_few_may_be_few_enough() -> None:
    done, _, said, server = drain([9, 5, 4], exit_at_connections=5)
    assert done
    assert server.counts == [4]
    assert "5 connections are left" in said[-1]


@pytest.mark.parametrize("count", [1, None])
def test_it_does_not_wait_for_ever(count: int | None) -> None:
    done, took, said, _ = drain([count], drain_timeout=0.3)
    assert not done
    assert 0.3 <= took < 15
    assert "not drained" in said[-1]


def test_a_proxy_that_is_gone_has_drained() -> None:
    sock, port = taken()
    sock.close()
    said: list[str] = []
    assert drain_proxy(
        Address("127.0.0.1", port),
        min_drain=60,
        drain_timeout=60,
        exit_at_connections=0,
        say=said.append,
    )
    assert "the proxy ended" in said[-1]


def test_the_file_is_written_whatever_happens(tmp_path: Path) -> None:
    server = FakeAdmin([1])
    try:
        given = ["shutdown", "--admin", str(server.address), "--ready-file", str(tmp_path / "f")]
        done = CliRunner().invoke(main, [*given, "--min-drain", "0", "--drain-timeout", "0"])
    finally:
        server.stop()
    assert done.exit_code == 1
    assert (tmp_path / "f").exists()


# --- the manager ------------------------------------------------------------------------------------


def test_hooks_wait_for_the_file(manager: Callable[..., Manager], tmp_path: Path) -> None:
    (tmp_path / "shutdown-ready").touch()  # of a life before: it means nothing
    one = manager()
    assert not one.file.exists()
    answers = [one.ask(), one.ask()]
    assert get(one.port, "/healthz")[0] == 200
    assert not any(answers)
    one.file.touch()
    until(lambda: all(answers), "answers")
    assert answers == [[(200, "ready\n")]] * 2
    assert get(one.port, "/shutdown/ready")[0] == 200


def test_a_full_manager_takes_places_from_the_address_with_the_most(
    manager: Callable[..., Manager],
) -> None:
    """The pod network reaches the port: a pod of 16 containers has places, and later addresses get one each."""
    one = manager()
    held = [one.ask() for _ in range(16)]
    assert get(one.port, "/healthz")[0] == 200  # the questions before have been heard by then
    assert get(one.port, "/shutdown/ready")[1].startswith("too many")
    for last in (2, 3):
        held += [one.ask(f"127.0.0.{last}") for _ in range(16)]
    held += [one.ask("127.0.0.4") for _ in range(15)]
    alone = one.ask("127.0.0.5")
    assert get(one.port, "/healthz")[0] == 200
    assert not any(held) and not alone  # 64 wait
    late = one.ask("127.0.0.6")
    until(lambda: sum(map(len, held)) == 1, "an answer for another address's place")
    assert not alone and not late
    one.file.touch()
    until(lambda: late and alone and all(held), "answers")
    assert (late[0][0], alone[0][0]) == (200, 200)
    refused = [answer for (answer,) in held if answer[0] != 200]
    assert [(status, text.split(":")[0]) for status, text in refused] == [
        (503, "too many hooks wait")
    ]


def test_hooks_do_not_wait_for_ever(manager: Callable[..., Manager]) -> None:
    one = manager("--ready-timeout", "0.2")
    assert get(one.port, "/shutdown/ready") == (503, "not drained\n")


@pytest.mark.parametrize("drained", [True, False])
def test_those_who_wait_are_answered_before_the_manager_ends(
    manager: Callable[..., Manager], drained: bool
) -> None:
    one = manager()
    answers = one.ask()
    # A question asked after that one is answered: it has been heard by then.
    assert get(one.port, "/healthz")[0] == 200
    if drained:
        one.file.touch()
    one.process.terminate()
    assert one.process.wait(60) == 0
    until(lambda: answers, "an answer")
    assert answers[0][0] == (200 if drained else 503)


# --- all of it --------------------------------------------------------------------------------------


def test_a_pod_ends(start: Start, manager: Callable[..., Manager], tmp_path: Path) -> None:
    port = free_port()
    objects = tmp_path / "objects"
    objects.mkdir()
    save(objects / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = start("-f", str(objects), "--workers", "2", "--min-drain", "0.5", "--drain-timeout", "30")
    run.wait_ready()
    one = manager()
    idle = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    idle.request("GET", "/")
    idle.getresponse().read()
    run.until(lambda: json.loads(run.get(run.admin, "/connections")[1])["active"] == 1, "one")
    began = time.monotonic()
    # The hook of the proxy's container, and that of the manager's.
    answers = one.ask()
    given = ["--admin", f"127.0.0.1:{run.admin}", "--ready-file", str(one.file)]
    hook = subprocess.Popen(
        command("shutdown", *given, "--min-drain", "0.5", "--drain-timeout", "30"), cwd=ROOT
    )
    run.until(lambda: run.get(run.ready, "/ready")[0] == 503, "no readiness")
    assert run.get(run.ready, "/live")[0] == 200
    assert hook.wait(40) == 0
    took = time.monotonic() - began
    assert 0.5 <= took < 30, "it did not wait for the idle connection"
    until(lambda: answers, "an answer")
    assert answers == [(200, "ready\n")]
    # SIGTERM comes to both, and means nothing new to the proxy.
    run.process.terminate()
    one.process.terminate()
    assert run.process.wait(60) == 0
    assert one.process.wait(60) == 0
    idle.close()


def by_tcp(port: int, method: str, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_the_admin_server_is_no_backend(start: Start, tmp_path: Path) -> None:
    """A Backend at its address: clients of a listener reach neither its answers nor its orders."""
    port, admin = free_port(), free_port()
    own = {
        "apiVersion": "gateway.edge.io/v1alpha1",
        "kind": "Backend",
        "metadata": {"name": "admin", "namespace": "default"},
        "spec": {"endpoints": [{"ip": {"address": "127.0.0.1", "port": admin}}]},
    }
    web = route("v1")
    ref = {"group": "gateway.edge.io", "kind": "Backend", "name": "admin"}
    web["spec"]["rules"] = [{"backendRefs": [ref]}]
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), web, own)
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "1", "--admin", f"127.0.0.1:{admin}")
    run.admin = admin
    run.wait_ready()
    for method, path in (("GET", "/dump"), ("GET", "/version"), ("POST", "/drain")):
        assert by_tcp(port, method, path)[0] == 503
    for path in ("/drain", "/healthcheck/fail", "/log-level?level=debug"):
        status, said = by_tcp(admin, "POST", path)
        assert (status, b"unix socket" in said) == (403, True)
    assert run.get(admin, "/ready") == (200, "ready\n")
    result = CliRunner().invoke(main, ["log-level", "--admin", f"127.0.0.1:{admin}", "debug"])
    assert result.exit_code == 0, result.output
    assert json.loads(run.get(admin, "/log-level")[1])["level"] == "debug"


def test_the_signal_after_a_hook_is_not_the_second_one(start: Start, tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "1", "--min-drain", "60")
    run.wait_ready()
    assert by_tcp(run.admin, "POST", "/healthcheck/fail")[0] == 403
    assert run.get(run.admin, "/healthcheck/fail", "POST")[0] == 202
    assert run.get(run.admin, "/healthcheck/fail", "POST")[0] == 200
    run.process.send_signal(signal.SIGTERM)
    run.until(lambda: "ignored: the drain continues" in run.said, "a word on it")
    # It is accepted still: that is what the minute is for.
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/")
    assert connection.getresponse().getheader("connection") == "close"
    connection.close()
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(60) == 128 + signal.SIGTERM
