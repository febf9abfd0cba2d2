"""The bench's own promises: every goal of a measured row is judged, and nothing it starts outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.cluster.cost import Cost
from bench.cluster.goals import judge_all
from bench.cluster.propagation import Spread
from bench.cluster.spent import PROGRAMS
from bench.goals import HTTP2, OF_NGINX, SLOPES, WITH_FLOOR, WITHOUT_FLOOR, judge_goals, list_goals
from bench.process import scratch_folder
from bench.rows import ROWS
from bench.table import Table

ROOT = Path(__file__).parents[2]


def table(name: str, **values: dict[str, float]) -> Table:
    made = Table(name, name, [])
    made.values = {label.replace("_", " "): metrics for label, metrics in values.items()}
    return made


def verdicts(*tables: Table) -> dict[str, str]:
    found = {}
    for line in judge_goals(tables):
        what, _, rest = line.rpartition(": ")
        found[what.partition(" (<")[0].partition(" (>")[0]] = rest
    return found


@pytest.mark.pure
def test_every_row_has_a_goal() -> None:
    assert {goal.row for goal in list_goals()} == set(ROWS)


@pytest.mark.pure
@pytest.mark.parametrize("row", [*WITH_FLOOR, *WITHOUT_FLOOR])
def test_cpu_is_judged_in_every_row(row: str) -> None:
    """Figures that are off by a quarter of what each must be, and then ones that are good."""
    nginx = OF_NGINX.get(row, 1.0)
    others = {"pingora": 0.5, "sozu": 0.5}
    ratios = {"nginx": nginx * 1.25, "envoy": 0.7, "haproxy": 1.1, "aws_lc": 0.0, **others}
    if row in WITH_FLOOR:
        ratios["floor"] = WITH_FLOOR[row] * 1.07
    found = verdicts(table(row, edgefast={"cpu_us": 43.7, **ratios}))
    missed = [what for what, rest in found.items() if rest == "MISSED by 25%"]
    assert [what.partition(" / ")[2][:5] for what in missed] == ["nginx"]
    assert found[f"{row}: CPU per request / Envoy: 0.7"] == "MISSED by 75%"
    assert found[f"{row}: CPU per request / haproxy (reach for): 1.1"] == "10% away"
    assert ("MISSED by 7%" in found.values()) is (row in WITH_FLOOR)
    floor = {"envoy": 0.52}
    lines = judge_goals([table(row, floor=floor, edgefast={"cpu_us": 43.7, **ratios})])
    assert any("the floor itself is at 0.52" in one for one in lines) is (row in WITH_FLOOR)
    ratios = {"floor": 1.05, "nginx": 0.8, "envoy": 0.3, "haproxy": 0.9, "aws_lc": 0.0, **others}
    told = set(verdicts(table(row, edgefast=ratios)).values())
    other = {"not judged, this run has no engine with AWS-LC"} & told
    assert told - other == {"met"} and bool(other) is (row == "handshake")


@pytest.mark.pure
@pytest.mark.parametrize("row", HTTP2)
def test_http2_is_judged_by_the_floor_of_http1(row: str) -> None:
    must, reach = HTTP2[row]
    ratios = {"floor": must * 1.1, "nginx": 0.5, "haproxy": 0.9, "nghttpx": 1.2, "envoy": 0.2}
    ratios["pingora"] = 0.5
    found = list(verdicts(table(row, edgefast=ratios)).values())
    away = f"{must * 1.1 / reach - 1:.0%} away"
    assert found == ["MISSED by 10%", away, "met", "met", "met", "20% away", "met"]


@pytest.mark.pure
def test_a_client_beside_is_judged_by_what_others_feel() -> None:
    assert list(verdicts(table("h2-beside", edgefast={"p99_share": 2.5})).values()) == [
        "MISSED by 25%"
    ]


@pytest.mark.pure
def test_a_handshake_is_judged_by_the_library_that_makes_it() -> None:
    lines = judge_goals([table("handshake", edgefast={"nginx": 0.7, "aws_lc": 1.0})])
    assert [line.rpartition(": ")[2] for line in lines if "/ nginx" in line] == [
        "not judged, this run has no engine with the system's OpenSSL",
        "MISSED by 8%",
    ]


@pytest.mark.pure
def test_a_row_is_judged_on_each_machine_it_was_measured_on() -> None:
    quiet, noisy = (table("idle", edgefast={"bytes": size}) for size in (1000.0, 3072.0))
    noisy.noisy = True
    assert [line.rpartition(": ")[0].partition(":")[0] for line in judge_goals([quiet, noisy])] == [
        "idle",
        "idle (noisy)",
    ]
    assert list(verdicts(quiet, noisy).values()) == ["met", "MISSED by 100%"]
    assert "beside a neighbour" in noisy.to_markdown().splitlines()[0]
    assert "beside a neighbour" not in quiet.to_markdown()


@pytest.mark.pure
@pytest.mark.parametrize("row", SLOPES)
def test_the_slope_is_judged_at_10k_and_100k(row: str) -> None:
    made = table(row, edgefast_10000={"share": 0.97}, edgefast_100000={"share": 0.77})
    found = verdicts(made)
    assert found[f"{row}: CPU per request with 1 route / with 10,000: 0.97"] == "met"
    assert found[f"{row}: CPU per request with 1 route / with 100,000: 0.77"] == "MISSED by 9%"


@pytest.mark.pure
def test_latency_is_judged_by_what_is_added() -> None:
    quick, slow = {"p50": 150.0, "p99": 300.0}, {"p50": 200.0, "p99": 250.0}
    direct = {"p50": 100.0, "p99": 200.0}
    found = verdicts(table("latency", direct=direct, edgefast=quick, nginx=slow))
    assert found["latency: p50 added to direct / nginx's (reach for): 0.5"] == "met"
    assert found["latency: p99 added to direct / nginx's (reach for): 2"] == "100% away"
    assert (
        "not judged, this run has no p999"
        in judge_goals([table("latency", direct=direct, edgefast=quick, nginx=slow)])[-1]
    )


# --- what it leaves behind ----------------------------------------------------------------------------

_HARNESS = """
import sys, time
from pathlib import Path
from bench.process import ending_with_signals, scratch_folder, start_pinned, stop_process
root, cpu = Path(sys.argv[1]), int(sys.argv[2])
with ending_with_signals(), scratch_folder(root) as folder:
    child = start_pinned(["sleep", "1000"], cpu, folder, "child")
    try:
        print(child.pid, folder, flush=True)
        time.sleep(1000)
    finally:
        stop_process(child)
