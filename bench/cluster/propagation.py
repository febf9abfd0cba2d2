"""Propagation: from "apply returned" to the first 200, one route after another.

In: a Gateway, a number of routes. Out: milliseconds, and CPU of every program on the way, by number of routes there are already. The
route's host is asked for every half millisecond on a kept connection from outside the node; before the apply it must be unknown
(404). The first routes are a part of their own: what grows is seen against those.
Must never: leave out a slow one, or take another answer than 404 and 200 for right.
"""

import http.client
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

from bench.cluster.spent import PROGRAMS, Meter
from cluster.installed import route
from cluster.world import netns
from cluster.world.api import Api
from cluster.world.world import World

POLL = 0.0005  # seconds
PATIENCE = 10.0
FIRST = 50  # routes of the first part
_STEPS = 6  # equal parts of the others


class Site(Protocol):
    """A Gateway "eg" in the namespace `app`, with a Service "one"."""

    @property
    def world(self) -> World: ...
    @property
    def admin(self) -> Api: ...
    @property
    def app(self) -> str: ...
    @property
    def address(self) -> str: ...


@dataclass(frozen=True)
class Part:
    """Routes in a row: milliseconds of each, and milliseconds of CPU of one on average, by program."""

    name: str  # routes that there were
    taken: list[float]
    cpu: Mapping[str, float]

    def row(self) -> str:
        """Return a row of a markdown table."""
        ordered = sorted(self.taken)
        middle, late = (ordered[len(ordered) * at // 100] for at in (50, 99))
        cpu = " | ".join(f"{self.cpu[one]:.1f}" for one in PROGRAMS)
        mean = statistics.mean(ordered)
        return (
            f"| {self.name} | {mean:.1f} | {middle:.1f} | {late:.1f} | {ordered[-1]:.1f} | {cpu} |"
        )


@dataclass
class Spread:
    """Milliseconds of every route in order, answers that were wrong, and CPU by the number of routes when it was read."""

    taken: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    spent: dict[int, Mapping[str, float]] = field(default_factory=dict)

    def parts(self) -> list[Part]:
        """Return what was measured between each two readings, in order."""
        return [self._part(at, end) for at, end in pairwise(sorted(self.spent))]

    def whole(self) -> Part:
        """Return all of it as one part."""
        return self._part(0, len(self.taken), "all")

    def _part(self, at: int, end: int, name: str = "") -> Part:
        before, after = self.spent[at], self.spent[end]
        cpu = {one: (after[one] - before[one]) / (end - at) * 1000 for one in PROGRAMS}
        return Part(name or f"{at}-{end}", self.taken[at:end], cpu)

    def table(self) -> list[str]:
        """Return a markdown table: a line per part of the routes, and one for all."""
        lines = [
            f"| routes there are | mean ms | p50 | p99 | max | {' | '.join(f'CPU ms of {one}' for one in PROGRAMS)} |",
            "|---" * (5 + len(PROGRAMS)) + "|",
            *(part.row() for part in (*self.parts(), self.whole())),
            "",
            f"answers other than 404 before and 200 after: {len(self.wrong)}",
        ]
        return lines + [f"- {one}" for one in self.wrong[:10]]


class _Client:
    """A kept connection from outside the node; another one when the proxy closes it, as it does after many requests."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._open: http.client.HTTPConnection | None = None

    def ask(self, host: str) -> int:
        """Return the status of an answer."""
        if self._open is None:
            self._open = http.client.HTTPConnection(self._site.address)
            self._open.auto_open = 0  # it knows nothing of namespaces
            network = self._site.world.network.client
            self._open.sock = netns.connect(network, self._site.address, 80, 5.0)
        self._open.request("GET", "/", headers={"Host": host})
        answer = self._open.getresponse()
        answer.read()
        if answer.will_close:
            self.close()
        return answer.status

    def close(self) -> None:
        """Close the connection."""
        if self._open is not None:
            self._open.close()
            self._open = None


def measure_propagation(site: Site, meter: Meter, routes: int) -> Spread:
    """Create routes one by one; each is waited for."""
    spread = Spread()
    client = _Client(site)
    edges = {0, min(FIRST, routes), *(routes * at // _STEPS for at in range(1, _STEPS + 1))}
    try:
        for number in range(routes):
            if number in edges:
                spread.spent[number] = meter.read()
            host = f"p{number}.example"
            if (status := client.ask(host)) != 404:
                spread.wrong.append(f"{host}: {status} before it was there")
            site.admin.create(route(site.app, f"p-{number}", "eg", [host], service="one"))
            spread.taken.append(_wait(client, host, spread) * 1000)
        spread.spent[routes] = meter.read()
    finally:
        client.close()
    return spread


def _wait(client: _Client, host: str, spread: Spread) -> float:
    began = time.perf_counter()
    due = began
    while True:
        status = client.ask(host)
        taken = time.perf_counter() - began
        if status == 200:
            return taken
        if status != 404:
            spread.wrong.append(f"{host}: {status} after {taken * 1000:.1f} ms")
        if taken > PATIENCE:
            raise TimeoutError(f"{host} is unknown after {PATIENCE:.0f} s")
        due = max(due + POLL, time.perf_counter())
        time.sleep(max(0.0, due - time.perf_counter()))
