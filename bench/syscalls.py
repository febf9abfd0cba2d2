"""System calls per keep-alive request at 64 connections, and which ones.

In: running proxies. Out: a `Table`. Counted by `perf stat` on tracepoints where the machine allows
it (no slow-down to speak of), else by `strace -c` (which slows a proxy enough to fill its epoll
batches: the count is then a lower bound, and the table says so).
Must never be mixed with the timing rows: a traced proxy is not timed.
"""

import re
import signal
import subprocess
import time
from pathlib import Path

from bench.field import Bench, Entrant, Variant, open_field
from bench.generator import Load, decode_result, make_command, run_load
from bench.peers.peer import find_program
from bench.scenario import Scenario
from bench.table import Table

EVENTS = Path("/sys/kernel/tracing/events/syscalls")
ALL = "raw_syscalls:sys_enter"
NAMES = (
    "read readv recvfrom recvmsg write writev sendto sendmsg epoll_wait epoll_pwait epoll_pwait2 "
    "epoll_ctl accept4 connect close futex clock_gettime getsockopt setsockopt timerfd_settime "
    "io_uring_enter splice"
).split()
ATTACH_SECONDS = 0.5  # strace says nothing when it has attached
SHOWN = 0.005  # calls per request below which a name is not worth a word


def measure_syscalls(bench: Bench, name: str, title: str) -> Table:
    """One short bounded run per proxy."""
    counted_by = "perf" if _can_perf() else "strace"
    table = Table(name, title, ["proxy", "calls/request", "which", "requests", "errors"])
    with open_field(bench, [Variant("", Scenario())]) as field:
        for entrant in field.entrants:
            port = entrant.running.setup.port
            run_load(Load(), entrant.variant.scenario, port, 0.5, bench.folder)
            count = _count_perf if counted_by == "perf" else _count_strace
            calls, requests, errors = count(bench, entrant)
            total = calls.pop(ALL) / max(requests, 1)
            parts = {n: c / max(requests, 1) for n, c in calls.items()}
            words = [f"{n} {v:.2f}" for n, v in sorted(parts.items(), key=lambda p: -p[1])]
            which = ", ".join(w for w in words if float(w.split()[1]) > SHOWN)
            bench.say(f"  {entrant.label}: {total:.2f} ({which})")
            table.lines.append([entrant.label, f"{total:.2f}", which, str(requests), str(errors)])
            table.values[entrant.label] = {"calls": total}
    for label, reason in field.missing.items():
        table.add_missing(label, reason)
    table.notes.append(f"counted by {counted_by}.")
    return table


def _can_perf() -> bool:
    if find_program("perf") is None:
        return False
    probe = ["perf", "stat", "-x,", "-e", ALL, "true"]
    done = subprocess.run(probe, capture_output=True, check=False)
    return done.returncode == 0 and b"not supported" not in done.stderr


def _count_perf(bench: Bench, entrant: Entrant) -> tuple[dict[str, int], int, int]:
    """Calls by name and ALL, requests, errors."""
    out = bench.folder / "perf.csv"
    names = [name for name in NAMES if (EVENTS / f"sys_enter_{name}").exists()]
    events = ",".join([ALL, *(f"syscalls:sys_enter_{name}" for name in names)])
    pids = ",".join(map(str, entrant.running.pids()))
    load = make_command(
        Load(), entrant.variant.scenario, entrant.running.setup.port, min(bench.seconds, 2.0)
    )
    argv = ["perf", "stat", "-x,", "-o", str(out), "-e", events, "-p", pids, "--", *load]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=60)
    calls: dict[str, int] = {}
    for line in out.read_text().splitlines():
        cells = line.split(",")
        if len(cells) > 2 and cells[0].isdigit():
            calls[cells[2].replace("syscalls:sys_enter_", "")] = int(cells[0])
    result = decode_result(done.stdout)
    return calls, result.requests, result.errors


def _count_strace(bench: Bench, entrant: Entrant) -> tuple[dict[str, int], int, int]:
    """As _count_perf."""
    out = bench.folder / "strace.txt"
    pids = [f"-p{pid}" for pid in entrant.running.pids()]
    tracer = subprocess.Popen(
        ["strace", "-c", "-f", "-qq", "-o", str(out), *pids], stderr=subprocess.DEVNULL
    )
    time.sleep(ATTACH_SECONDS)
    try:
        port = entrant.running.setup.port
        result = run_load(Load(), entrant.variant.scenario, port, 1.0, bench.folder)
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(10)
    calls: dict[str, int] = {}
    for line in out.read_text().splitlines():
        match = re.fullmatch(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(\w+)\s*", line)
        if match:
            calls[match[2]] = int(match[1])
    calls[ALL] = calls.pop("total", sum(calls.values()))
    return calls, result.requests, result.errors
