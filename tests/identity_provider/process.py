"""A provider's process: started in a session of its own, awaited, ended by its id."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wire.harness.programs import ALONE

END = 10.0  # seconds


class ServerProcess:
    """One process and its log file."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "log"
        self._title = Path(command[0]).name
        # A file: a pipe that is not read blocks the process once it is full.
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                start_new_session=True,
                env={**ALONE, **(environment or {})},
            )

    def wait_until(self, check: Callable[[], bool], deadline: float) -> None:
        """Wait until a check is true; an exit or the deadline (seconds) fails with the end of the log."""
        end = time.monotonic() + deadline
        while not check():
            status = self._process.poll()
            assert status is None, f"{self._title} ended with {status}:\n{self.log_tail()}"
            assert time.monotonic() < end, (
                f"{self._title} is not ready in {deadline} s:\n{self.log_tail()}"
            )
            time.sleep(0.02)

    def log_tail(self, size: int = 8000) -> str:
        """Return the last bytes of the log as text."""
        return self._log.read_bytes()[-size:].decode("utf-8", "replace")

    def stop(self) -> None:
        """Ask for the end, and kill what is left of its session."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # the session that this object started
        self._process.wait(END)
