"""Spent: CPU seconds of the programs that a change passes through.

In: a site. Out: `Meter.read`: seconds of CPU since each program's start, by what it is (controller, proxy, API server with etcd).
A program's children count with it. Must never: miss a program that ends and comes back while it is measured; it fails.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster.under_load import UnderLoad
from cluster.world.process import Program
from controller.fleets.placement import EDGE

CONTAINER = "edge-gateway"
CONTROLLER, PROXY, API_SERVER = PROGRAMS = ("controller", "proxy", "API server")
_TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU of one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


class Meter:
    """Measures the CPU seconds of the controller, proxies and API server."""

    def __init__(self, pids: Mapping[str, Sequence[int]]) -> None:
        self.pids = {
            name: [one for pid in found for one in _family(pid)] for name, found in pids.items()
        }

    @classmethod
    def of_site(cls, site: UnderLoad) -> Meter:
        """Return the meter of one controller and its proxies."""
        (controller,) = site.controllers()
        proxies = [one["metadata"]["name"] for one in site.proxies()]
        return cls.of_pids(
            site.world.folder,
            {
                CONTROLLER: [site.pid(controller, CONTAINER)],
                PROXY: [site.pid(one, EDGE) for one in proxies],
            },
        )

    @classmethod
    def of_pids(cls, folder: Path, pids: Mapping[str, Sequence[int]]) -> Meter:
        """Return the meter of these processes, and of the API server and etcd of a world's folder."""
        servers = [Program.find(folder, name) for name in ("etcd", "kube-apiserver")]
        return cls({**pids, API_SERVER: [one.pid for one in servers if one is not None]})

    def read(self) -> Mapping[str, float]:
        """Return the seconds of CPU so far."""
        return {name: sum(map(cpu_of, pids)) for name, pids in self.pids.items()}


def _family(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return [pid, *(one for child in children for one in _family(child))]
