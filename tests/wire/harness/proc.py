"""What the kernel says about a process: its TCP connections, memory, descriptors and children. Linux only.

An account that is independent of the product's own counters: a leaked connection is an open descriptor, whatever the
product believes. Reads /proc, changes nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_STATES = {
    1: "ESTABLISHED",
    4: "FIN_WAIT1",
    5: "FIN_WAIT2",
    8: "CLOSE_WAIT",
    9: "LAST_ACK",
    10: "LISTEN",
}


@dataclass(frozen=True)
class Connection:
    """One TCP socket that a process holds."""

    local_port: int
    remote_port: int
    state: str


def children(pid: int) -> list[int]:
    """Direct child processes."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += [int(item) for item in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def family(pid: int) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for item in found:
        if Path(f"/proc/{item}").exists():
            found += children(item)
    return found


def connections(pids: list[int]) -> list[Connection]:
    """TCP sockets of these processes (listening ones included), each once."""
    inodes: set[str] = set()
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for name in names:
            try:
                link = os.readlink(f"/proc/{pid}/fd/{name}")
            except OSError:
                continue
            if link.startswith("socket:["):
                inodes.add(link[8:-1])
    found: list[Connection] = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes:
                state = _STATES.get(int(fields[3], 16), fields[3])
                found.append(Connection(_port(fields[1]), _port(fields[2]), state))
    return found


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def resident_bytes(pid: int) -> int:
    """Resident memory that is the process's own (RssAnon): shared mappings do not count."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(pid)


def cpu_seconds(pids: list[int]) -> float:
    """User and system time used so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
