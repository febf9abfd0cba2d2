"""A redis-server beside the generator, and what it has done so far.

In: a folder. Out: its port, seconds of CPU and calls of the script. Must never save anything to a disk.
"""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.peers.peer import PeerUnavailable, find_free_port, find_program
from bench.process import LOAD_CPU, read_cpu_seconds, start_pinned, stop_process

START_SECONDS = 5.0


@dataclass(frozen=True)
class Store:
    """A running server."""

    port: int
    pid: int

    def read_cpu(self) -> float:
        """User + system seconds."""
        return sum(read_cpu_seconds([self.pid]))

    def count_calls(self) -> int:
        """How often the script was called, by the server's own count."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=START_SECONDS) as sock:
            sock.sendall(b"INFO commandstats\r\nQUIT\r\n")
            text = b"".join(iter(lambda: sock.recv(1 << 16), b""))
        found = re.search(rb"cmdstat_evalsha:calls=(\d+)", text)
        return int(found[1]) if found else 0


@contextmanager
def run_store(folder: Path) -> Iterator[Store]:
    """A server on the load CPU; PeerUnavailable when there is none."""
    program = find_program("redis-server")
    if program is None:
        raise PeerUnavailable("redis-server is not installed")
    port = find_free_port()
    argv = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    process = start_pinned([*argv, "--dir", str(folder)], LOAD_CPU, folder, "redis")
    try:
        # The kernel's queue takes the connection of `count_calls` as soon as the server listens.
        for _ in range(1000):
            with socket.socket() as probe:
                probe.settimeout(0.1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None:
                raise PeerUnavailable(f"redis-server ended with status {process.returncode}")
            time.sleep(0.005)
        yield Store(port, process.pid)
    finally:
        stop_process(process)
