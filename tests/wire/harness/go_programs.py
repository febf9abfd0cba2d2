"""Clients and servers in Go, built once by the tools of the cluster tests (tests/cluster/tools), and what runs of them.

In: a name of PROGRAMS. Out: its path; a server that listens, until the `with` is over. `make test` needs no Go: without a Go that
is new enough these tests are left out, and say so.
"""

from __future__ import annotations

import fcntl
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from cluster.tools.build import PROGRAMS, build, find_go
from cluster.tools.missing import MissingTool
from wire.harness.programs import ALONE

END = 40.0  # seconds that a server has to go


def go_program(name: str) -> str:
    """Return the path of a program, which is built now if it is not there."""
    target = PROGRAMS[name].target
    if not target.exists():
        try:
            find_go(f"build {name}")
        except MissingTool as missing:
            pytest.skip(str(missing))
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target.with_suffix(".lock"), "wb") as lock:  # another process of these tests
            fcntl.flock(lock, fcntl.LOCK_EX)
            build([name], lambda _: None)
    return str(target)


class Server:
    """A server of ours in Go: `port`, and how it ends."""

    def __init__(self, program: str, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [go_program(program), *arguments], stdout=subprocess.PIPE, text=True, env=ALONE
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        found = re.fullmatch(r"listening (\d+)\n", said)
        assert found, f"{program}: {said!r}"
        self.port = int(found[1])

    def terminate(self) -> None:
        """Ask it to go; who is there is served to the end."""
        self._process.terminate()

    def wait(self) -> None:
        """Wait for its end, which is a good one."""
        assert self._process.wait(END) == 0

    def stop(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait(END)
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def go_server(program: str = "serves", *arguments: str) -> Iterator[Server]:
    """A server for a while."""
    server = Server(program, arguments)
    try:
        yield server
    finally:
        server.stop()
