"""A Debian system with its own systemd, in a container without a network but its own loopback (systemd-nspawn).

In: a folder made by release.debian_tree. Needs root. Changes of the folder last only as long as the machine runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType

#: Packages of the folder.
PACKAGES = ("curl", "python3", "systemd", "systemd-sysv")
#: Seconds on a busy machine.
BOOT = 180.0
COMMAND = 300.0


class DebianMachine:
    """A running machine; `with` starts and ends it."""

    def __init__(self, tree: Path, shared: Path) -> None:
        """`shared` is seen at /mnt in the machine."""
        self._tree, self._shared = tree, shared

    def __enter__(self) -> DebianMachine:
        # --volatile=overlay: what the machine writes is in memory.
        options = ["--quiet", "--boot", "--register=no", "--keep-unit", "--private-network"]
        options += ["--volatile=overlay", f"--bind={self._shared}:/mnt"]
        self._log = (self._shared / "console").open("wb")
        self._process = subprocess.Popen(
            ["systemd-nspawn", *options, f"--directory={self._tree}"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        end = time.monotonic() + BOOT
        while self.call("systemctl", "is-system-running").stdout.strip() != "running":
            assert self._process.poll() is None and time.monotonic() < end, self._read_console()
            time.sleep(0.2)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        self._process.terminate()
        self._process.wait(60)
        self._log.close()

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the machine."""
        return subprocess.run(
            self._enter(*command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"},
        )

    def run(self, *command: str) -> str:
        """The output of a command that succeeds."""
        done = self.call(*command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def start(self, *command: str) -> subprocess.Popen[str]:
        """A command that goes on."""
        return subprocess.Popen(
            self._enter(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )

    def _enter(self, *command: str) -> list[str]:
        first = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        leader = first.read_text().split()[:1]
        if not leader:
            return ["false"]  # systemd is not started yet
        return ["nsenter", f"--target={leader[0]}", "--all", "--", *command]

    def _read_console(self) -> str:
        return (self._shared / "console").read_text(errors="replace")[-2000:]


def can_start() -> bool:
    """Whether this user can start one."""
    return os.geteuid() == 0 and shutil.which("systemd-nspawn") is not None
