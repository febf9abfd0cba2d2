"""Processes of gateways that go on from one test to the next: a start and a stop cost 0.6 s of CPU, an apply some milliseconds.

In: what `Gateway` knows of its process, at the end of a test that found nothing wrong. Out: the same for the next test, with the counters
and the sizes of the logs at that time, so that `metric`, `log` and `access_log` begin with the test. Must never: pass a process on whose
options differ, that a test has restarted or harmed, or that holds much memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

__all__ = ["ATTRIBUTES", "borrow", "counters", "end_all", "give_back"]

#: Of a `Gateway`: its process, and where that listens and writes.
ATTRIBUTES = (
    "workers folder file void_port admin ready metrics generation title _process _first_workers"
).split()
_MOST = 3  # idle processes of one pytest process
_idle: list[dict[str, Any]] = []


def borrow(workers: int) -> dict[str, Any] | None:
    """Take a process with so many workers that waits for a test."""
    for at, process in enumerate(_idle):
        if process["workers"] == workers:
            return _idle.pop(at)
    return None


def give_back(process: dict[str, Any]) -> bool:
    """Keep a process for a later test; False: there are enough."""
    if len(_idle) >= _MOST:
        return False
    _idle.append(process)
    return True


def end_all(end: Callable[[dict[str, Any]], None]) -> None:
    """End every process that waits, also when the end of one of them is a bad one."""
    with ExitStack() as stack:
        while _idle:
            stack.callback(end, _idle.pop())


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
