"""`python -m bench`: run rows over proxies, print the tables, keep them in bench/results/.

In: command-line options. Out: markdown on standard output and in a file; progress on standard
error. Exit 0 when every row was measured for at least one proxy, 1 otherwise, 2 for wrong usage.
Must never run unpinned: it needs two CPUs, one for the proxy and one for everything else.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from bench.field import Bench
from bench.machine import describe_machine
from bench.native import build_tools, find_tool
from bench.origins import ORIGIN_START_SECONDS, run_origins
from bench.peers.registry import PEERS
from bench.process import (
    LOAD_CPU,
    PROXY_CPU,
    ending_with_signals,
    raise_file_limit,
    scratch_folder,
    start_pinned,
    stop_process,
    wait_line,
)
from bench.report import render_report, write_report
from bench.rows import ROWS

NEIGHBOUR_MEGABYTES = 256  # several times the caches of a server's socket


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """Options; unknown rows and proxies end with status 2 and the known names."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rows", help=f"comma-separated, of: {', '.join(ROWS)}")
    parser.add_argument("--proxies", help=f"comma-separated, of: {', '.join(PEERS)}")
    parser.add_argument("--seconds", type=float, default=4.0, help="per sample (default 4)")
    parser.add_argument("--rounds", type=int, default=5, help="samples per proxy (default 5)")
    parser.add_argument(
        "--quick", action="store_true", help="1 second, 2 rounds, smaller counts: a smoke run"
    )
    parser.add_argument(
        "--machine",
        choices=("quiet", "noisy", "both"),
        default="quiet",
        help="noisy: beside a neighbour that empties caches; both: every row twice",
    )
    parser.add_argument("--out", type=Path, help="file to write instead of bench/results/...")
    options = parser.parse_args(argv)
    options.rows = _read_names(parser, "row", options.rows, list(ROWS))
    options.proxies = _read_names(parser, "proxy", options.proxies, list(PEERS))
    if options.quick:
        options.seconds, options.rounds = min(options.seconds, 1.0), min(options.rounds, 2)
    if not 0 < options.seconds <= 60 or not 0 < options.rounds <= 50:
        parser.error("--seconds must be in 0..60 and --rounds in 1..50")
    return options


def _read_names(
    parser: argparse.ArgumentParser, kind: str, text: str | None, known: list[str]
) -> list[str]:
    names = [name.strip() for name in text.split(",")] if text else known
    for name in names:
        if name not in known:
            parser.error(f"no {kind} {name!r}; there are {', '.join(known)}")
    return names


@contextmanager
def run_neighbour(folder: Path) -> Iterator[None]:
    """Somebody else on the load CPU, whose memory goes through the caches that both CPUs share."""
    argv = [str(find_tool("neighbour")), str(NEIGHBOUR_MEGABYTES)]
    process = start_pinned(argv, LOAD_CPU, folder, "neighbour", stdin=subprocess.PIPE)
    try:
        wait_line(folder / "neighbour.out", process, ORIGIN_START_SECONDS)
        yield
    finally:
        stop_process(process)
        (folder / "neighbour.out").unlink()


def say(text: str) -> None:
    """Progress, so that a long run can be followed and standard output stays a report."""
    print(text, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the bench; returns the exit status."""
    options = read_options(argv)
    if not {PROXY_CPU, LOAD_CPU} <= os.sched_getaffinity(0):
        say(f"the bench needs CPU {PROXY_CPU} and CPU {LOAD_CPU}; it may use only some of them")
        return 2
    peers = [PEERS[name] for name in options.proxies]
    machine = describe_machine(peers)
    os.sched_setaffinity(0, {LOAD_CPU})
    raise_file_limit()
    try:
        build_tools()
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"the bench's C tools cannot be built: {error}")
        return 2
    # In memory, because logs must not measure a disk.
    root = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir())
    tables = []
    with ending_with_signals(), scratch_folder(root) as folder, run_origins(folder) as origins:
        bench = Bench(
            peers=peers,
            seconds=options.seconds,
            rounds=options.rounds,
            quick=options.quick,
            folder=folder,
            origins=origins,
            say=say,
        )
        machines = {"quiet": [False], "noisy": [True], "both": [False, True]}[options.machine]
        for row in options.rows:
            for noisy in machines:
                say(f"{row}{', beside a neighbour' * noisy}:")
                with run_neighbour(folder) if noisy else nullcontext():
                    tables.append(ROWS[row](bench))
                tables[-1].noisy = noisy
                print(tables[-1].to_markdown(), flush=True)
    method = (
        f"{options.rounds} alternating rounds of {options.seconds:g} s, medians (lowest-highest); "
        f"proxy alone on CPU {PROXY_CPU}, generator and origin on CPU {LOAD_CPU}; bench/README.md."
    )
    if options.machine != "quiet":
        method += f" The neighbour has {NEIGHBOUR_MEGABYTES} MiB and half of CPU {LOAD_CPU}."
    text = render_report(tables, machine, method)
    if options.out:
        options.out.write_text(text)
    suffix = (
        "" if options.machine == "quiet" else f"-{options.machine}"
    ) + "-quick" * options.quick
    path = options.out or write_report(text, options.rows, options.rows == list(ROWS), suffix)
    print(f"Machine: {machine}\n\nWritten to {path}")
    return 0 if all(table.values for table in tables) else 1


if __name__ == "__main__":
    sys.exit(main())
