"""Free loopback ports for listeners whose number must be known before they are bound.

Ports come from below the kernel's ephemeral range, so that no outgoing connection can take one in between, and each is
held by a file lock for the life of this process, so that parallel test processes never get the same one.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

_LOW, _HIGH = 12_000, 32_000
_held: dict[int, int] = {}  # port -> descriptor of the lock


def free_port() -> int:
    """A TCP port that nobody listens on, on 127.0.0.1 and ::1, reserved for this process."""
    folder = Path(tempfile.gettempdir()) / f"edgefast-test-ports.{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for _ in range(1000):
        port = random.SystemRandom().randrange(_LOW, _HIGH)
        if port in _held:
            continue
        lock = os.open(folder / str(port), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        if _unused(port):
            _held[port] = lock
            return port
        os.close(lock)
    raise RuntimeError(f"no free port between {_LOW} and {_HIGH}")


def _unused(port: int) -> bool:
    for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                return False
    return True
