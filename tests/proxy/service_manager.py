"""A service manager in small, for one service: the parts of systemd that a restart with kept sockets needs.

It speaks what sd_notify(3), sd_pid_notify_with_fds(3) and sd_listen_fds(3) document: datagrams with descriptors to
NOTIFY_SOCKET, the store handed to the next start as descriptors from 3 on, LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES.
Like systemd it keeps the store while it restarts, leaves out sockets that it has, and has only so much room. What
is left of the service when its main process has ended is killed (KillMode=mixed).
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from proxy.command import gone

_HIGH = 500  # descriptors are moved there before they are put to their places from 3 on
_DATAGRAM = 64 * 1024


class ServiceManager:
    """Start, restart and stop one service; leave it through `close`."""

    def __init__(self, folder: Path, command: Sequence[str], *, room: int, cwd: Path) -> None:
        self._folder = folder
        self._command = list(command)
        self._room = room
        self._cwd = cwd
        self._lock = threading.Lock()
        self._starts = 0
        self.store: list[tuple[str, int]] = []  # name, descriptor
        self.refused = 0
        self.told: list[str] = []
        self.pid = 0
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.bind(str(folder / "notify"))
        self._sock.settimeout(0.1)
        self._closing = False
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    # --- the service ----------------------------------------------------------------------------

    def start(self) -> None:
        """Start it, with what is in the store, and wait for READY=1."""
        with self._lock:
            self.told.clear()
            passed = list(self.store)
        self._starts += 1
        actions: list[tuple[int, ...]] = []
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for _, fd in passed]
        try:
            for number, fd in enumerate(high):
                actions.append((os.POSIX_SPAWN_DUP2, fd, 3 + number))
            with open(self._folder / "journal", "ab") as journal, open(os.devnull) as nothing:
                actions.append((os.POSIX_SPAWN_DUP2, nothing.fileno(), 0))
                actions.append((os.POSIX_SPAWN_DUP2, journal.fileno(), 1))
                actions.append((os.POSIX_SPAWN_DUP2, journal.fileno(), 2))
                shell = f'cd "{self._cwd}"; LISTEN_PID=$$ exec "$@"' if passed else 'exec "$@"'
                self.pid = os.posix_spawn(
                    "/bin/sh",
                    ["sh", "-c", shell, "sh", *self._command],
                    self._environment([name for name, _ in passed]),
                    file_actions=actions,
                )
        finally:
            for fd in high:
                os.close(fd)
        self.until(lambda: "READY=1" in self.told, "READY=1")

    def _environment(self, names: Sequence[str]) -> dict[str, str]:
        passing = {"LISTEN_FDS": str(len(names)), "LISTEN_FDNAMES": ":".join(names)}
        return {
            **os.environ,
            "NOTIFY_SOCKET": str(self._folder / "notify"),
            "RUNTIME_DIRECTORY": str(self._folder / "runtime"),
            **({"FDSTORE": str(self._room)} if self._room else {}),
            **(passing if names else {}),
        }

    def restart(self) -> None:
        """SIGTERM, wait for the end, start again."""
        self.order_stop()
        self.reap()
        self.start()

    def order_stop(self) -> None:
        """SIGTERM."""
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the main process, and the start that follows it (Restart=always)."""
        os.kill(self.pid, signal.SIGKILL)
        self.reap()
        self.start()

    def stop(self) -> int:
        """SIGTERM, wait for the end, and empty the store."""
        self.order_stop()
        status = self.reap()
        with self._lock:
            for _, fd in self.store:
                os.close(fd)
            self.store.clear()
        return status

    def reap(self) -> int:
        """Wait for the main process, and kill what is left of the service."""
        others: list[int] = []
        end = time.monotonic() + 120
        while True:
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{self.pid}/task").iterdir():
                    others += map(int, (task / "children").read_text().split())
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            assert time.monotonic() < end, f"it does not end:\n{self.journal}"
            time.sleep(0.01)
        for other in set(others):
            with contextlib.suppress(ProcessLookupError):
                os.kill(other, signal.SIGKILL)
        self.until(lambda: all(map(gone, others)), "the end of all")
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.reap()
        self._closing = True
        self._thread.join(20)
        self._sock.close()
        for _, fd in self.store:
            os.close(fd)

    @property
    def journal(self) -> str:
        path = self._folder / "journal"
        return path.read_text() if path.exists() else ""

    def names(self) -> dict[str, int]:
        """How many descriptors are in the store, by name."""
        found: dict[str, int] = {}
        with self._lock:
            for name, _ in self.store:
                found[name] = found.get(name, 0) + 1
        return found

    def until(self, check: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + 90
        while not check():
            assert time.monotonic() < end, f"no {what}:\n{self.journal}"
            time.sleep(0.01)

    # --- notifications --------------------------------------------------------------------------

    def _listen(self) -> None:
        size = socket.CMSG_SPACE(253 * array.array("i").itemsize)
        while not self._closing:
            try:
                data, ancillary, _, _ = self._sock.recvmsg(_DATAGRAM, size)
            except TimeoutError:
                continue
            fds = array.array("i")
            for _, _, carried in ancillary:
                fds.frombytes(carried)
            with self._lock:
                self._take(data.decode(), list(fds))

    def _take(self, text: str, descriptors: list[int]) -> None:
        lines = text.splitlines()
        self.told += lines
        name = next((line[7:] for line in lines if line.startswith("FDNAME=")), "stored")
        if "FDSTOREREMOVE=1" in lines:
            for entry in [entry for entry in self.store if entry[0] == name]:
                self.store.remove(entry)
                os.close(entry[1])
        for fd in descriptors:
            inodes = {os.fstat(kept).st_ino for _, kept in self.store}
            if "FDSTORE=1" in lines and os.fstat(fd).st_ino not in inodes:
                if len(self.store) < self._room:
                    self.store.append((name, fd))
                    continue
                self.refused += 1
            os.close(fd)
