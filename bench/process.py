"""Pinned child processes and what /proc says about them: CPU time, memory, threads, idle CPUs.

In: command lines and process ids. Out: seconds of CPU, bytes of PSS. Must never signal a process
that this module did not start (a process tree is stopped by the ids found under its root), nor leave
one behind: children get SIGTERM when the bench ends, however it ends.
"""

import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PROXY_CPU = 0
LOAD_CPU = 1  # generator, origin and the harness itself
STOP_SECONDS = 5.0
_SCRATCH = "edgefast-bench-"


def start_pinned(
    argv: Sequence[str], cpu: int, folder: Path, name: str, *, stdin: int | None = None
) -> subprocess.Popen[bytes]:
    """Start argv on one CPU, output into `<folder>/<name>.out` and `.err`, in its own session.

    The kernel sends it SIGTERM when this process dies (prctl(2), PR_SET_PDEATHSIG): a proxy's first
    process takes its workers with it then.
    """
    with (folder / f"{name}.out").open("ab") as out, (folder / f"{name}.err").open("ab") as err:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "taskset", "-c", str(cpu), *argv],
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=out,
            stderr=err,
            cwd=folder,
            start_new_session=True,
        )


def _read_stat(pid: int) -> list[str]:
    """Fields of /proc/<pid>/stat from `state` on (field 3); [] when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return []


def find_tree(root: int) -> list[int]:
    """The process and all its living descendants."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (stat := _read_stat(int(entry))) and stat[0] != "Z":
            parents.setdefault(int(stat[1]), []).append(int(entry))
    tree, todo = [], [root]
    while todo:
        pid = todo.pop()
        tree.append(pid)
        todo.extend(parents.get(pid, []))
    return tree


def read_cpu_seconds(pids: Sequence[int]) -> tuple[float, float]:
    """User and system seconds of the processes, all threads, at the kernel's tick resolution."""
    stats = [stat for stat in map(_read_stat, pids) if stat]
    return sum(int(s[11]) for s in stats) / TICK, sum(int(s[12]) for s in stats) / TICK


def read_run_seconds(pids: Sequence[int]) -> float:
    """Seconds that all threads of the processes have run, in nanoseconds' resolution: for samples shorter than many ticks."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with suppress(OSError):
                    total += int(
                        Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0]
                    )
    return total / 1e9


def read_pss_bytes(pids: Sequence[int]) -> int:
    """Proportional set size: memory shared between the processes counts once."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


@dataclass(frozen=True)
class CpuClock:
    """Busy and total ticks of one CPU since boot."""

    busy: int
    total: int

    def busy_share_since(self, earlier: "CpuClock") -> float:
        """Share of busy time between two readings, 0..1; time stolen by the host is busy."""
        total = self.total - earlier.total
        return (self.busy - earlier.busy) / total if total else 0.0


def read_cpu_clock(cpu: int) -> CpuClock:
    """/proc/stat of one CPU: everything except idle and iowait is busy."""
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith(f"cpu{cpu} "):
            ticks = [int(field) for field in line.split()[1:9]]
            return CpuClock(sum(ticks) - ticks[3] - ticks[4], sum(ticks))
    raise RuntimeError(f"no cpu{cpu} in /proc/stat: the bench needs two CPUs")


def stop_process(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the root, then SIGKILL to whatever of its tree is left; waits for the root."""
    # With start times: an id that the kernel gave to another process meanwhile is left alone.
    tree = {pid: stat[19] for pid in find_tree(process.pid) if (stat := _read_stat(pid))}
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
    for pid, started in tree.items():
        if pid != process.pid and (stat := _read_stat(pid)) and stat[19] == started:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    if process.poll() is None:
        process.kill()
    process.wait()


def wait_line(path: Path, process: subprocess.Popen[bytes], seconds: float) -> str:
    """First whole line that a child wrote to its output file; RuntimeError if it never comes."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        text = path.read_text()
        if "\n" in text:
            return text.partition("\n")[0]
        if process.poll() is not None:
            break
        time.sleep(0.005)
    raise RuntimeError(f"{path.name}: nothing printed; {path.with_suffix('.err').read_text()!r}")


@contextmanager
def ending_with_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the process as an exception does, so that everything is stopped."""

    def end(number: int, _: object) -> None:
        for one in before:  # a second signal must not end the stopping
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def scratch_folder(root: Path) -> Iterator[Path]:
    """A folder for one run; those of runs that were killed are removed."""
    for left in root.glob(f"{_SCRATCH}*"):
        owner = left.name.removeprefix(_SCRATCH).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{_SCRATCH}{os.getpid()}-", dir=root) as name:
        folder = Path(name)
        folder.chmod(0o755)  # nginx workers drop to another user
        yield folder


def raise_file_limit() -> int:
    """Soft limit of open files to the hard one, for this process and its children; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
