"""What the kernel says about a process: its TCP connections, memory, descriptors and children. Linux only.

An account that is independent of the product's own counters: a leaked connection is an open descriptor, whatever the
product believes. Reads /proc and sock_diag, changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
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
# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
_SOCK_DIAG, _BY_FAMILY, _REQUEST, _DUMP, _DONE = 4, 20, 1, 0x300, 3


@dataclass(frozen=True)
class Connection:
    """One TCP socket that a process holds."""

    local_port: int
    remote_port: int
    state: str


def children(pid: int) -> list[int]:
    """Direct child processes."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # it may end at any moment
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # and so may one of its threads
                found += [int(item) for item in (task / "children").read_text().split()]
    return found


def family(pid: int) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for item in found:
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
    return [item for inode, item in _sockets() if str(inode) in inodes]


def _sockets() -> Iterator[tuple[int, Connection]]:
    # Asks the kernel by netlink: /proc/net/tcp would list tens of thousands of closed connections (TIME_WAIT) each time.
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
        for family in (socket.AF_INET, socket.AF_INET6):
            states = sum(1 << number for number in _STATES)
            request = struct.pack("=BBBxI48x", family, socket.IPPROTO_TCP, 0, states)
            header = struct.pack("=IHHII", 16 + len(request), _BY_FAMILY, _REQUEST | _DUMP, 1, 0)
            netlink.send(header + request)
            yield from _answers(netlink)


def _answers(netlink: socket.socket) -> Iterator[tuple[int, Connection]]:
    while True:
        data = netlink.recv(1 << 18)
        at = 0
        while at < len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if kind == _DONE:
                return
            assert kind == _BY_FAMILY, f"netlink answered {kind}"
            state = data[at + 17]
            local, remote = struct.unpack_from("!HH", data, at + 20)
            (inode,) = struct.unpack_from("=I", data, at + 16 + 68)
            # One that has just ended is told all the same: the kernel looks twice.
            if state in _STATES:
                yield inode, Connection(local, remote, _STATES[state])
            at += (length + 3) & ~3


def resident_bytes(pid: int) -> int:
    """Resident memory that is the process's own (RssAnon): shared mappings do not count. 0 under a sanitizer, whose memory it
    would be."""
    if "EDGEFAST_SANITIZE" in os.environ:
        return 0
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(pid)


def state(pid: int) -> str:
    """What the process does now, as in ps: R runs, S sleeps, T is stopped, Z is dead."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def is_edgefast(pid: int) -> bool:
    """Whether the process with this number runs edgefast; the kernel may have reused the number."""
    try:
        return b"edgefast" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def cpu_seconds(pids: list[int]) -> float:
    """User and system time used so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    """Room for so many sockets in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count), hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
