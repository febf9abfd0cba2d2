"""The h2-attacks row: what others feel while a client of HTTP/2 means no good, and what of memory that takes.

In: the attacks of attacker.py. Out: a `Table` with a line for each proxy and attack. Rounds alternate between the load alone and under each
attack, against one process of each proxy; a ratio is of one round. The load is an open loop, so that a proxy that stands still is charged for it.
Must never count what the attacker asks for.
"""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median

from bench.attacker import ATTACKS
from bench.field import Bench, Entrant, Variant, open_field
from bench.generator import Load, LoadResult, run_load
from bench.process import LOAD_CPU, read_pss_bytes, stop_process
from bench.scenario import Scenario
from bench.table import Table, show_bytes

RATE = 2000
HEAD_START = 0.3  # seconds that the attack has before the load begins


@dataclass(frozen=True)
class Round:
    """One proxy under one attack, and alone before it."""

    alone: LoadResult
    under: LoadResult
    grown: int  # bytes of memory, while the attack goes on
    made: int  # connections of the attacker


def measure_attacks(bench: Bench, name: str, title: str) -> Table:
    """Every proxy that speaks HTTP/2, under every attack."""
    header = [
        "proxy",
        "attack",
        "p99 us alone",
        "under it",
        "p99 under / alone",
        "p50 under / alone",
    ]
    header += ["memory grows by", "attacker's connections/s", "errors"]
    table = Table(name, title, header)
    with open_field(bench, [Variant("", Scenario(http2=True))]) as field:
        entrants = [one for one in field.entrants if one.variant.scenario.http2]
        for one in entrants:
            for attack in ATTACKS:
                rounds = [_take(bench, one, attack) for _ in range(bench.rounds)]
                _add_line(table, one.label, attack, rounds)
    for label, reason in field.missing.items():
        table.add_missing(label, reason)
    table.notes += [f"{attack}: {one.what}." for attack, one in ATTACKS.items()]
    table.notes.append(
        f"{RATE} requests/s in HTTP/1.1 on the same port; the attacker has what they leave of its CPU (SCHED_IDLE), "
        "16 connections, and another address. Ratios are the median of those within a round, memory the most of all rounds."
    )
    return table


def _take(bench: Bench, entrant: Entrant, attack: str) -> Round:
    running = entrant.running
    port, pids = running.setup.port, running.pids()
    load, plain = Load(rate=RATE), Scenario()
    alone = run_load(load, plain, port, bench.seconds, bench.folder)
    before = read_pss_bytes(pids)
    seconds = bench.seconds + 4 * HEAD_START
    argv = ["taskset", "-c", str(LOAD_CPU), sys.executable, "-m", "bench.attacker"]
    argv += ["--port", str(port), "--attack", attack, "--seconds", str(seconds)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as attacker:
        try:
            assert attacker.stdout
            attacker.stdout.readline()  # it begins
            time.sleep(HEAD_START)
            under = run_load(load, plain, port, bench.seconds, bench.folder)
            grown = read_pss_bytes(pids) - before
            output, _ = attacker.communicate(timeout=seconds)
        finally:
            stop_process(attacker)
    made = round(json.loads(output)["connections"] / seconds)
    bench.say(
        f"  {entrant.label} {attack}: p99 {alone.p99:.0f} and {under.p99:.0f} us, {show_bytes(grown)}, {made}/s, "
        f"errors {under.errors}"
    )
    return Round(alone, under, grown, made)


def _add_line(table: Table, label: str, attack: str, rounds: list[Round]) -> None:
    p99 = [one.under.p99 / one.alone.p99 for one in rounds if one.alone.p99]
    p50 = [one.under.p50 / one.alone.p50 for one in rounds if one.alone.p50]
    grown = max(one.grown for one in rounds)
    values = table.values.setdefault(label, {"p99_share": 0.0, "grown": 0.0})
    if p99:
        values["p99_share"] = max(values["p99_share"], median(p99))
    values["grown"] = max(values["grown"], grown)
    table.lines.append(
        [
            label,
            attack,
            f"{median(one.alone.p99 for one in rounds):.0f}",
            f"{median(one.under.p99 for one in rounds):.0f}",
            f"{median(p99):.2f}" if p99 else "-",
            f"{median(p50):.2f}" if p50 else "-",
            show_bytes(grown),
            f"{median(one.made for one in rounds):.0f}",
            str(sum(one.alone.errors + one.under.errors for one in rounds)),
        ]
    )
