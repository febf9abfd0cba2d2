"""Default number of workers: the CPUs that the affinity mask and the cgroup's quota allow.

In: the kernel's files.
Out: a number >= 1.
Must never: count CPUs that this process may not use: with a quota of two CPUs on a 64-core node, 64
workers would throttle each other.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

__all__ = ["allowed_cpus", "cgroup_quota"]

_CGROUP_ROOT = Path("/sys/fs/cgroup")
_SELF_CGROUP = Path("/proc/self/cgroup")


def allowed_cpus() -> int:
    """Return min(affinity mask, cgroup CPU quota rounded up), at least 1."""
    affinity = len(os.sched_getaffinity(0))
    quota = cgroup_quota(_CGROUP_ROOT, _SELF_CGROUP)
    return max(1, affinity if quota is None else min(affinity, math.ceil(quota)))


def cgroup_quota(root: Path, self_cgroup: Path) -> float | None:
    """Return the smallest CPU quota over the process's cgroup and its ancestors; None: unlimited.

    Reads cgroup v2 (`cpu.max`) and v1 (`cpu.cfs_quota_us` / `cpu.cfs_period_us`).
    """
    quotas = [quota for path in _cgroup_paths(root, self_cgroup) if (quota := _quota_of(path))]
    return min(quotas, default=None)


def _cgroup_paths(root: Path, self_cgroup: Path) -> list[Path]:
    """List the folders that may hold a quota: each controller's own, and every parent of it."""
    try:
        lines = self_cgroup.read_text().splitlines()
    except OSError:
        lines = ["0::/"]
    paths: list[Path] = []
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            mounts = [root, root / "unified"]
        elif "cpu" in controllers.split(","):
            mounts = [root / controllers, root / "cpu"]
        else:
            continue
        parts = [part for part in name.split("/") if part not in ("", "..")]
        for mount in mounts:
            # In a container the path may be the host's while only its own cgroup is mounted at the
            # root, so the mount itself is always looked at.
            paths += [mount.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
    return paths


def _quota_of(path: Path) -> float | None:
    try:
        if (path / "cpu.max").exists():
            quota, _, period = (path / "cpu.max").read_text().strip().partition(" ")
            return None if quota == "max" else int(quota) / int(period or 100_000)
        quota_us = int((path / "cpu.cfs_quota_us").read_text())
        return None if quota_us <= 0 else quota_us / int((path / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError, ZeroDivisionError):
        return None
