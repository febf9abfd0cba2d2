"""WorkerProcess: one exec'd child, watched by pidfd, reaped exactly once.

In: a command and the child's end of the control channel.
Out: its exit status.
The child is exec'd, not only forked: no lock or thread of the agent remains in a worker. The agent
sends signals through the pidfd, so they never reach another process with a recycled number.
Must never: leave a zombie or a descriptor.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Sequence

__all__ = ["WorkerProcess"]

_BLOCKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


class WorkerProcess:
    """A running child; `close` must be awaited, whatever happened."""

    def __init__(self, command: Sequence[str], control: socket.socket) -> None:
        """Start `command --fd N`, N being the child's copy of `control`. Raises OSError."""
        # Blocked signals stay blocked through exec until the worker has set its own dispositions:
        # a Ctrl-C in the terminal reaches the whole process group, and must not hit a worker.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
        try:
            self._popen = subprocess.Popen(
                [*command, "--fd", str(control.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(control.fileno(),),
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.pid = self._popen.pid
        self.killed = False  # by this side, while it lived
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except BaseException:
            self._popen.kill()
            self._popen.wait()
            raise

    async def exited(self) -> int:
        """Wait for the end; returns the exit status, or minus the signal's number."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not ended.done():
                ended.set_result(None)

        loop.add_reader(self._pidfd, wake)
        try:
            await ended
        finally:
            loop.remove_reader(self._pidfd)
        return self._popen.wait()

    def kill(self) -> None:
        """Send SIGKILL, unless it has been reaped."""
        if self._popen.poll() is None:
            self.killed = True
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def close(self, grace: float = 0.0) -> int:
        """Reap and close, after a kill unless it ends within `grace` s; returns the exit status."""
        try:
            if grace:
                async with asyncio.timeout(grace):
                    await self.exited()
        except TimeoutError:
            pass
        finally:
            self.kill()
        if self._popen.returncode is None:
            await self.exited()
        os.close(self._pidfd)
        return self._popen.wait()
