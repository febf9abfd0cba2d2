"""The h2-beside row: what clients feel while one beside them reads nothing of 16 long answers, and another reads slowly.

In: the load of the HTTP/2 row. Out: a `Table`. Rounds alternate between the load alone and with the two clients, against one process of
each proxy, so that a ratio is of one round. Must never count the two clients' own requests.
"""

from dataclasses import replace
from statistics import median

from bench.field import Bench, Entrant, Variant, open_field
from bench.generator import Load
from bench.measure import WARM_SECONDS, Sample, take_sample
from bench.scenario import Scenario
from bench.table import Table, show_spread

Pairs = list[tuple[Sample, Sample]]


def measure_beside(bench: Bench, name: str, title: str, load: Load, scenario: Scenario) -> Table:
    """A line for each proxy."""
    header = ["proxy", "CPU us/request alone", "beside", "beside / alone", "p50 us alone", "beside"]
    header += ["p99 us alone", "beside", "p99 beside / alone", "the two were cut", "errors"]
    table = Table(name, title, header)
    with open_field(bench, [Variant("", scenario)]) as field:
        entrants = [one for one in field.entrants if one.variant.scenario.http2]
        taken: dict[str, Pairs] = {one.label: [] for one in entrants}
        for one in entrants:
            take_sample(bench, one, load, WARM_SECONDS)
        for number in range(bench.rounds):
            turn = number % max(len(entrants), 1)
            for one in entrants[turn:] + entrants[:turn]:
                taken[one.label].append(_take_pair(bench, one, load, number))
    for label, pairs in taken.items():
        _add_line(table, label, pairs)
    for label, reason in field.missing.items():
        table.add_missing(label, reason)
    table.notes.append(
        "one client asks for 10 MiB on each of 16 streams and reads nothing, the other takes 10 MiB at 640 KiB/s; "
        "a ratio is the median of those within a round."
    )
    return table


def _take_pair(bench: Bench, entrant: Entrant, load: Load, number: int) -> tuple[Sample, Sample]:
    loads = [load, replace(load, beside=True)]
    order = (0, 1) if number % 2 == 0 else (1, 0)
    found = {i: take_sample(bench, entrant, loads[i], bench.seconds) for i in order}
    alone, beside = found[0], found[1]
    bench.say(
        f"  {entrant.label}: p99 {alone.load.p99:.0f} us alone, {beside.load.p99:.0f} beside, "
        f"{alone.cpu_us:.1f} and {beside.cpu_us:.1f} us/request"
    )
    return alone, beside


def _add_line(table: Table, label: str, pairs: Pairs) -> None:
    alone, beside = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    values = {
        "cpu_us": median(one.cpu_us for one in beside),
        "cpu_share": median(b.cpu_us / a.cpu_us for a, b in pairs if a.cpu_us),
        "p99_share": median(b.load.p99 / a.load.p99 for a, b in pairs if a.load.p99),
    }
    line = [label, show_spread([one.cpu_us for one in alone])]
    line += [show_spread([one.cpu_us for one in beside]), f"{values['cpu_share']:.2f}"]
    for quantile in ("p50", "p99"):
        line += [
            f"{median(getattr(one.load, quantile) for one in of):.0f}" for of in (alone, beside)
        ]
    line += [f"{values['p99_share']:.2f}", str(sum(one.load.cut for one in beside))]
    line.append(str(sum(one.load.errors for one in (*alone, *beside))))
    table.lines.append(line)
    table.values[label] = values
