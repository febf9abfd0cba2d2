"""`edgefast run` with every connection it can have: what it is told then, and TLS clients that say nothing."""

import signal
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from proxy.command import (
    Object,
    Process,
    Start,
    gateway,
    gateway_class,
    mark_of,
    route,
    save,
    tls_secret,
)
from proxy.pki import Authority
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

REQUEST = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
CA = Authority()


def two_gateways(plain: list[int], tls: int) -> list[Object]:
    """Plain ports, and one of HTTPS with the secret `cert`."""
    second = gateway(tls, tls="cert")
    second["spec"]["listeners"].extend(gateway(*plain)["spec"]["listeners"])
    return [gateway_class(), second]


def connect(stack: ExitStack, port: int) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))


def answered(sock: socket.socket) -> bool:
    try:
        sock.sendall(REQUEST)
        return sock.recv(4096).startswith(b"HTTP/1.1 302")
    except OSError:
        return False


def certificate_of(port: int) -> bytes:
    trusting = ssl.create_default_context(cadata=CA.bundle.decode())
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        with trusting.wrap_socket(sock, server_hostname="a.test") as tls:
            return tls.getpeercert(binary_form=True) or b""


def served(port: int) -> bool:
    return mark_of(port) == "v1"


def metric(run: Process, name: str) -> int:
    page = run.get(run.metrics, "/metrics")[1]
    (line,) = [line for line in page.splitlines() if line.startswith(f"edgefast_{name} ")]
    return int(line.split()[1])


def test_a_full_process_takes_in_what_it_is_told(start: Start, tmp_path: Path) -> None:
    port, tls, late = free_port(), free_port(), free_port()
    file = tmp_path / "a.yaml"
    old, new = CA.issue("a.test"), CA.issue("a.test", "new.test")
    save(file, *two_gateways([port], tls), route("v1"), tls_secret(old))
    run = start("-f", str(file), "--workers", "2", nofile=100)
    run.wait_ready()
    pids = run.workers()
    before = certificate_of(tls)
    with ExitStack() as stack:
        clients = [connect(stack, port) for _ in range(250)]
        clients = [client for client in clients if answered(client)]
        assert 40 < len(clients) < 250
        save(file, *two_gateways([port, late], tls), route("v1"), tls_secret(new))
        run.until(lambda: "is served" in run.said, "table")
        assert all(answered(client) for client in clients)
    run.until(lambda: served(late), "new port")
    run.until(lambda: certificate_of(tls) != before, "new certificate")
    assert run.workers() == pids
    assert not run.dump()["problems"]


def test_a_drain_waits_for_handshakes(start: Start, tmp_path: Path) -> None:
    port, tls = free_port(), free_port()
    secret = tls_secret(CA.issue("a.test"))
    save(tmp_path / "a.yaml", *two_gateways([port], tls), route("v1"), secret)
    run = start("-f", str(tmp_path), "--workers", "1")
    run.wait_ready()
    trusting = ssl.create_default_context(cadata=CA.bundle.decode())
    with ExitStack() as stack:
        early = connect(stack, tls)
        run.until(lambda: metric(run, "handshakes_active") == 1, "handshake")
        run.process.send_signal(signal.SIGINT)

        def refuses() -> bool:
            with ExitStack() as short:
                try:
                    sock = short.enter_context(
                        socket.create_connection(("127.0.0.1", port), timeout=0.2)
                    )
                except TimeoutError:
                    return False  # dropped while it closes
                except ConnectionRefusedError:
                    return True
                return not sock

        run.until(refuses, "closed ports")
        client = stack.enter_context(trusting.wrap_socket(early, server_hostname="a.test"))
        assert answered(client)
    assert run.process.wait(60) == 0


def test_too_few_descriptors_to_begin_are_said_in_words(start: Start, tmp_path: Path) -> None:
    limit = 32
    save(tmp_path / "a.yaml", gateway_class(), gateway(free_port()), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "2", nofile=limit)
    assert run.process.wait(60) == 1
    assert f"file descriptor limit {limit} is below" in run.said and "LimitNOFILE" in run.said
    assert "Traceback" not in run.said


@pytest.mark.parametrize("limit", [40, 48])
def test_descriptors_that_run_out_on_the_way_cost_no_traceback(
    start: Start, tmp_path: Path, limit: int
) -> None:
    """Whether it can begin or not: it serves, or says why it does not."""
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "1", nofile=limit)

    def decided() -> bool:
        return run.process.poll() is not None or served(port)

    end = time.monotonic() + 60
    while not _quietly(decided):
        assert time.monotonic() < end, run.said
        time.sleep(0.02)
    run.stop()
    assert "Traceback" not in run.said


def _quietly(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except OSError:
        return False
