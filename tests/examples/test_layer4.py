"""The layer 4 example: a datagram and a connection on one port number, and names that nobody has."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pytest

from examples.running import Example, curl
from wire.harness.programs import ALONE

pytestmark = pytest.mark.wire


def test_udp_and_tcp_share_a_port_number(tmp_path: Path) -> None:
    with Example("layer4.yaml", tmp_path) as run:
        port = run.ports[8080]
        with socket.socket(type=socket.SOCK_DGRAM) as client:
            client.settimeout(20)
            client.connect(("127.0.0.1", port))
            client.send(b"hello")
            told = json.loads(client.recv(2000))
        endpoint = f"127.0.0.1:{run.ports[3002]}"
        assert told == {"service": "names", "endpoint": endpoint, "text": "hello"}
        status, _, body = curl(f"curl http://localhost:{port}/")
        assert (status, json.loads(body)["service"]) == (200, "database")


def test_the_connection_of_a_name_that_nobody_has_is_closed(tmp_path: Path) -> None:
    with Example("layer4.yaml", tmp_path) as run:
        to = f"mail.example.com:{run.ports[8443]}"
        done = subprocess.run(
            ["curl", "-sk", "--max-time", "20", "--resolve", f"{to}:127.0.0.1", f"https://{to}/"],
            capture_output=True,
            env=ALONE,
        )
        assert done.returncode in (35, 56), done  # no TLS, or reset while it was awaited
        assert done.stdout == b""


def test_a_policy_refuses_a_server_name(tmp_path: Path) -> None:
    with Example("layer4-policies.yaml", tmp_path) as run:
        found = {}
        for name in ("shop", "admin"):
            to = f"{name}.example.com:{run.ports[8443]}"
            done = subprocess.run(
                [
                    "curl",
                    "-sk",
                    "--max-time",
                    "20",
                    "--resolve",
                    f"{to}:127.0.0.1",
                    f"https://{to}/",
                ],
                capture_output=True,
                env=ALONE,
            )
            found[name] = (done.returncode in (35, 56), b'"shop"' in done.stdout)
        assert found == {"shop": (False, True), "admin": (True, False)}
