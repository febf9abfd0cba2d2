"""The operator's servers of a running gateway among many who only hold connections: probes, metrics and orders get through."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

import pytest

from proxy.command import Start, gateway, gateway_class, route, save
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

CROWD = 250  # on each server
SENT = (b"", b"GET /met", b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")


def test_who_only_holds_connections_keeps_nobody_out(start: Start, tmp_path: Path) -> None:
    save(tmp_path / "a.yaml", gateway_class(), gateway(free_port()), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "1")
    run.wait_ready()
    with contextlib.ExitStack() as held:
        for port in (run.admin, run.metrics, run.ready):
            for number in range(CROWD):
                sock = held.enter_context(socket.create_connection(("127.0.0.1", port)))
                sock.sendall(SENT[number % len(SENT)])
        for _ in range(10):
            assert run.get(run.ready, "/ready")[0] == run.get(run.ready, "/live")[0] == 200
            assert run.get(run.metrics, "/metrics")[0] == run.get(run.admin, "/ready")[0] == 200
        for port in (run.admin, run.metrics, run.ready):
            assert run.get(port, "//[")[0] == 400
        assert run.get(run.admin, "/drain", "POST")[0] == 202
    assert run.process.wait(60) == 0
    assert "Traceback" not in run.said
