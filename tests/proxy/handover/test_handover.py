"""One process takes over from another: nobody is refused, nobody waits for a queue that nobody empties."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proxy.command import (
    Start,
    gateway,
    gateway_class,
    gone,
    mark_of,
    route,
    save,
    start,
    tls_secret,
)
from proxy.pki import Authority
from proxy.steady import Steady
from proxy.tunnels import tunnel, tunnel_backend, tunnel_objects
from wire.harness.ports import free_port

__all__ = ["start"]

pytestmark = pytest.mark.wire


def objects(path: Path, mark: str, *ports: int, tls: bool = False) -> str:
    """Write objects that redirect to a mark; returns the path as an argument."""
    found = [gateway_class(), gateway(*ports, tls="cert" if tls else ""), route(mark)]
    save(path, *found, *([tls_secret(Authority().issue("x.test"))] if tls else []))
    return str(path)


@contextmanager
def ended(pids: list[int]) -> Iterator[None]:
    """Leave no worker behind that has no agent to end it."""
    try:
        yield
    finally:
        for pid in pids:
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)


def wait_until(check: Callable[[], bool], what: str) -> None:
    """Where there is no process that waits."""
    end = time.monotonic() + 90
    while not check():
        assert time.monotonic() < end, f"no {what}"
        time.sleep(0.01)


def may_outlive(pid: int) -> bool:
    """Tell whether a worker was told to outlive its agent: the last thing it does then is to catch SIGINT."""
    status = Path(f"/proc/{pid}/status").read_text()
    (caught,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return bool(int(caught, 16) >> (signal.SIGINT - 1) & 1)


@pytest.mark.parametrize(("before", "after", "tls"), [(1, 3, False), (3, 1, True)], ids=str)
def test_a_new_process_takes_over_and_no_request_is_lost(
    start: Start, tmp_path: Path, before: int, after: int, tls: bool
) -> None:
    port = free_port()
    one = start(
        "-f", objects(tmp_path / "old.yaml", "old", port, tls=tls), "--workers", str(before)
    )
    one.wait_ready()
    with Steady(port, tls=tls) as load:
        load.more(200)
        arguments = ("-f", objects(tmp_path / "new.yaml", "new", port, tls=tls))
        two = start(*arguments, "--workers", str(after), "--take-over", after=one)
        assert one.process.wait(90) == 0, one.said
        load.more(200)
        # Whoever answers at the operator's addresses is the new one, and nobody else.
        assert len(two.workers()) == after == len(two.dump()["workers"])
        assert two.get(two.ready, "/ready")[0] == 200
    assert not load.failures, (load.failures[:5], one.said, two.said)
    assert {"old", "new"} == set(load.marks)


def test_without_the_order_nothing_is_taken(start: Start, tmp_path: Path) -> None:
    port = free_port()
    file = objects(tmp_path / "o.yaml", "old", port)
    one = start("-f", file)
    one.wait_ready()
    two = start("-f", file, after=one)
    assert two.process.wait(60) == 1
    assert "--take-over" in two.said and "in use" in two.said
    assert mark_of(port) == "old"
    assert one.process.poll() is None and "takes over" not in one.said


def test_a_successor_that_cannot_serve_changes_nothing(start: Start, tmp_path: Path) -> None:
    port = free_port()
    one = start("-f", objects(tmp_path / "o.yaml", "old", port))
    one.wait_ready()
    save(tmp_path / "none.yaml", gateway_class())
    with Steady(port, clients=8) as load:
        load.more(100)
        two = start("-f", str(tmp_path / "none.yaml"), "--take-over", after=one)
        assert two.process.wait(90) == 1
        load.more(100)
        three = start("-f", objects(tmp_path / "n.yaml", "new", port), "--take-over", after=one)
        assert one.process.wait(90) == 0, (one.said, three.said)
        load.more(100)
    assert not load.failures, load.failures[:5]
    assert "the successor did not start to serve" in one.said


def test_ports_that_the_new_one_does_not_have_are_closed_in_order(
    start: Start, tmp_path: Path
) -> None:
    kept, left, fresh = free_port(), free_port(), free_port()
    one = start("-f", objects(tmp_path / "o.yaml", "old", kept, left), "--drain-timeout", "30")
    one.wait_ready()
    two = start("-f", objects(tmp_path / "n.yaml", "new", kept, fresh), "--take-over", after=one)
    assert one.process.wait(90) == 0
    assert mark_of(kept) == mark_of(fresh) == "new"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", left), 20)
    assert two.process.poll() is None


def test_a_tunnel_goes_on_until_the_drain_deadline(start: Start, tmp_path: Path) -> None:
    port = free_port()
    with tunnel_backend() as backend:
        save(tmp_path / "o.yaml", *tunnel_objects(port, backend))
        one = start("-f", str(tmp_path / "o.yaml"), "--drain-timeout", "3")
        one.wait_ready()
        with tunnel(port) as through:
            assert through.says(b"hello")
            two = start("-f", str(tmp_path / "o.yaml"), "--take-over", after=one)
            two.until(lambda: "has taken over" in one.said, "the take-over")
            assert through.says(b"still here")
            assert one.process.poll() is None
            through.wait_for_end()
        assert one.process.wait(60) == 0
        assert "aborting the remaining" in one.said


def test_workers_of_a_killed_agent_serve_until_the_next_one(start: Start, tmp_path: Path) -> None:
    port, left = free_port(), free_port()
    one = start("-f", objects(tmp_path / "o.yaml", "old", port, left), "--workers", "2")
    one.wait_ready()
    workers = one.workers()
    with ended(workers), Steady(port) as load:
        load.more(100)
        one.kill()
        load.more(300)
        assert mark_of(left) == "old"
        two = start("-f", objects(tmp_path / "n.yaml", "new", port), "--workers", "3", after=one)
        two.wait_ready()
        two.until(lambda: all(map(gone, workers)), "the end of the workers before")
        load.more(100)
        assert not load.failures, (load.failures[:5], one.said, two.said)
        assert one.said.count("the agent ended") == 2
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", left), 20)
        # And once more: the successor is as mortal.
        workers += two.workers()
        two.kill()
        load.more(100)
        three = start("-f", objects(tmp_path / "n.yaml", "new", port), "--workers", "2", after=one)
        three.wait_ready()
        load.more(100)
    assert not load.failures, (load.failures[:5], two.said, three.said)


def test_a_frozen_worker_of_a_killed_agent_is_ended_by_the_next_one(
    start: Start, tmp_path: Path
) -> None:
    port = free_port()
    one = start("-f", objects(tmp_path / "o.yaml", "old", port), "--workers", "2")
    one.wait_ready()
    frozen, other = workers = one.workers()
    with ended(workers):
        one.until(lambda: may_outlive(frozen), "a worker that may outlive its agent")
        os.kill(frozen, signal.SIGSTOP)
        one.kill()
        two = start("-f", objects(tmp_path / "n.yaml", "new", port), after=one)
        two.wait_ready()
        assert gone(frozen), two.said
        assert f"process {frozen}) without an agent does not answer; killed" in two.said
        two.until(lambda: gone(other), "the end of the other")
        for _ in range(20):
            assert mark_of(port) == "new"


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed", "not yet"])
def test_a_worker_without_agent_ends_on_a_signal(
    start: Start, tmp_path: Path, noticed: bool
) -> None:
    """Also on one that comes before the worker has had the time to notice that its agent is gone."""
    port = free_port()
    one = start("-f", objects(tmp_path / "o.yaml", "old", port), "--workers", "2")
    one.wait_ready()
    workers = one.workers()
    with ended(workers):
        one.until(lambda: all(map(may_outlive, workers)), "workers that may outlive their agent")
        if not noticed:
            for pid in workers:
                os.kill(pid, signal.SIGSTOP)
        one.kill()
        if noticed:
            assert mark_of(port) == "old"
        for pid in workers:
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: all(map(gone, workers)), "the end of the workers")
    assert "no other edgefast took over" in one.said


def test_a_signal_to_a_worker_with_an_agent_is_nothing(start: Start, tmp_path: Path) -> None:
    """The agent orders its end; when that is killed later, it serves on."""
    port = free_port()
    one = start("-f", objects(tmp_path / "o.yaml", "old", port), "--workers", "1")
    one.wait_ready()
    (worker,) = workers = one.workers()
    with ended(workers):
        one.until(lambda: may_outlive(worker), "a worker that may outlive its agent")
        os.kill(worker, signal.SIGTERM)
        for _ in range(2):  # the first word may be older than the signal
            assert one.dump()["workers"], "it answers its agent"
        one.kill()
        assert mark_of(port) == "old"
        two = start("-f", objects(tmp_path / "n.yaml", "new", port), after=one)
        two.wait_ready()
        two.until(lambda: gone(worker), "its end")
    assert "no other edgefast took over" not in one.said
