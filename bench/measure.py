"""Throughput rows: proxy CPU per request, requests/s and closed-loop latency, alternating.

In: variants and a load. Out: a `Table`. Every round measures every entrant once, in an order that
rotates by one each round, so that a slow minute of the machine hits all of them.
Must never average away errors: any failed request is shown with its count.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from statistics import median

from bench.field import Bench, Entrant, Field, Variant, make_label, open_field
from bench.generator import Load, LoadResult, run_load
from bench.process import LOAD_CPU, PROXY_CPU, read_cpu_clock, read_cpu_seconds
from bench.table import Table, show_spread

WARM_SECONDS = 0.5
PEERS_COMPARED = ("floor", "nginx", "haproxy", "nghttpx", "envoy", "pingora", "sozu")
SHOWN = ("floor", "nginx", "haproxy", "envoy", "pingora", "sozu")
IDLE_NEEDED = 0.10  # below this the load CPU is the limit and requests/s say nothing


@dataclass(frozen=True)
class Sample:
    """One entrant in one round. cpu_us: (utime + stime) of all its processes / requests."""

    load: LoadResult
    cpu_us: float
    in_kernel: float  # share of it
    proxy_busy: float
    load_idle: float
    log_bytes: int

    @property
    def rps(self) -> float:
        """Requests per second of the generator."""
        return self.load.requests / self.load.seconds


def take_sample(bench: Bench, entrant: Entrant, load: Load, seconds: float) -> Sample:
    """Generate for `seconds` against one entrant and read what it cost."""
    running, scenario = entrant.running, entrant.variant.scenario
    log = running.peer.find_log(running.setup)
    pids = running.pids()
    user, system = read_cpu_seconds(pids)
    clocks = [read_cpu_clock(c) for c in (PROXY_CPU, LOAD_CPU)]
    result = run_load(load, scenario, running.setup.port, seconds, bench.folder)
    after = [read_cpu_clock(c) for c in (PROXY_CPU, LOAD_CPU)]
    now = read_cpu_seconds(pids)
    user, system = now[0] - user, now[1] - system
    log_bytes = 0
    if scenario.logs and log.exists():
        # Blocks, not size: a writer without O_APPEND goes on at its offset and leaves a hole.
        log_bytes = log.stat().st_blocks * 512
        os.truncate(log, 0)
    return Sample(
        load=result,
        cpu_us=(user + system) * 1e6 / max(result.requests, 1),
        in_kernel=system / max(user + system, 1e-9),
        proxy_busy=after[0].busy_share_since(clocks[0]),
        load_idle=1 - after[1].busy_share_since(clocks[1]),
        log_bytes=log_bytes,
    )


def take_rounds(bench: Bench, field: Field, load: Load) -> dict[str, list[Sample]]:
    """Warm every entrant, then alternate."""
    samples: dict[str, list[Sample]] = {entrant.label: [] for entrant in field.entrants}
    for entrant in field.entrants:
        take_sample(bench, entrant, load, WARM_SECONDS)
    for number in range(bench.rounds):
        turn = number % max(len(field.entrants), 1)
        for entrant in field.entrants[turn:] + field.entrants[:turn]:
            sample = take_sample(bench, entrant, load, bench.seconds)
            samples[entrant.label].append(sample)
            bench.say(
                f"  {entrant.label}: {sample.cpu_us:.1f} us/request, {sample.rps:.0f}/s, "
                f"load CPU idle {sample.load_idle:.0%}, errors {sample.load.errors}"
            )
    return samples


def measure_load(
    bench: Bench, name: str, title: str, load: Load, variants: Sequence[Variant]
) -> Table:
    """The table of one throughput row; with several variants, also each one's cost to its first."""
    slope = len(variants) > 1
    header = ["proxy", "CPU us/request", "in kernel", *(f"/ {one}" for one in SHOWN), "requests/s"]
    header += ["proxy CPU busy"]
    header += ["load CPU idle", "p50 us", "p99 us", "errors"] + (["CPU at 1 / here"] * slope)
    table = Table(name, title, header)
    with open_field(bench, variants) as field:
        samples = take_rounds(bench, field, load)
    for peer in bench.peers:
        for variant in variants:
            label = make_label(peer, variant)
            if label not in samples:
                table.add_missing(label, field.missing[label])
                continue
            taken = samples[label]
            values = {"cpu_us": _median_cpu(taken), **peer.read_facts()}
            for other in PEERS_COMPARED:
                # The floor has one variant only; a proxy is compared with it in each of its own.
                of = variants[0] if other == "floor" else variant
                values[other] = _pair_ratio(taken, samples.get(f"{other} {of.label}".strip()))
            line = _show_line(label, taken, values)
            if slope:
                values["share"] = _pair_ratio(samples.get(make_label(peer, variants[0])), taken)
                line.append(f"{values['share']:.3f}")
            table.lines.append(line)
            table.values[label] = {k: v for k, v in values.items() if not isnan(v)}
    _add_notes(table, samples, slope)
    return table


def _pair_ratio(taken: list[Sample] | None, other: list[Sample] | None) -> float:
    """Median over the rounds of (CPU here / CPU there in the same round); NaN without both.

    Pairing by round cancels what the machine did to the whole round.
    """
    if not taken or not other:
        return nan
    pairs = zip(taken, other, strict=True)
    return median(mine.cpu_us / theirs.cpu_us if theirs.cpu_us else nan for mine, theirs in pairs)


def _median_cpu(samples: Sequence[Sample]) -> float:
    return median(sample.cpu_us for sample in samples)


def _show_line(label: str, taken: list[Sample], values: dict[str, float]) -> list[str]:
    idle = median(sample.load_idle for sample in taken)
    rps = f"{median(sample.rps for sample in taken):.0f}"
    line = [label, show_spread([sample.cpu_us for sample in taken])]
    line.append(f"{median(sample.in_kernel for sample in taken):.0%}")
    for other in SHOWN:
        line.append("-" if isnan(values[other]) else f"{values[other]:.2f}")
    return [
        *line,
        rps if idle >= IDLE_NEEDED else f"({rps})",
        f"{median(sample.proxy_busy for sample in taken):.0%}",
        f"{idle:.0%}",
        f"{median(sample.load.p50 for sample in taken):.0f}",
        f"{median(sample.load.p99 for sample in taken):.0f}",
        str(sum(sample.load.errors for sample in taken)),
    ]


def _add_notes(table: Table, samples: dict[str, list[Sample]], slope: bool) -> None:
    if any(median(s.load_idle for s in taken) < IDLE_NEEDED for taken in samples.values()):
        table.notes.append(
            "requests/s in brackets: the load CPU had under 10 % idle, so it measures the "
            "generator and the origin; CPU us/request is the figure."
        )
    if slope:
        table.notes.append(
            "last column: CPU per request with one route / CPU per request here: the share of its "
            "requests/s that a full core keeps, whatever the generator could send (goal: >= 0.95)."
        )
    for label, taken in samples.items():
        logged = sum(sample.log_bytes for sample in taken)
        if logged:
            each = logged / sum(sample.load.requests for sample in taken)
            table.notes.append(f"{label}: {each:.0f} bytes of access log per request.")
