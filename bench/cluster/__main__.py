"""`python -m bench.cluster` (root; tests/ on PYTHONPATH): propagation of routes, what the controller costs at rest, mistakes.

In: command-line options. Out: markdown on standard output and in a file. A release of the chart is installed in a world
of its own with one proxy; the numbers hold for the whole way: API server, controller, stream, proxy. Exit 1 when an answer was
other than 404 before and 200 after. Must never: run beside another program that wants the processor, and call that a result.
"""

import argparse
import datetime
import sys
from pathlib import Path

from bench.cluster.cost import measure_cost
from bench.cluster.goals import judge_all
from bench.cluster.mistakes import measure_mistakes
from bench.cluster.propagation import measure_propagation
from bench.cluster.spent import Meter
from bench.machine import describe_machine
from cluster.under_load import under_load
from cluster.world.world import World

RESULTS = Path(__file__).parents[1] / "results"


def main() -> int:
    """Run everything and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("--routes", type=int, default=3000, help="for propagation (default 3000)")
    parser.add_argument("--many", type=int, default=5000, help="for memory, with Services")
    parser.add_argument("--out", type=Path, help="file to write instead of bench/results/...")
    options = parser.parse_args()
    machine = describe_machine([])  # with its load before ours
    world = World.make()
    done = False
    try:
        world.start()
        with under_load(world, proxies=1) as site:
            spread = measure_propagation(site, Meter.of_site(site), options.routes)
            cost = measure_cost(site, options.routes, options.many) if options.many else None
            mistakes = measure_mistakes(site)
        done = True
    finally:
        kept = world.stop(keep_logs=not done)
        if kept is not None:
            print(f"logs of the world: {kept}", file=sys.stderr)
    today = datetime.datetime.now(datetime.UTC).date()
    text = "\n".join(
        [
            f"# Control plane, {today}",
            "",
            machine,
            "",
            *spread.table(),
            "",
            *(cost.table() if cost is not None else []),
            "",
            *mistakes,
            "",
            *(f"- {line}" for line in judge_all(spread, cost)),
            "",
        ]
    )
    print(text)
    out = options.out or RESULTS / f"{today}-cluster.md"
    out.parent.mkdir(exist_ok=True)
    out.write_text(text)
    return 1 if spread.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
