"""Workers by default: quotas of both cgroup versions, nested, and absent ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast.proxy.process.cpus import allowed_cpus, cgroup_quota


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("files", "cgroup", "quota"),
    [
        ({"a/b/cpu.max": "150000 100000\n"}, "0::/a/b\n", 1.5),
        ({"a/cpu.max": "50000 100000\n", "a/b/cpu.max": "max 100000\n"}, "0::/a/b\n", 0.5),
        ({"a/b/cpu.max": "max 100000\n"}, "0::/a/b\n", None),
        ({"cpu.max": "200000 100000\n"}, "0::/../../pod/x\n", 2.0),
        (
            {"cpu/x/cpu.cfs_quota_us": "300000", "cpu/x/cpu.cfs_period_us": "100000"},
            "4:memory:/y\n3:cpu,cpuacct:/x\n",
            3.0,
        ),
        (
            {"cpu/x/cpu.cfs_quota_us": "-1", "cpu/x/cpu.cfs_period_us": "100000"},
            "3:cpu:/x\n",
            None,
        ),
        ({"a/cpu.max": "rubbish\n"}, "0::/a\n", None),
        ({}, "", None),
    ],
)
def test_quota(tmp_path: Path, files: dict[str, str], cgroup: str, quota: float | None) -> None:
    for name, text in files.items():
        write(tmp_path / "fs" / name, text)
    write(tmp_path / "self", cgroup)
    assert cgroup_quota(tmp_path / "fs", tmp_path / "self") == quota


def test_no_proc_is_no_quota(tmp_path: Path) -> None:
    assert cgroup_quota(tmp_path, tmp_path / "missing") is None


def test_this_machine_has_at_least_one() -> None:
    assert allowed_cpus() >= 1
