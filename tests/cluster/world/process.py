"""One program of a world: started with a log file, recorded by pid and start time, ended by exactly that.

In: a name, a command, the world's folder. Out: a `Program`; the record `<folder>/pids/<name>` lets a later process end
what a killed test run left behind.
Must never: signal a process whose start time is not the one recorded: its pid may be somebody else's by now.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster.world import netns


class Program:
    """A started program; `pid` is the program itself, whatever prefixes it was started through."""

    def __init__(self, folder: Path, name: str, pid: int) -> None:
        self.folder, self.name, self.pid = folder, name, pid
        self.child: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(
        cls,
        folder: Path,
        name: str,
        command: Sequence[str],
        *,
        in_netns: str | None = None,
        env: Mapping[str, str] | None = None,
        dies_with_us: bool = True,
    ) -> Program:
        """Start a command; its output goes to `<folder>/log/<name>.log`."""
        for part in ("log", "pids"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        guard = ["setpriv", "--pdeathsig", "KILL", "--"] if dies_with_us else []
        with (folder / "log" / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                [*guard, *netns.prefix(in_netns), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **(env or {})},
            )
        program = cls(folder, name, child.pid)
        program.child = child
        program._record().write_text(f"{child.pid} {start_time(child.pid)}")
        return program

    @classmethod
    def find(cls, folder: Path, name: str) -> Program | None:
        """Return a program that another process started and that still lives."""
        try:
            pid, started = (folder / "pids" / name).read_text().split()
        except (OSError, ValueError):
            return None
        return cls(folder, name, int(pid)) if start_time(int(pid)) == started else None

    def alive(self) -> bool:
        """Whether it runs; a zombie does not."""
        if self.child is not None:
            return self.child.poll() is None
        return start_time(self.pid) is not None

    def send(self, number: signal.Signals) -> None:
        """Send a signal if it still runs."""
        if self.alive():
            os.kill(self.pid, number)

    def stop(self, seconds: float = 10.0, number: signal.Signals = signal.SIGTERM) -> None:
        """End it: `number` first, SIGKILL after `seconds`."""
        self.send(signal.SIGCONT)
        self.send(number)
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                self.send(signal.SIGKILL)
                deadline += 60
            time.sleep(0.01)
        self._record().unlink(missing_ok=True)

    def tail(self, lines: int = 15) -> str:
        """Return the end of its log."""
        try:
            text = (self.folder / "log" / f"{self.name}.log").read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def _record(self) -> Path:
        return self.folder / "pids" / self.name


def start_time(pid: int) -> str | None:
    """Return a process's start time in clock ticks since boot, None when there is none or it is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
