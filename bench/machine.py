"""The machine line: where numbers were made, so that nobody compares across machines unknowingly.

In: /proc and the version commands. Out: one line of text. Must never hold a host name or an
address: results are published.
"""

import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.peers.peer import Peer, find_program, read_first_line


def describe_machine(peers: Sequence[Peer]) -> str:
    """CPU, cores, memory, kernel, load, and the version of every measured program."""
    cpu = _read_field("/proc/cpuinfo", "model name")
    hypervisor = " (virtual)" if "hypervisor" in _read_field("/proc/cpuinfo", "flags") else ""
    memory = int(_read_field("/proc/meminfo", "MemTotal").split()[0]) >> 20
    parts = [
        f"{cpu}{hypervisor}, {os.cpu_count()} CPUs, {memory} GiB",
        f"Linux {platform.release()}",
        f"load {os.getloadavg()[0]:.2f} at start",
    ]
    for peer in peers:
        if peer.name != "floor":
            parts.append(peer.read_version() if peer.find_program() else f"{peer.name}: none")
    if find_program("wrk"):
        parts.append(" ".join(read_first_line(["wrk", "-v"]).split()[:2]))
    gcc = read_first_line(["gcc", "--version"])
    parts += [gcc, f"Python {platform.python_version()}", f"tree {_read_revision()}"]
    return "; ".join(parts)


def _read_field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"


def _read_revision() -> str:
    """Short commit id; `unknown` outside a checkout."""
    folder = Path(__file__).parent
    argv = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(argv, capture_output=True, check=False)
    return done.stdout.decode().strip() or "unknown"
