"""`PYTHONPATH=.:tests python -m wire.crowd [--posters 3000 --readers 3000 --seconds 20]`: what ordinary requests wait beside them.

Two tables: milliseconds of a GET through the proxy and of one to the backend itself, beside each other, before the crowd, while it comes and when
it is there; and what the worker says of its turns meanwhile (docs/reference/metrics.md, edgefast_worker_*). The second tells a stall of
ours from a busy machine.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import threading
import time
from dataclasses import dataclass, field

from wire.crowd.side import beside
from wire.harness.proc import descriptors
from wire.harness.scenes import objects_for
from wire.harness.site import Site

GAP = 0.01  # seconds between two requests
LOOK = 1.0  # ... between two looks at the worker: it tells its longest turn of the last half minute or so
COUNTED = ("worker_turns_total", "worker_busy_seconds_total", "worker_longest_turn_seconds")


@dataclass
class Phase:
    """A part of the run: milliseconds of each request, by way, and the worker's own account."""

    name: str
    taken: dict[str, list[float]] = field(
        default_factory=lambda: {"through the proxy": [], "to the backend": []}
    )
    wrong: int = 0
    turns: float = 0
    busy: float = 0
    longest: float = 0
    seconds: float = 0

    def rows(self) -> list[str]:
        """Of the first table."""
        found = []
        for way, taken in self.taken.items():
            ordered = sorted(taken) or [0.0]
            at = [ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in PARTS]
            shown = " | ".join(f"{one:.1f}" for one in (*at, ordered[-1]))
            found.append(f"| {self.name} | {way} | {len(taken)} | {shown} |")
        return found

    def row(self) -> str:
        """Of the second one."""
        share = 100 * self.busy / max(self.seconds, 0.001)
        mean = self.busy / max(self.turns, 1) * 1000
        longest = self.longest * 1000
        return f"| {self.name} | {self.turns / max(self.seconds, 0.001):.0f} | {share:.0f} | {mean:.2f} | {longest:.1f} | {self.wrong} |"


PARTS = (0.5, 0.99, 0.999)


def ask(phase: Phase, way: str, port: int, enough: threading.Event, source: str) -> None:
    """One request after the other, until it is enough. What one way takes holds up nobody on the other one."""
    while not enough.is_set():
        due = time.perf_counter()
        connection = http.client.HTTPConnection(
            "127.0.0.1", port, timeout=60, source_address=(source, 0)
        )
        try:
            connection.request("GET", "/", headers={"Host": "a"})
            phase.wrong += connection.getresponse().status != 200
        except OSError:
            phase.wrong += 1
        finally:
            connection.close()
        phase.taken[way].append((time.perf_counter() - due) * 1000)
        time.sleep(GAP)


def measure(site: Site, backend: int, phase: Phase, enough: threading.Event, source: str) -> None:
    """Ask both ways until it is enough."""
    before, began = [site.metric(f"edgefast_{name}") for name in COUNTED], time.monotonic()
    asking = [
        threading.Thread(target=ask, args=(phase, way, port, enough, source))
        for way, port in zip(phase.taken, (site.port, backend), strict=True)
    ]
    for one in asking:
        one.start()
    while not enough.wait(LOOK):
        phase.longest = max(phase.longest, site.metric(f"edgefast_{COUNTED[2]}"))
    for one in asking:
        one.join()
    after = [site.metric(f"edgefast_{name}") for name in COUNTED]
    phase.turns, phase.busy = after[0] - before[0], after[1] - before[1]
    phase.longest = max(phase.longest, after[2])
    phase.seconds = time.monotonic() - began


def main() -> int:
    """Exit 0 when every answer was right."""
    parser = argparse.ArgumentParser(prog="python -m wire.crowd", description=__doc__)
    parser.add_argument("--posters", type=int, default=3000)
    parser.add_argument("--readers", type=int, default=3000)
    parser.add_argument("--source", default="127.0.0.2", help="who asks; 127.0.0.1 is the crowd")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the first and last part")
    options = parser.parse_args()
    phases = [Phase("alone"), Phase("while it comes"), Phase("beside it")]
    crowd = ["--posters", str(options.posters), "--readers", str(options.readers)]
    with descriptors(4 * (options.posters + options.readers) + 500), beside() as said:
        backend = int(said)
        objects = objects_for(backend, timeouts={"request": "300s"})
        with Site(objects) as site:
            _during(site, backend, phases[0], options)
            enough = threading.Event()
            meanwhile = threading.Thread(
                target=measure, args=(site, backend, phases[1], enough, options.source)
            )
            meanwhile.start()
            with beside("--port", str(site.port), *crowd):
                enough.set()
                meanwhile.join()
                _during(site, backend, phases[2], options)
    lines = ["| part | a GET | requests | p50 ms | p99 | p99.9 | max |", "|---" * 7 + "|"]
    lines += [line for one in phases for line in one.rows()]
    lines += ["", "| part | turns/s | busy % | mean turn ms | longest ms | wrong answers |"]
    lines += ["|---" * 6 + "|", *(one.row() for one in phases)]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if any(one.wrong for one in phases) else 0


def _during(site: Site, backend: int, phase: Phase, options: argparse.Namespace) -> None:
    enough = threading.Event()
    threading.Timer(options.seconds, enough.set).start()
    measure(site, backend, phase, enough, options.source)


if __name__ == "__main__":
    sys.exit(main())
