"""What rate limits have counted outlives the process: at a take-over, a restart by a service manager, and a killed agent."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from edgefast._csrc import lib
from edgefast.proxy.handover.wiring import wire_handover
from edgefast.proxy.limits.memory import LimitMemory
from proxy.command import Start, gateway, gateway_class, route, save, start
from proxy.handover.test_handover import ended
from wire.harness.ports import free_port

__all__ = ["start"]

BEGIN_ANEW = "rate limits: the counters start at zero"
EVERY = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
ROOM = (int(lib.EF_STORE_VALUES), int(lib.EF_STORE_NAMES))
FEW = int(lib.EF_STORE_FEW)

_FILTER = """
apiVersion: gateway.edge.io/v1alpha1
kind: RateLimitFilter
metadata: {name: two, namespace: default}
spec:
  type: Global
  global: {rules: [{limit: {requests: 2, unit: Year}}]}
"""


def limited(path: Path, port: int) -> str:
    """Objects that redirect two requests in a year; returns the path as an argument."""
    found = route("v1")
    reference = {"group": "gateway.edge.io", "kind": "RateLimitFilter", "name": "two"}
    found["spec"]["rules"][0]["filters"].append({"type": "ExtensionRef", "extensionRef": reference})
    save(path, gateway_class(), gateway(port), found, yaml.safe_load(_FILTER))
    return str(path)


def status(port: int) -> int:
    """Ask once, on a connection of its own."""
    with socket.create_connection(("127.0.0.1", port), 60) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x.test\r\nConnection: close\r\n\r\n")
        return int(sock.recv(4096).split()[1])


@pytest.mark.wire
def test_a_limit_stays_used_up_when_another_process_takes_over(
    start: Start, tmp_path: Path
) -> None:
    port = free_port()
    file = limited(tmp_path / "o.yaml", port)
    one = start("-f", file)
    one.wait_ready()
    assert [status(port) for _ in range(2)] == [302] * 2
    two = start("-f", file, "--take-over", after=one)
    assert one.process.wait(90) == 0, one.said
    assert [status(port) for _ in range(3)] == [429] * 3
    (counter,) = json.loads(two.get(two.admin, "/limits")[1])["counters"]
    assert (counter["used"], counter["remaining"]) == (2, 0)
    # And on: who has taken over hands over.
    three = start("-f", file, "--take-over", after=one)
    assert two.process.wait(90) == 0, two.said
    assert status(port) == 429
    for run in (two, three):
        assert "the counters of the previous process stay in use" in run.said


@pytest.mark.wire
def test_a_limit_stays_used_up_when_an_agent_is_killed(start: Start, tmp_path: Path) -> None:
    port = free_port()
    file = limited(tmp_path / "o.yaml", port)
    one = start("-f", file, "--workers", "2")
    one.wait_ready()
    assert [status(port) for _ in range(2)] == [302] * 2
    with ended(one.workers()):
        one.kill()
        assert status(port) == 429
        start("-f", file, after=one).wait_ready()
        assert status(port) == 429


def made(values: int, names: int) -> int:
    """The memory of another process, for so many buckets."""
    with closing(LimitMemory(values, names)) as memory:
        return os.dup(memory.fd)


def altered(*, write: bytes = b"", seals: int = EVERY) -> int:
    """Memory that begins with something else, or has other seals."""
    with closing(LimitMemory(1, 4)) as good:
        whole = os.pread(good.fd, os.fstat(good.fd).st_size, 0)
    fd = os.memfd_create("other", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, write + whole[len(write) :])
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


@pytest.mark.pure
def test_what_is_no_store_of_this_layout_and_room_is_not_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    later = (int(lib.EF_STORE_MAGIC) + 0x01000000).to_bytes(4, "little")
    values, names = ROOM
    cases = [
        ("its size can change", altered(seals=fcntl.F_SEAL_GROW)),
        ("its layout is of another release", altered(write=later)),
        ("its capacity is of another release", made(values // 2, names)),
        (
            "its capacity is of another release",
            made(values + 1, names - 1),
        ),  # as large, cut elsewhere
    ]
    for why, fd in cases:
        caplog.clear()
        with closing(LimitMemory.go_on(fd)) as memory:
            assert memory.share(sliding=False) == values * lib.EF_LIMIT_SLOTS // 2 // FEW
        assert BEGIN_ANEW in caplog.text and why in caplog.text
    caplog.clear()
    fd = made(values, names)
    with closing(LimitMemory.go_on(fd)) as memory:
        assert memory.fd == fd
    assert BEGIN_ANEW not in caplog.text


class _Predecessor:
    """What `wire_handover` knows of a take-over."""

    handover_socket = None
    close = staticmethod(lambda: None)

    def __init__(self, *, serves: bool) -> None:
        self.completed = asyncio.Event()
        if not serves:
            self.completed.set()
        self.on_complete: Callable[[], None] = lambda: None

    async def complete(self, places: object) -> None:
        self.on_complete()
        self.completed.set()


@pytest.mark.pure
@pytest.mark.parametrize("serves", [True, False])
def test_the_number_of_limits_is_that_of_one_process_at_a_time(serves: bool) -> None:
    """Whoever serves says how many share the room; one that starts beside it, and may fail, does not."""
    with closing(LimitMemory()) as before, closing(LimitMemory.go_on(os.dup(before.fd))) as memory:
        before.share_among(10)
        ten = before.share(sliding=False)
        agent: Any = SimpleNamespace(
            limits=memory,
            bound=tuple,
            listeners=SimpleNamespace(take_all=lambda: None),
            settings=SimpleNamespace(workers=1),
        )
        takeover: Any = _Predecessor(serves=serves)
        wire_handover(agent, {}, takeover)
        memory.share_among(2)
        assert (before.share(sliding=False) == ten) == serves

        def complete() -> None:
            assert (before.share(sliding=False) == ten) == serves, "it has not let go yet"

        takeover.on_complete = complete
        asyncio.run(agent.on_serving())
        assert before.share(sliding=False) == ten * 5
        memory.share_among(1)
        assert before.share(sliding=False) == ten * 10