"""


@contextmanager
def harness(root: Path) -> Iterator[tuple[subprocess.Popen[str], int, Path]]:
    """A bench in the middle of a run: the process, its child, its folder."""
    command = [sys.executable, "-c", _HARNESS, str(root), str(min(os.sched_getaffinity(0)))]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            pid, _, folder = process.stdout.readline().strip().partition(" ")
            wait_until(lambda: "sleep" in command_of(int(pid)), "the child")
            yield process, int(pid), Path(folder)
        finally:
            process.kill()


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0]
    except OSError:
        return ""


def wait_until(check: object, what: str) -> None:
    assert callable(check)
    end = time.monotonic() + 20
    while not check():
        assert time.monotonic() < end, f"no {what}"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_of_it(tmp_path: Path, number: signal.Signals) -> None:
    with harness(tmp_path) as (process, child, folder):
        process.send_signal(number)
        assert process.wait(20) == 128 + number
        assert not command_of(child)
        assert not folder.exists()


def test_a_kill_leaves_no_process_and_the_next_run_removes_its_folder(tmp_path: Path) -> None:
    with harness(tmp_path) as (process, child, folder):
        with scratch_folder(tmp_path):
            assert folder.exists()  # its owner lives
        process.kill()
        process.wait(20)
        wait_until(lambda: "sleep" not in command_of(child), "end of the child")
        assert folder.exists()
        with scratch_folder(tmp_path) as other:
            assert other.exists()
            assert not folder.exists()


@pytest.mark.pure
def test_goals_of_the_control_plane() -> None:
    flat, growing = spread([3.0, 4.0] * 300, 5.0), spread([2.0] * 200 + [5.0] * 400, 9.0)
    cost = Cost(5000, 110.0, 0.8)
    assert [line.rpartition(": ")[2] for line in judge_all(flat, cost)] == ["met"] * 7
    grown = [line for line in judge_all(growing, None) if "MISSED" in line]
    assert grown == [
        "propagation: p50 of the last part / of the first: 2.5 (<= 1.15): MISSED by 117%",
        "propagation: controller's CPU, last part / first: 1.8 (<= 1.15): MISSED by 57%",
    ]
    assert sum("this run has no controller" in line for line in judge_all(growing, None)) == 2
    growing.wrong.append("p1.example: 503 after 1 ms")
    assert sum("MISSED" in line for line in judge_all(growing, None)) == 3
    assert growing.table()[2:4] == [
        "| 0-50 | 2.0 | 2.0 | 2.0 | 2.0 | 5.0 | 1.0 | 1.0 |",
        "| 50-600 | 4.2 | 5.0 | 5.0 | 5.0 | 9.0 | 1.0 | 1.0 |",
    ]
    assert growing.table()[4].startswith("| all | 4.0 |")


def spread(taken: list[float], later: float) -> Spread:
    """A run whose first 50 changes cost the controller 5 ms of CPU each, and the others `later`."""
    made = Spread(taken)
    seconds = {0: 0.0, 50: 0.25, len(taken): 0.25 + (len(taken) - 50) * later / 1000}
    for at, controller in seconds.items():
        others = dict.fromkeys(PROGRAMS[1:], at / 1000)
        made.spent[at] = {PROGRAMS[0]: controller, **others}
    return made
