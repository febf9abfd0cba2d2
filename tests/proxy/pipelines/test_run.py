"""`edgefast run` as a process: start, what it says, reload, secrets, signals, exit statuses."""

import base64
import json
import os
import signal
import socket
import ssl
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy.command import (
    Process,
    Start,
    gateway,
    gateway_class,
    gone,
    mark_of,
    route,
    save,
    tls_secret,
)
from proxy.living import taken
from proxy.pki import Authority, Pair
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire


def test_it_says_what_it_serves_and_drains_on_sigterm(start: Start, tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = start("-f", str(tmp_path), "--workers", "2")
    run.wait_ready()
    assert mark_of(port) == "v1"
    run.until(lambda: "try\n" in run.said, "banner")
    for part in (
        "3 objects in 1 file, 2 workers",
        f"http://127.0.0.1:{port}: any host",
        f"curl -i http://localhost:{port}/",
        f"http://127.0.0.1:{run.admin}/dump",
    ):
        assert part in run.said
    pids = run.workers()
    assert len(pids) == 2
    assert run.stop() == 0
    assert all(gone(pid) for pid in pids)
    assert run.logged.count('"status":302') == 1
    assert all(json.loads(line) for line in run.logged.splitlines())


def test_the_access_log_is_a_file_that_may_be_rotated(start: Start, tmp_path: Path) -> None:
    """A rename is enough; the signal that other servers want is none that ends this one."""
    port, folder = free_port(), tmp_path / "logs"
    folder.mkdir()
    log = folder / "access.log"
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "2", "--access-log", str(log))
    run.wait_ready()
    assert mark_of(port) == "v1"
    run.until(lambda: log.read_text().count("\n") == 1, "line")
    old = log.rename(folder / "access.log.1")
    for pid in (run.process.pid, *run.workers()):
        os.kill(pid, signal.SIGUSR1)
    run.until(lambda: "SIGUSR1" in run.said, "word on the signal")
    for _ in range(20):
        assert mark_of(port) == "v1"
    run.until(lambda: log.exists() and log.read_text().count("\n") == 20, "lines of the new file")
    assert old.read_text().count("\n") == 1
    assert run.stop() == 0
    assert run.logged == ""


def test_reload_and_problems_that_come_and_go(start: Start, tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "routes.yaml"
    save(tmp_path / "base.yaml", gateway_class(), gateway(port))
    save(file, route("v1"))
    run = start("-f", str(tmp_path), "--workers", "2")
    run.wait_ready()
    for number in range(2, 8):
        save(file, route(f"v{number}"))
        run.until(lambda number=number: mark_of(port) == f"v{number}", "reload")
    file.write_text("half: [")
    run.until(lambda: "last good content stays" in run.said, "problem")
    assert mark_of(port) == "v7"
    assert run.dump()["problems"]
    bad = route("v8")
    bad["spec"]["rules"][0]["filters"][0]["type"] = "RequestRedirct"
    save(file, bad, route("v9", "zebra"))
    run.until(lambda: "did you mean RequestRedirect?" in run.said, "problem")
    assert mark_of(port) == "v7"
    save(file, route("v10"))
    run.until(lambda: mark_of(port) == "v10", "reload")
    run.until(lambda: "solved" in run.said, "solution")
    run.until(lambda: run.dump()["problems"] == [], "end of the problems")


def test_nothing_to_serve_is_exit_1(start: Start, tmp_path: Path) -> None:
    other, port = taken()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "1")
    assert run.process.wait(60) == 1
    assert f"127.0.0.1:{port} is in use" in run.said
    assert "no listener can be opened" in run.said and "ready in" not in run.said
    assert "Traceback" not in run.said
    other.close()


def test_missing_files_are_exit_1_and_name_them(start: Start, tmp_path: Path) -> None:
    run = start("-f", str(tmp_path / "missing.yaml"), "--workers", "1")
    assert run.process.wait(60) == 1
    assert "missing.yaml:1 Invalid cannot be read: No such file" in run.said


