"""10,000 idle connections by TLS beside 10,000 plain ones: what they cost is bounded, others are served beside them, and so is each of them.

Minutes long: `make heavy`. The numbers are a promise: 1.5 KiB for a plain one, 12 KiB for one with AWS-LC; OpenSSL 3.0 itself holds 13.9 kB
(bench/README.md).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from edgefast.core.engine import tls_library
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness import proc
from wire.harness.client import Client
from wire.harness.ports import free_port
from wire.tls.port import NAME, TlsPort

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

EACH, PROCESSES = 10_000, 2
PLAIN = 1536  # bytes of one
TLS = (12 if tls_library().startswith("AWS-LC") else 16) << 10


class BothPorts(TlsPort):
    """A plain port beside it. Two workers share the clients: a process may have 20,000 descriptors where that is the hard limit."""

    def __init__(self, origin: RecordingOrigin) -> None:
        self.plain = free_port()
        super().__init__(origin, http={"maxConnections": 2 * EACH, "idleTimeout": "10m"}, workers=2)

    def build(self) -> list[make.Object]:
        made = super().build()
        (gateway,) = [one for one in made if one["kind"] == "Gateway"]
        gateway["spec"]["listeners"].append(make.listener(self.plain, "plain"))
        return made

    def ask_plainly(self) -> int:
        """Status of a request on a new connection without TLS."""
        with Client(("127.0.0.1", self.plain)) as client:
            return client.request("GET", "/", NAME).status


@contextmanager
def idle(port: int, net: int, *bundle: str) -> Iterator[subprocess.Popen[str]]:
    """A part of them; it has ended when the block has."""
    script = Path(__file__).with_name("idle.py")
    argv = [sys.executable, str(script), *map(str, (port, EACH // PROCESSES, net)), *bundle]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def all_answered(parts: list[subprocess.Popen[str]]) -> bool:
    return all(int(part.stdout.readline()) == EACH // PROCESSES for part in parts if part.stdout)


def test_ten_thousand_of_each_beside_each_other(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.crt"
    with RecordingOrigin() as origin, BothPorts(origin) as port, ExitStack() as stack:
        bundle.write_bytes(port.authority.pem)

        def resident() -> int:
            return sum(map(proc.resident_bytes, port.worker_pids))

        for _ in range(200):
            assert port.ask() == port.ask_plainly() == 200
        parts: list[subprocess.Popen[str]] = []
        for to, told, most in ((port.plain, (), PLAIN), (port.port, (str(bundle),), TLS)):
            before = resident()
            came = [
                stack.enter_context(idle(to, len(parts) + number, *told))
                for number in range(1, PROCESSES + 1)
            ]
            assert all_answered(came)
            cost = (resident() - before) / EACH
            assert cost <= most, f"{cost:.0f} bytes"
            parts += came
            for _ in range(20):
                assert port.ask() == port.ask_plainly() == 200
        for part in parts:
            assert part.stdin
            part.stdin.write("\n")
            part.stdin.flush()
        assert all_answered(parts)
