"""Overload: the bench's generator (bench/native/load.c) against proxies, at a rate that does not wait for answers.

In: streams. Out: what the clients got, by their own account. Every run has an end. Anything but a whole 200 or a whole
429 is an error of the generator's.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.native import build_tools, find_tool

GRACE = 60.0  # seconds past its own end that a generator may take on a busy machine


@dataclass(frozen=True)
class Stream:
    """`rate` requests a second for /get<suffix>; 0: as fast as answers come."""

    port: int
    rate: float
    suffix: str = ""
    connections: int = 16
    requests: int = 0  # at most; 0: no other end than the time

    def command(self, seconds: float) -> list[str]:
        """Its generator."""
        # They take turns, each about every other second: one that is not used would meet a timeout of the gateway's in mid-request.
        busy = (
            min(self.connections, max(1, round(self.rate * 2))) if self.rate else self.connections
        )
        made = [str(find_tool("load")), "--port", str(self.port), "--seconds", str(seconds)]
        made += ["--connections", str(busy), "--suffix", self.suffix, "--refusals", "--rotate"]
        if self.rate:
            made += ["--rate", str(self.rate)]
        if self.requests:
            made += ["--requests", str(self.requests)]
        return made


@dataclass(frozen=True)
class Outcome:
    """What clients saw."""

    passed: int
    refused: int
    errors: int
    kinds: tuple[str, ...] = ()  # of the errors, by stream

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.passed + other.passed,
            self.refused + other.refused,
            self.errors + other.errors,
            self.kinds + other.kinds,
        )


class Flood:
    """Running streams; `end` waits for them."""

    def __init__(self, streams: Iterable[Stream], seconds: float) -> None:
        build_tools()
        self._seconds = seconds
        self._processes = [
            subprocess.Popen(stream.command(seconds), stdout=subprocess.PIPE) for stream in streams
        ]

    @property
    def running(self) -> bool:
        """At least one stream goes on."""
        return any(process.poll() is None for process in self._processes)

    def end(self) -> Outcome:
        """The sum over all streams."""
        total = Outcome(0, 0, 0)
        for process in self._processes:
            out, _ = process.communicate(timeout=self._seconds + GRACE)
            assert process.returncode == 0, process.args
            result = json.loads(out)
            passed = result["requests"] - result["refused"]
            kinds = (f"{process.args}: {result['error_kinds']}",) if result["errors"] else ()
            total += Outcome(passed, result["refused"], result["errors"], kinds)
        return total

    def stop(self) -> None:
        """Kill what is left; for tests that fail."""
        for process in self._processes:
            process.kill()
            process.communicate()


@contextmanager
def flooding(streams: Iterable[Stream], seconds: float) -> Iterator[Flood]:
    """Streams for the time of a block."""
    flood = Flood(streams, seconds)
    try:
        yield flood
    finally:
        flood.stop()


@contextmanager
def running_origin() -> Iterator[int]:
    """The bench's origin, which answers as fast as any; yields its port."""
    build_tools()
    process = subprocess.Popen([str(find_tool("origin")), "0"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()
