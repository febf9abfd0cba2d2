"""Ten thousand connections: flat memory, no descriptor lost, whoever is there is served."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.net.build import SANITIZE
from core.net.stage import Stage, descriptors, driver

pytestmark = pytest.mark.skipif(
    SANITIZE, reason="it measures memory, which would be the sanitizer's"
)

MANY = 10_000
IDLE = 1024  # bytes of an idle connection in this layer: a part of the 1.5 KiB that a whole one may take
ROUNDS = 3
LEAK = 64  # bytes that a connection would leave behind: less than any object of the layer has


# The peers have descriptors and memory of their own.
PEERS = """
import socket, sys
count, port = int(sys.argv[1]), int(sys.argv[2])
socks = []
for _ in range(count):
    sock = socket.create_connection(("127.0.0.1", port))
    sock.send(b"hello")
    socks.append(sock)
for sock in socks:
    assert sock.recv(5, socket.MSG_WAITALL) == b"hello"
print("served", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def room() -> Iterator[None]:
    """A descriptor for each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard == resource.RLIM_INFINITY or hard > MANY + 1000
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MANY + 1000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident() -> int:
    """Bytes of this process that are private and in memory."""
    gc.collect()
    fields = Path("/proc/self/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * 4096


def flood(stage: Stage, count: int) -> int:
    """Bytes that so many idle connections take, each of which has echoed something."""
    sock = stage.listener()
    listening = stage.accept(sock, lambda _: driver.Echo())
    listening.keep = False
    start, before = resident(), descriptors()
    command = [sys.executable, "-c", PEERS, str(count), str(sock.getsockname()[1])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as peers:
        assert peers.stdin is not None and peers.stdout is not None
        os.set_blocking(peers.stdout.fileno(), False)
        stage.until(peers.stdout.readline)
        assert listening.accepted == count
        taken = resident() - start
        peers.stdin.close()
        stage.until(lambda: stage.net.watching == 1)
    assert descriptors() == before
    listening.stop_now()
    return taken


def test_ten_thousand_connections_again_and_again(stage: Stage) -> None:
    # Less, even nothing, where tests before have left memory to take.
    each = flood(stage, MANY) / MANY
    assert each <= IDLE, f"{each:.0f} bytes"
    flood(stage, MANY)
    base = resident()
    for _ in range(ROUNDS):
        flood(stage, MANY)
    assert resident() - base < LEAK * ROUNDS * MANY
