"""Processes that several tests use in turn: changes while one waits are detected, and ends stay tested."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from origin.recording import RecordingOrigin
from wire.harness import kept
from wire.harness import objects as make
from wire.harness.gateway import Gateway
from wire.harness.site import Site


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Gateway]]:
    """The gateways that wait for a test: one, and its process has served one test."""
    found: list[Gateway] = []
    monkeypatch.setattr(kept, "_idle", found)
    with Site([]) as first:
        pid = first.pid
    assert [gateway.pid for gateway in found] == [pid]
    yield found
    for gateway in found:
        gateway.stop()


def kill_a_worker(gateway: Gateway) -> None:
    workers = gateway.worker_pids
    os.kill(workers[0], signal.SIGKILL)
    gateway.wait_until(lambda: {*gateway.worker_pids} - {*workers} != set(), "another one")


def log_a_fault(gateway: Gateway) -> None:
    with open(gateway.folder / "err", "a") as log:
        log.write("Traceback (most recent call last):\n")


def end_it(gateway: Gateway) -> None:
    gateway.terminate()
    gateway.exit_status()


@pytest.mark.parametrize(
    ("harm", "said"),
    [(kill_a_worker, "a worker died"), (log_a_fault, "the log has"), (end_it, "edgefast died")],
)
def test_a_fault_of_a_process_that_waits_is_found(
    harm: Callable[[Gateway], None], said: str, waiting: list[Gateway]
) -> None:
    """The next test fails, and names the one before it."""
    pid, (before,) = waiting[0].pid, waiting[0].served
    harm(waiting[0])
    with pytest.raises(AssertionError) as failed, Site([]):
        pass
    assert str(failed.value).startswith(f"idle after {before}: {said}")
    assert not waiting and not Path(f"/proc/{pid}").exists()


def test_a_process_is_passed_on_some_times_and_ends_with_objects(
    waiting: list[Gateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, before = waiting[0].pid, waiting[0].served
    with RecordingOrigin() as origin:
        service = make.service("web", [("127.0.0.1", origin.port)])
        with Site([make.route("all", [make.rule("web")]), *service]) as site:
            assert (site.pid, site.served) == (pid, before)
            assert site.ask().status == 200
    assert [gateway.pid for gateway in waiting] == [pid]
    monkeypatch.setattr(kept, "USES", 3)
    with Site(site.with_gateway(service)) as site:
        assert (site.pid, len(site.served)) == (pid, 2)
    assert not waiting and not site.folder.exists() and not Path(f"/proc/{pid}").exists()


def test_a_failure_names_the_tests_before(waiting: list[Gateway]) -> None:
    (before,) = waiting[0].served
    with pytest.raises(ValueError, match="wrong") as failed, Site([]):
        raise ValueError("wrong")
    assert failed.value.__notes__ == [f"{before}: this gateway served 1 tests before: {before}"]
    assert not waiting


def test_an_end_that_is_none_is_found(
    waiting: list[Gateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that SIGTERM does not end is killed, and its test fails."""
    monkeypatch.setattr("wire.harness.gateway.END", 0.2)
    monkeypatch.setattr(kept, "USES", 1)
    with pytest.raises(AssertionError, match=r"did not end in 0\.2 s"), Site([]) as site:
        pid = site.pid
        os.kill(pid, signal.SIGSTOP)
        site.check = lambda: None  # type: ignore[method-assign] # it would wait for an answer
    assert not Path(f"/proc/{pid}").exists()
