"""Frozen workers: who is ended, and that processes of others, which cannot be looked into, change nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgefast.proxy.handover import frozen_workers as frozen
from edgefast.proxy.handover.frozen_workers import end_frozen, find_links, holds

#: The name by which a worker is known, beside a program that only keeps what it inherits.
_HOLD = "import sys; sys.stdin.read()"


@pytest.fixture
def handover_socket(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.bind(str(tmp_path / "handover_socket"))
        sock.listen()
        yield sock


@pytest.fixture
def worker(handover_socket: socket.socket) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the handover_socket's socket and has a worker's command line."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, "edgefast.proxy.worker"],
        stdin=subprocess.PIPE,
        pass_fds=[handover_socket.fileno()],
    )
    with process:
        yield process
        process.kill()


def test_others_that_cannot_be_looked_into_change_nothing(
    tmp_path: Path, worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is not root may not list the descriptors of other users' processes, and there always are some."""

    def look(name: str, links: frozenset[str]) -> bool:
        if name != str(worker.pid):
            raise PermissionError(13, "Permission denied")
        return holds(name, links)

    monkeypatch.setattr(frozen, "holds", look)
    assert end_frozen(tmp_path / "handover_socket", {worker.pid}) == []
    assert end_frozen(tmp_path / "handover_socket", ()) == [worker.pid]
    assert worker.wait(60) == -9


def test_one_that_ends_meanwhile_is_passed_over(
    tmp_path: Path, worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(name: str, links: frozenset[str]) -> bool:
        found = holds(name, links)
        if name == str(worker.pid):
            worker.kill()
            worker.wait(60)
        return found

    monkeypatch.setattr(frozen, "holds", look)
    assert end_frozen(tmp_path / "handover_socket", ()) == []


def test_where_an_agent_lives_nobody_is_ended(
    tmp_path: Path, handover_socket: socket.socket, worker: subprocess.Popen[bytes]
) -> None:
    agent = subprocess.Popen(
        [sys.executable, "-c", _HOLD], stdin=subprocess.PIPE, pass_fds=[handover_socket.fileno()]
    )
    with agent:
        try:
            assert find_links(tmp_path / "handover_socket")
            assert end_frozen(tmp_path / "handover_socket", ()) == []
            assert worker.poll() is None
        finally:
            agent.kill()
