"""The latency row: a fixed open-loop rate, p50/p99/p99.9, and what each adds to going direct.

In: a rate that every proxy can carry. Out: a `Table`. Latency counts from when a request was due,
so stalls are charged in full. Must never be read when requests were left unsent: then the rate
was too high and the line says so.
"""

from statistics import median

from bench.field import Bench, Variant, open_field
from bench.generator import Load, LoadResult, run_load
from bench.scenario import Scenario
from bench.table import Table

RATE = 8000


def measure_latency(bench: Bench, name: str, title: str) -> Table:
    """Alternating rounds over `direct` (no proxy) and every proxy."""
    scenario = Scenario()
    load = Load(rate=RATE)
    header = ["proxy", "p50 us", "p99 us", "p99.9 us", "p50 - direct", "p99 - direct"]
    table = Table(name, title, [*header, "p99.9 - direct", "errors", "unsent"])
    with open_field(bench, [Variant("", scenario)]) as field:
        ports = {"direct": bench.origins.http1}
        ports |= {entrant.label: entrant.running.setup.port for entrant in field.entrants}
        results: dict[str, list[LoadResult]] = {label: [] for label in ports}
        for number in range(bench.rounds):
            turn = number % len(ports)
            for label in [*list(ports)[turn:], *list(ports)[:turn]]:
                result = run_load(load, scenario, ports[label], bench.seconds, bench.folder)
                results[label].append(result)
                bench.say(f"  {label}: p50 {result.p50:.0f}, p99 {result.p99:.0f} us")
    direct = [median(values) for values in _columns(results["direct"])]
    for label, taken in results.items():
        values = [median(column) for column in _columns(taken)]
        line = [label, *(f"{value:.0f}" for value in values)]
        line += [f"{value - base:.0f}" for value, base in zip(values, direct, strict=True)]
        line += [str(sum(r.errors for r in taken)), str(sum(r.unsent for r in taken))]
        table.lines.append(line)
        table.values[label] = {"p50": values[0], "p99": values[1], "p999": values[2]}
    for label, reason in field.missing.items():
        table.add_missing(label, reason)
    table.notes.append(f"{RATE} requests/s, {load.connections} connections, keep-alive GET.")
    return table


def _columns(taken: list[LoadResult]) -> tuple[list[float], list[float], list[float]]:
    return [r.p50 for r in taken], [r.p99 for r in taken], [r.p999 for r in taken]
