"""20,000 clients that begin a handshake and never go on: what they cost is bounded, is given back, and is not paid by others, be it a port
whose TLS is ours or one that passes it through.

Minutes long: `make heavy`. The numbers are a promise: 64 MiB in a worker, and 64 more where each has said much (32 MiB of hellos, in
buffers up to twice as large); back within 15 s of their end.
"""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from origin.recording import RecordingOrigin
from wire.harness import proc
from wire.tls.passthrough_port import PassthroughPort
from wire.tls.port import NAME, TlsPort

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

CROWD, PROCESSES = 20_000, 4
FEW, MUCH = 6, 12_000  # bytes
COST = 64 << 20
LEFT = 8 << 20  # bytes that pages may go on holding: an allocator gives back whole ones
BACK = 15.0  # seconds


@contextmanager
def crowd(port: int, net: int, said: int) -> Iterator[subprocess.Popen[str]]:
    """A part of it; it has ended when the block has."""
    script = Path(__file__).with_name("half_open.py")
    numbers = (port, CROWD // PROCESSES, net, said)
    argv = [sys.executable, str(script), *map(str, numbers)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_half_open_handshakes() -> None:
    with RecordingOrigin() as origin, TlsPort(origin) as port:
        stay_unharmed(port, FEW, COST)


@pytest.mark.parametrize(("said", "cost"), [(FEW, COST), (MUCH, 2 * COST)])
def test_half_open_clients_that_would_be_passed_through(said: int, cost: int) -> None:
    with (
        RecordingOrigin() as origin,
        TlsPort(origin) as behind,
        PassthroughPort(behind) as port,
    ):
        stay_unharmed(port, said, cost)


def stay_unharmed(port: TlsPort | PassthroughPort, said: int, cost: int) -> None:
    """Ask from before the crowd comes until it has gone. said: bytes of each one's hello; cost: of memory at most."""
    with ExitStack() as stack:
        kept = [stack.enter_context(port.client()) for _ in range(20)]

        def ask_all() -> None:
            for client in kept:
                assert client.request("GET", "/", NAME).status == 200

        for _ in range(200):
            assert port.ask() == 200
            ask_all()
        (worker,) = port.worker_pids
        before = highest = proc.resident_bytes(worker)
        with ExitStack() as begun:
            parts = [
                begun.enter_context(crowd(port.port, net, said)) for net in range(1, PROCESSES + 1)
            ]
            outputs = {part.stdout.fileno(): part.stdout for part in parts}
            told = select.poll()
            for fd in outputs:
                told.register(fd, select.POLLIN)
            while outputs:
                ask_all()
                highest = max(highest, proc.resident_bytes(worker))
                for fd, _ in told.poll(0):
                    told.unregister(fd)
                    assert int(outputs.pop(fd).readline()) == CROWD // PROCESSES
            for _ in range(20):
                ask_all()
                highest = max(highest, proc.resident_bytes(worker))
        assert highest - before <= cost, f"{(highest - before) >> 20} MiB"
        port.wait_until(
            lambda: proc.resident_bytes(worker) - before <= LEFT,
            f"memory below {(before + LEFT) >> 20} MiB again",
            BACK,
        )
        ask_all()
        assert port.ask() == 200
        port.wait_until(lambda: port.metric("edgefast_handshakes_active") == 0, "end of them")
