"""Watchdog: processes that are frozen in one way or another, and those that only wait for a busy machine."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.process.watchdog import Reading, Watchdog, read_process
from proxy.living import agent_test, mark_of, until
from proxy.shards import make_fleet
from wire.harness.ports import free_port


def told(*looks: tuple[str, int, float], every: float = 0.75) -> list[str]:
    """What is said of looks (state, sleeps, computed) without an answer in between."""
    watchdog = Watchdog()
    return [watchdog.look(Reading(i * every, *look), 0.0) for i, look in enumerate(looks)]


STOPPED, ASLEEP = "stopped by a signal", "asleep"


@pytest.mark.parametrize(
    ("looks", "word"),
    [
        ([("T", 7, 1.0)] * 3, STOPPED),
        ([("t", 7, 1.0)] * 3, "stopped by a debugger"),
        ([("S", 7, 1.0)] * 3, ASLEEP),
        ([("R", 7, 1.0), ("S", 8, 1.0), *[("S", 9, 1.0)] * 3], ASLEEP),
        ([("R", 7, 1.0), ("R", 7, 1.7), ("R", 7, 2.4), ("R", 7, 3.0)], "busy"),
        ([("R", 7, i * 0.1) for i in range(21)], "busy"),  # a tenth of a processor
    ],
)
def test_one_that_is_frozen(looks: list[tuple[str, int, float]], word: str) -> None:
    *before, last = told(*looks)
    assert word in last and set(before) <= {""}


@pytest.mark.parametrize(
    "looks",
    [
        [("R", 7, 1.0)] * 40,  # waits for a processor
        [("R", 7, 1.0 + i * 0.04) for i in range(40)],  # gets a little of one
        [("D", 7, 1.0)] * 40,  # waits for memory
        [("S", 7 + i, 1.0) for i in range(40)],  # its loop turns
        [("S", 7, 1.0), ("S", 7, 1.0)] * 1,
        [("S", 7, 1.0), ("T", 7, 1.0)] * 20,
        [("R", i // 10, i * 0.2) for i in range(40)],  # computes, and sleeps now and then
    ],
)
def test_one_that_is_only_slow(looks: list[tuple[str, int, float]]) -> None:
    assert set(told(*looks)) == {""}


def test_one_with_work_may_compute_but_not_sleep_on() -> None:
    watchdog = Watchdog()
    looks = [Reading(at, "R", 7, float(at)) for at in range(20)]
    assert {watchdog.look(one, 0.0, has_work=True) for one in looks} == {""}
    looks = [Reading(20 + at, "T", 7, 20.0) for at in range(3)]
    assert STOPPED in [watchdog.look(one, 0.0, has_work=True) for one in looks][-1]


def test_looks_that_come_at_once_are_one() -> None:
    assert set(told(*[("S", 7, 1.0)] * 10, every=0.1)) == {""}


def test_an_answer_is_a_new_beginning() -> None:
    watchdog = Watchdog()
    for at in range(20):
        assert watchdog.look(Reading(at, "T", 7, 1.0), float(at // 2)) == ""


def test_one_that_cannot_be_seen_is_not_blamed() -> None:
    watchdog = Watchdog()
    assert [watchdog.look(None, 0.0) for _ in range(40)] == [""] * 40
    assert read_process(2**22 + 1) is None


_LOOP = "import asyncio\nfrom edgefast.proxy.process.watchdog import start_heartbeat\nprint(flush=True)\n"

_IDLE = "loop = asyncio.new_event_loop()\nstart_heartbeat(loop)\nloop.run_forever()"


@pytest.fixture
def child() -> Iterator[Callable[[str], int]]:
    """A process that runs some code; its number, when it does."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str) -> int:
        started.append(
            subprocess.Popen([sys.executable, "-c", _LOOP + code], stdout=subprocess.PIPE)
        )
        assert started[-1].stdout is not None
        started[-1].stdout.readline()
        return started[-1].pid

    yield start
    for one in started:
        one.kill()
        one.communicate()


def verdict(pid: int, looks: int, until_word: bool) -> str:
    watchdog = Watchdog()
    for _ in range(looks):
        if word := watchdog.look(read_process(pid), 0.0):
            return word
        time.sleep(0.3 if until_word else 0.2)
    return ""


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("while True: pass", "busy"),
        ("import time; time.sleep(1000)", "asleep"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "stopped"),
    ],
)
def test_what_the_kernel_tells_of_a_frozen_process(
    child: Callable[[str], int], code: str, word: str
) -> None:
    assert word in verdict(child(code), 400, until_word=True)


def test_what_the_kernel_tells_of_a_loop_with_nothing_to_do(child: Callable[[str], int]) -> None:
    assert verdict(child(_IDLE), 8, until_word=False) == ""


@pytest.mark.wire
@agent_test()
async def test_a_worker_that_is_stopped_is_replaced(agent: Agent) -> None:
    """Long before it would be for its silence; the other one keeps its place."""
    port = free_port()

    await agent.publish(make_fleet(port))
    stopped, other = (slot.pid for slot in agent.slots)
    os.kill(stopped, signal.SIGSTOP)
    waiting = [asyncio.ensure_future(mark_of(port)) for _ in range(16)]
    await until(lambda: agent.slots[0].restarts, "end of the one that is stopped")
    assert set(await asyncio.gather(*waiting)) == {"v1"}, "its queue goes to its successor"
    assert agent.slots[1].pid == other and not agent.slots[1].restarts
