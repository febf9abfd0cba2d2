"""Keys of session tickets outlive workers and processes: a take-over, a restart by a service manager, a killed agent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgefast.proxy.tls.ticket_key_rotation import TicketSecret
from edgefast.proxy.tls.ticket_memory import TicketMemory
from proxy.command import Start, gateway, gateway_class, route, save, start
from proxy.handover.test_handover import ended, may_outlive
from wire.harness.ports import free_port

__all__ = ["start"]

pytestmark = pytest.mark.wire


def secrets_of(pid: int) -> tuple[TicketSecret, ...]:
    """Read the ring that a process holds, through a descriptor of it; nothing when it has none (yet)."""
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            name = os.readlink(fd)
        except OSError:
            continue
        if "memfd:edgefast-tickets" in name:
            ring = TicketMemory.go_on(os.open(fd, os.O_RDONLY))
            try:
                return ring.read()
            finally:
                ring.close()
    return ()


@pytest.fixture
def objects(tmp_path: Path) -> str:
    path = tmp_path / "o.yaml"
    save(path, gateway_class(), gateway(free_port()), route("v1"))
    return str(path)


def test_all_workers_and_their_successors_read_the_agents_ring(start: Start, objects: str) -> None:
    one = start("-f", objects, "--workers", "2")
    one.wait_ready()
    held = secrets_of(one.process.pid)
    assert len(held) == 2
    assert len(held) == 2
    first = one.workers()
    assert all(secrets_of(pid) == held for pid in first)
    os.kill(first[0], 9)
    one.until(lambda: len(one.workers()) == 2 and first[0] not in one.workers(), "another worker")
    (second,) = set(one.workers()) - set(first)
    one.until(lambda: secrets_of(second) == held, "the agent's keys in it")
    assert not any(secret.secret.hex() in one.said for secret in held)


def test_another_process_takes_the_keys_over(start: Start, objects: str) -> None:
    one = start("-f", objects)
    one.wait_ready()
    held = secrets_of(one.process.pid)
    assert len(held) == 2
    two = start("-f", objects, "--take-over", after=one)
    assert one.process.wait(90) == 0, one.said
    assert secrets_of(two.process.pid) == held
    assert all(secrets_of(pid) == held for pid in two.workers())


def test_the_successor_of_a_killed_agent_has_the_keys_from_its_workers(
    start: Start, objects: str
) -> None:
    one = start("-f", objects, "--workers", "2")
    one.wait_ready()
    held = secrets_of(one.process.pid)
    assert len(held) == 2
    with ended(workers := one.workers()):
        one.until(lambda: all(map(may_outlive, workers)), "workers that may outlive their agent")
        one.kill()
        two = start("-f", objects, after=one)
        two.wait_ready()
        assert secrets_of(two.process.pid) == held
