"""The folder of one run: in memory, owned by a process, found and cleared when its owner was killed.

In: nothing. Out: /dev/shm/edgefast-cluster/<name>-<random>/ with a file `owner` (pid and start time).
Must never: remove the folder of a run whose owner lives.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from cluster.world.network import Network
from cluster.world.process import Program, start_time

BASE = Path("/dev/shm/edgefast-cluster")

PROJECT = Path(__file__).resolve().parents[3]

#: Where the logs of a failed run are kept: the newest run of each name.
KEPT = PROJECT / "build" / "cluster"


def make_folder(name: str) -> Path:
    """Make a folder owned by this process, after clearing what dead owners left."""
    BASE.mkdir(exist_ok=True)
    clear_dead()
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=BASE))
    folder.chmod(0o755)
    pid = os.getpid()
    (folder / "owner").write_text(f"{pid} {start_time(pid)}")
    return folder


def disown_folder(folder: Path) -> None:
    """Let a folder outlive this process."""
    (folder / "owner").write_text("0 -")


def clear_dead() -> None:
    """End and remove what killed runs left behind."""
    for folder in BASE.iterdir():
        if not _owned(folder):
            stop_recorded(folder)
            slot = folder / "slot"
            if slot.exists():
                Network(int(slot.read_text())).remove()
            remove_folder(folder)


def stop_recorded(folder: Path) -> None:
    """End every program recorded in a folder."""
    for record in sorted((folder / "pids").glob("*")):
        program = Program.find(folder, record.name)
        if program is not None:
            program.stop(number=signal.SIGKILL)


def remove_folder(folder: Path) -> None:
    """Remove a folder and all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)


def keep_logs(folder: Path, name: str) -> Path:
    """Copy a run's logs to build/cluster/<name>, in place of those kept before."""
    kept = KEPT / name
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for part in ("log", "pods"):
        for log in (folder / part).glob("**/*.log"):
            target = kept / log.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, target)
    return kept


def _owned(folder: Path) -> bool:
    try:
        pid, started = (folder / "owner").read_text().split()
    except (OSError, ValueError):
        # Being made at this moment, by another run; a folder without an owner for a minute has none.
        try:
            return folder.stat().st_mtime > time.time() - 60
        except OSError:
            return True
    return pid == "0" or start_time(int(pid)) == started
