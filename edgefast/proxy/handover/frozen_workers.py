"""Frozen workers of a dead agent: finds and ends workers that do not respond and have no agent to end them.

In: the name of the handover socket (rendezvous_socket.py), and the processes that answered there.
Out: SIGKILL for workers that hold this socket, have no agent and did not answer. Their listening
sockets would keep new connections unanswered forever.
Must never: end a process of another gateway, one with a live agent, or another process with a
recycled number.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Collection
from pathlib import Path

__all__ = ["end_frozen", "find_links", "holds"]

log = logging.getLogger(__name__)

_WORKER = b"edgefast.proxy.worker"


def end_frozen(bound: Path, answered: Collection[int]) -> list[int]:
    """Kill the workers that hold the socket bound at `bound` and are not in `answered`; returns them."""
    links = find_links(bound)
    holders: dict[int, int] = {}  # process -> pidfd
    try:
        for name in os.listdir("/proc") if links else ():
            if name.isdecimal() and int(name) != os.getpid():
                # Those of other users cannot be looked into, and have nothing of this one's.
                with contextlib.suppress(OSError):
                    # Looked at after it is held: from here on the number is nobody else's.
                    pidfd = os.pidfd_open(int(name))
                    held = False
                    try:
                        held = holds(name, links)
                    finally:
                        if held:
                            holders[int(name)] = pidfd
                        else:
                            os.close(pidfd)
        if not all(map(_is_worker, holders)):
            return []  # an agent lives
        frozen: list[int] = []
        for pid in holders.keys() - set(answered):
            with contextlib.suppress(ProcessLookupError):  # gone meanwhile
                signal.pidfd_send_signal(holders[pid], signal.SIGKILL)
                frozen.append(pid)
                log.warning("worker (process %d) without an agent does not answer; killed", pid)
        return frozen
    finally:
        for pidfd in holders.values():
            os.close(pidfd)


def find_links(bound: Path) -> set[str]:
    """Return how the sockets with this name look among descriptors: fields 6 and 7 of each line (proc_net(5))."""
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/unix").read_text().splitlines():
            fields = line.split(None, 7)
            if len(fields) == 8 and fields[7] == str(bound):
                found.add(f"socket:[{fields[6]}]")
    return found


def holds(name: str, links: Collection[str]) -> bool:
    """Tell whether a process has one of these. Raises OSError."""
    folder = f"/proc/{name}/fd"
    for entry in os.listdir(folder):
        with contextlib.suppress(OSError):
            if os.readlink(f"{folder}/{entry}") in links:
                return True
    return False


def _is_worker(pid: int) -> bool:
    try:
        return _WORKER in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True  # gone