def test_an_admin_address_that_is_taken_names_its_option(start: Start, tmp_path: Path) -> None:
    other, port = taken()
    save(tmp_path / "a.yaml", gateway_class(), gateway(free_port()), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--admin", f"127.0.0.1:{port}")
    assert run.process.wait(60) == 1
    assert f"--admin 127.0.0.1:{port} is in use" in run.said
    assert "Traceback" not in run.said
    other.close()


def test_a_broken_configuration_is_refused(start: Start, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "apiVersion: config.gateway.edge.io/v1alpha1\nkind: EdgeGateway\ngatway: {}\n"
    )
    save(tmp_path / "a.yaml", gateway_class(), gateway(free_port()), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--config", str(tmp_path / "config.yaml"))
    assert run.process.wait(60) == 2
    assert "config.yaml:3" in run.said
    assert "did you mean gateway?" in run.said


def test_workers_die_with_an_agent_that_nobody_can_find(start: Start, tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    off = ("--admin", "off", "--metrics", "off", "--ready", "off")
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "2", *off)
    run.until(lambda: "ready in" in run.said, "both workers")
    pids = run.workers()
    os.kill(pids[0], signal.SIGSTOP)  # even one that cannot notice
    run.process.kill()
    run.process.wait(60)
    end = time.monotonic() + 60
    while not all(gone(pid) for pid in pids):
        assert time.monotonic() < end, "workers outlive their agent"
        time.sleep(0.01)


def test_ctrl_c_reaches_the_group_and_drains_in_order(tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = Process(tmp_path, "-f", str(tmp_path / "a.yaml"), "--workers", "2")
    try:
        run.wait_ready()
        for pid in (*run.workers(), run.process.pid):
            os.kill(pid, signal.SIGINT)
        assert run.process.wait(60) == 0
        assert "Traceback" not in run.said
        assert "is gone" not in run.said
    finally:
        run.stop()


# --- admin --------------------------------------------------------------------------------------------


def test_admin_and_metrics(start: Start, tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "2")
    run.wait_ready()
    for _ in range(7):
        assert mark_of(port) == "v1"
    dump = run.dump()
    assert dump["agent"]["bound"] == [{"address": "127.0.0.1", "port": port, "transport": "TCP"}]
    assert {one["version"] for one in dump["workers"]} == {dump["table"]["version"]}
    assert [one["engine"]["version"] for one in dump["workers"]] == [dump["table"]["version"]] * 2
    assert sorted(one["pid"] for one in dump["workers"]) == sorted(run.workers())
    (host,) = dump["virtual_hosts"]
    assert host["rules"][0]["redirect"]["hostname"] == "v1.test"
    only = json.loads(run.get(run.admin, "/dump?type=listener")[1])
    assert len(only["listeners"]) == 1
    assert only["virtual_hosts"] == []
    assert json.loads(run.get(run.admin, "/version")[1])["table"] == dump["table"]["version"]
    assert run.get(run.admin, "/ready") == (200, "ready\n")
    assert json.loads(run.get(run.admin, "/log-level")[1])["level"] == "info"
    assert run.get(run.admin, "/log-level?level=debug", "POST")[0] == 200
    assert run.get(run.admin, "/log-level", "POST", "warning")[0] == 200
    status, text = run.get(run.admin, "/log-level?level=loud", "POST")
    assert (status, "supported: debug" in text) == (400, True)

    status, text = run.get(run.metrics, "/metrics")
    assert status == 200
    families = {one.name: one for one in text_string_to_metric_families(text)}
    counted = {
        (one.labels["route"], one.labels["code_class"]): one.value
        for one in families["edgefast_requests"].samples
    }
    assert counted["default/web", "3xx"] == 7
    assert families["edgefast_workers_alive"].samples[0].value == 2
    assert families["edgefast_connections"].samples[0].value == 7

    assert run.get(run.admin, "/drain", "POST")[0] == 202
    assert run.process.wait(60) == 0


def test_counters_survive_their_worker(start: Start, tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "1")
    run.wait_ready()

    def counted() -> float:
        text = run.get(run.metrics, "/metrics")[1]
        families = {one.name: one for one in text_string_to_metric_families(text)}
        samples = families["edgefast_requests"].samples
        return sum(one.value for one in samples if one.labels["route"] == "default/web")

    for _ in range(3):
        mark_of(port)
    run.until(lambda: counted() == 3, "count")
    (pid,) = run.workers()
    os.kill(pid, signal.SIGKILL)
    assert mark_of(port) == "v1"
    run.until(lambda: counted() == 4, "count")
    assert run.workers() != [pid]


# --- TLS ----------------------------------------------------------------------------------------------


def shown_names(port: int, bundle: bytes) -> set[str]:
    context = ssl.create_default_context(cadata=bundle.decode())
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as sock,
        context.wrap_socket(sock, server_hostname="a.test") as tls,
    ):
        tls.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        assert tls.recv(100).startswith(b"HTTP/1.1 302")
        certificate = tls.getpeercert()
        assert certificate is not None
        return {str(name) for _, name in certificate["subjectAltName"]}  # type: ignore[misc]


def test_certificates_are_swapped_and_keys_stay_secret(start: Start, tmp_path: Path) -> None:
    port = free_port()
    authority = Authority()
    first, second = authority.issue("a.test", "one.test"), authority.issue("a.test", "two.test")
    base = (gateway_class(), gateway(port, tls="cert"), route("v1"))
    file = tmp_path / "a.yaml"
    save(file, *base, tls_secret(first))
    run = start("-f", str(file), "--workers", "2", "--log-level", "debug")
    run.wait_ready()
    context = ssl.create_default_context(cadata=authority.bundle.decode())
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as sock,
        context.wrap_socket(sock, server_hostname="a.test") as old,
    ):
        assert shown_names(port, authority.bundle) == {"a.test", "one.test"}
        save(file, *base, tls_secret(second))
        run.until(
            lambda: shown_names(port, authority.bundle) == {"a.test", "two.test"}, "certificate"
        )
        old.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")  # the open connection lives on
        assert old.recv(100).startswith(b"HTTP/1.1 302")
    # A pair that does not fit: said, and the old one stays.
    save(file, *base, tls_secret(Pair(first.certificate, second.key)))
    why = "tls.key does not belong to tls.crt, its last good version stays in use"
    run.until(lambda: why in run.said, "problem")
    assert shown_names(port, authority.bundle) == {"a.test", "two.test"}
    assert "InvalidCertificateRef" not in run.said
    save(file, *base, tls_secret(first))
    run.until(lambda: shown_names(port, authority.bundle) == {"a.test", "one.test"}, "certificate")
    metrics = run.get(run.metrics, "/metrics")[1]
    assert 'edgefast_certificate_expiry_timestamp_seconds{secret="' in metrics
    dump = run.get(run.admin, "/dump")[1]
    assert '"<redacted>"' in dump
    assert "2040-01-01" in dump
    places = [dump, metrics, run.said, run.logged]
    for pid in (run.process.pid, *run.workers()):
        places.append(Path(f"/proc/{pid}/cmdline").read_text())
        places.append(Path(f"/proc/{pid}/environ").read_text())
    for pair in (first, second):
        for line in pair.key.decode().splitlines()[1:-1]:
            assert not [text for text in places if line in text]
            assert not [text for text in places if base64.b64encode(line.encode()).decode() in text]
    assert not [text for text in places if "PRIVATE KEY" in text]
