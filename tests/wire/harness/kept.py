"""Processes of gateways that several tests use in turn: a start and a stop cost 0.6 s of CPU, an apply some milliseconds.

In: what a `Gateway` knows of its process at the end of a test that found nothing wrong; the process serves no objects any more. Out: the same
for the next test, which checks first that nothing has happened to the process since. After USES tests a process ends, with the objects of the
last of them: so ends with real objects stay tested. Must never: reuse a process with other options, one that a test has restarted or damaged,
or one with high memory use; leave a line of its logs unchecked.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wire.harness.gateway import Gateway

__all__ = ["ATTRIBUTES", "borrow", "counters", "end_all", "give_back", "has_place", "this_test"]

#: Of a `Gateway`: its process, where that listens and writes, and what is known of it.
ATTRIBUTES = (
    "workers folder file void_port admin ready metrics generation title served _process _first_workers _logs"
).split()
USES = 8  # tests or fixtures that use one process
_MOST = 3  # idle processes of one pytest process
_idle: list[Gateway] = []


def this_test() -> str:
    """The node id of the test that runs."""
    return os.environ.get("PYTEST_CURRENT_TEST", "no test").rpartition(" ")[0]


def borrow(workers: int) -> Gateway | None:
    """Take a waiting process with this many workers that has not changed since its last test."""
    for at, gateway in enumerate(_idle):
        if gateway.workers == workers:
            del _idle[at]
            _check(gateway)
            return gateway
    return None


def has_place(served: list[str]) -> bool:
    """Whether a process that had served these tests before this one is to be kept."""
    return len(_idle) < _MOST and len(served) + 1 < USES


def give_back(gateway: Gateway) -> None:
    """Keep a process for a later test."""
    _idle.append(gateway)


def end_all() -> None:
    """End every process that waits, also when one of them fails a check."""
    with ExitStack() as stack:
        while _idle:
            stack.callback(_end, _idle.pop())


def _check(gateway: Gateway) -> None:
    """Check that it runs with the same workers, and has logged no fault while it waited; else end it."""
    try:
        gateway.check_alive()
        gateway.check_log()
    except Exception as fault:
        gateway.stop()
        raise AssertionError(f"idle after {gateway.served[-1]}: {fault}\n{gateway.past}") from None


def _end(gateway: Gateway) -> None:
    _check(gateway)
    try:
        gateway.end()
    except Exception as fault:
        fault.add_note(gateway.past)
        raise


def counters(page: str) -> dict[str, float]:
    """Read the counters and histograms of a metrics page: series -> value."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)", page, re.MULTILINE))
    found = {}
    for line in page.splitlines():
        series, _, value = line.rpartition(" ")
        name = re.split("[ {]", line, maxsplit=1)[0]
        family = re.sub("_(bucket|count|sum)$", "", name)
        if "counter" in (kinds.get(name), kinds.get(family)) or kinds.get(family) == "histogram":
            found[series] = float(value)
    return found
