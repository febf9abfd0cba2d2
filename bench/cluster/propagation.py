"""Propagation: from "apply returned" to the first 200, one route after another.

In: a Gateway, a number of routes. Out: milliseconds by number of routes there are already. The route's host is asked for every half
millisecond on a kept connection from outside the node; before the apply it must be unknown (404).
Must never: leave out a slow one, or take another answer than 404 and 200 for right.
"""

import http.client
import statistics
import time
from dataclasses import dataclass, field

from cluster.installed import route
from cluster.underload import UnderLoad
from cluster.world import netns

POLL = 0.0005  # seconds
PATIENCE = 10.0
_STEPS = 6


@dataclass
class Spread:
    """Milliseconds of every route in order, and answers that were wrong."""

    taken: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def table(self) -> list[str]:
        """Return a markdown table: a line per part of the routes, and one for all."""
        size = max(1, len(self.taken) // _STEPS)
        parts = [
            (f"{at}-{at + size}", self.taken[at : at + size])
            for at in range(0, len(self.taken), size)
        ]
        lines = [
            "| routes there are | mean ms | p50 | p99 | max |",
            "|---|---|---|---|---|",
        ]
        for name, part in [*parts, ("all", self.taken)]:
            ordered = sorted(part)
            lines.append(
                f"| {name} | {statistics.mean(part):.1f} | {ordered[len(part) // 2]:.1f} "
                f"| {ordered[min(len(part) - 1, len(part) * 99 // 100)]:.1f} | {ordered[-1]:.1f} |"
            )
        lines += ["", f"answers other than 404 before and 200 after: {len(self.wrong)}"]
        return lines + [f"- {one}" for one in self.wrong[:10]]


def measure_propagation(site: UnderLoad, routes: int) -> Spread:
    """Create routes one by one; each is waited for."""
    spread = Spread()
    client = netns.connect(site.world.network.client, site.address, 80, 5.0)
    connection = http.client.HTTPConnection(site.address)
    connection.sock = client
    try:
        for number in range(routes):
            host = f"p{number}.example"
            if (status := _ask(connection, host)) != 404:
                spread.wrong.append(f"{host}: {status} before it was there")
            site.admin.create(route(site.app, f"p-{number}", "eg", [host], service="one"))
            spread.taken.append(_wait(connection, host, spread) * 1000)
    finally:
        connection.close()
    return spread


def _wait(connection: http.client.HTTPConnection, host: str, spread: Spread) -> float:
    began = time.perf_counter()
    due = began
    while True:
        status = _ask(connection, host)
        taken = time.perf_counter() - began
        if status == 200:
            return taken
        if status != 404:
            spread.wrong.append(f"{host}: {status} after {taken * 1000:.1f} ms")
        if taken > PATIENCE:
            raise TimeoutError(f"{host} is unknown after {PATIENCE:.0f} s")
        due = max(due + POLL, time.perf_counter())
        time.sleep(max(0.0, due - time.perf_counter()))


def _ask(connection: http.client.HTTPConnection, host: str) -> int:
    connection.request("GET", "/", headers={"Host": host})
    answer = connection.getresponse()
    answer.read()
    return answer.status
