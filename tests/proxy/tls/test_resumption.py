"""Sessions: resumed at any worker, after a worker's death and a take-over; never under another rule (CVE-2025-23419)."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from proxy.command import Process, Start, gateway, gateway_class, route, save, start, tls_secret
from proxy.pki import Authority, Pair
from tests.translate.test_staple import AUTHORITY, PAIR
from wire.harness.ports import free_port

__all__ = ["start"]

pytestmark = pytest.mark.wire

CA = Authority()
CERTIFICATE = CA.issue("x.test")
CLIENTS, OTHERS = Authority("clients"), Authority("other clients")
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
REDIRECTED = b"HTTP/1.1 302"


class Client:
    """One client, with what it remembers; `bundle`: of who issued its certificate."""

    def __init__(self, version: ssl.TLSVersion, *issuers: Authority) -> None:
        self._context = ssl.create_default_context(cadata=CA.bundle.decode())
        self._context.minimum_version = self._context.maximum_version = version
        for issuer in issuers:
            _load(self._context, issuer.issue("client"))

    def visit(self, port: int, session: ssl.SSLSession | None = None) -> tuple[Any, bool]:
        """Ask once; returns the session, and whether it is the one that was shown. Raises OSError when it is not answered."""
        with (
            socket.create_connection(("127.0.0.1", port), 60) as plain,
            self._context.wrap_socket(
                plain, server_hostname="x.test", session=session
            ) as connection,
        ):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x.test\r\nConnection: close\r\n\r\n")
            answer = connection.recv(4096)
            if not answer.startswith(REDIRECTED):
                raise ConnectionError("not answered")
            return connection.session, bool(connection.session_reused)

    def resumes(self, port: int, session: ssl.SSLSession) -> bool:
        return self.visit(port, session)[1]


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.certificate + pair.key)
        file.flush()
        context.load_cert_chain(file.name)


def authority(name: str, bundle: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"ca.crt": bundle.decode()},
    }


def objects(*ports: int, **validated: int) -> list[Any]:
    """One Gateway on all ports; `validated` asks for certificates of an authority on a port."""
    made = gateway(*ports, tls="cert")
    if validated:
        made["spec"]["tls"] = {
            "frontend": {
                "default": {},
                "perPort": [
                    {
                        "port": port,
                        "tls": {
                            "validation": {
                                "caCertificateRefs": [
                                    {"group": "", "kind": "ConfigMap", "name": name}
                                ]
                            }
                        },
                    }
                    for name, port in validated.items()
                ],
            }
        }
    return [gateway_class(), made, route("v1"), tls_secret(CERTIFICATE)]


def test_at_any_worker_after_its_death_and_after_a_take_over(start: Start, tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "o.yaml", *objects(port))
    one: Process = start("-f", str(tmp_path / "o.yaml"), "--workers", "2")
    one.wait_ready()
    clients = [Client(version) for version in VERSIONS]
    visits = [client.visit(port) for client in clients]
    assert not any(resumed for _, resumed in visits)

    def all_resume(times: int) -> bool:
        return all(
            client.resumes(port, session)
            for client, (session, _) in zip(clients, visits, strict=True)
            for _ in range(times)
        )

    assert all_resume(16)  # the kernel gives connections to either worker
    first = one.workers()
    for pid in first:
        os.kill(pid, 9)
    one.until(lambda: len(set(one.workers()) - set(first)) == 2, "two other workers")
    one.until(lambda: clients[0].visit(port), "an answer")
    assert all_resume(8)
    start("-f", str(tmp_path / "o.yaml"), "--workers", "2", "--take-over", after=one)
    assert one.process.wait(90) == 0, one.said
    assert all_resume(8)


def test_a_stop_and_a_start_throw_the_keys_away(start: Start, tmp_path: Path) -> None:
    """What docs/guides/operations.md says to do about keys that others may know."""
    port = free_port()
    save(tmp_path / "o.yaml", *objects(port))
    one: Process = start("-f", str(tmp_path / "o.yaml"), "--workers", "2")
    one.wait_ready()
    clients = [Client(version) for version in VERSIONS]
    sessions = [client.visit(port)[0] for client in clients]
    for client, session in zip(clients, sessions, strict=True):
        assert client.resumes(port, session)
    assert one.stop() == 0
    start("-f", str(tmp_path / "o.yaml"), "--workers", "2", after=one).wait_ready()
    for client, session in zip(clients, sessions, strict=True):
        fresh = session
        for _ in range(8):
            fresh, resumed = client.visit(port, session)
            assert not resumed
        assert client.resumes(port, fresh)


def test_whoever_used_a_ticket_of_1_3_gets_the_next(start: Start, tmp_path: Path) -> None:
    """Clients that use each once (RFC 8446 C.4) would resume every other time."""
    port = free_port()
    save(tmp_path / "o.yaml", *objects(port))
    start("-f", str(tmp_path / "o.yaml"), "--workers", "1").wait_ready()
    client = Client(ssl.TLSVersion.TLSv1_3)
    session, _ = client.visit(port)
    for _ in range(4):
        after, resumed = client.visit(port, session)
        assert resumed and after.id != session.id
        session = after


def test_a_staple_of_the_secret_comes_with_the_handshake(start: Start, tmp_path: Path) -> None:
    port = free_port()
    found = objects(port)
    found[-1] = tls_secret(Pair(PAIR.chain, PAIR.key))
    now = AUTHORITY.respond_now(PAIR)
    found[-1]["data"]["tls.ocsp-staple"] = base64.b64encode(now).decode()
    save(tmp_path / "o.yaml", *found)
    start("-f", str(tmp_path / "o.yaml")).wait_ready()
    for version in ("-tls1_2", "-tls1_3"):
        said = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-status", version],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "OCSP Response Status: successful" in said.stdout
        assert "Cert Status: good" in said.stdout
