"""Propagation: from "apply returned" to the first 200, one route after another.

In: a Gateway, a number of routes. Out: milliseconds by number of routes there are already. The route's host is asked for every half
millisecond on a kept connection from outside the node; before the apply it must be unknown (404).
Must never: leave out a slow one, or take another answer than 404 and 200 for right.
"""

import http.client
import statistics
import time
from dataclasses import dataclass, field
from itertools import pairwise

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

    def parts(self) -> list[tuple[str, list[float]]]:
        """Return equal parts in order, each with the routes that there were."""
        edges = [len(self.taken) * at // _STEPS for at in range(_STEPS + 1)]
        pairs = [(at, end) for at, end in pairwise(edges) if at < end]
        return [(f"{at}-{end}", self.taken[at:end]) for at, end in pairs]

    def table(self) -> list[str]:
        """Return a markdown table: a line per part of the routes, and one for all."""
        lines = [
            "| routes there are | mean ms | p50 | p99 | max |",
            "|---|---|---|---|---|",
        ]
        for name, part in [*self.parts(), ("all", self.taken)]:
            ordered = sorted(part)
            lines.append(
                f"| {name} | {statistics.mean(part):.1f} | {ordered[len(part) // 2]:.1f} "
                f"| {ordered[min(len(part) - 1, len(part) * 99 // 100)]:.1f} | {ordered[-1]:.1f} |"
            )
        lines += ["", f"answers other than 404 before and 200 after: {len(self.wrong)}"]
        return lines + [f"- {one}" for one in self.wrong[:10]]


class _Client:
    """A kept connection from outside the node; another one when the proxy closes it, as it does after many requests."""

    def __init__(self, site: UnderLoad) -> None:
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


def measure_propagation(site: UnderLoad, routes: int) -> Spread:
    """Create routes one by one; each is waited for."""
    spread = Spread()
    client = _Client(site)
    try:
        for number in range(routes):
            host = f"p{number}.example"
            if (status := client.ask(host)) != 404:
                spread.wrong.append(f"{host}: {status} before it was there")
            site.admin.create(route(site.app, f"p-{number}", "eg", [host], service="one"))
            spread.taken.append(_wait(client, host, spread) * 1000)
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
