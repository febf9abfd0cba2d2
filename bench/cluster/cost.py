"""Cost: memory and steady CPU of the controller with many routes, each with a Service and an EndpointSlice of its own.

In: a Gateway, how many routes there are and how many there shall be. Out: a `Cost`. Steady means: nothing changes,
every status is written. Must never: measure while statuses are still written.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.cluster.spent import CONTAINER, cpu_of
from cluster.installed import route
from cluster.under_load import UnderLoad
from cluster.world.api import Manifest
from cluster.world.waiting import wait_until

WRITERS = 4
STEADY_SECONDS = 20.0


@dataclass(frozen=True)
class Cost:
    """What the controller takes while nothing changes."""

    routes: int
    memory: float  # MiB
    cpu: float  # % of one

    def table(self) -> list[str]:
        """Return a markdown table."""
        return [
            "| controller | memory MiB | CPU at rest, % of one |",
            "|---|---|---|",
            f"| {self.routes} routes, {self.routes} Services | {self.memory:.0f} | {self.cpu:.2f} |",
        ]


def measure_cost(site: UnderLoad, there: int, many: int) -> Cost:
    """Bring the Gateway to `many` routes with as many Services and measure the controller."""
    (pod,) = site.controllers()
    pid = site.pid(pod, CONTAINER)

    def add(number: int) -> None:
        for manifest in (*_service(site.app, f"own-{number}"), _route(site, number)):
            site.admin.apply(manifest)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(add, range(many)))
    for number in range(many, there):
        site.admin.delete(site.path("httproutes", f"p-{number}"))
    wait_until(lambda: site.attached() == many + 1, 600, every=1.0)
    _wait_rest(pid)
    before, began = cpu_of(pid), time.monotonic()
    time.sleep(STEADY_SECONDS)
    used = (cpu_of(pid) - before) / (time.monotonic() - began) * 100
    return Cost(many, _memory(pid), used)


def _route(site: UnderLoad, number: int) -> Manifest:
    return route(site.app, f"p-{number}", "eg", [f"p{number}.example"], service=f"own-{number}")


def _service(namespace: str, name: str) -> tuple[Manifest, Manifest]:
    """Return a Service that kube-proxy leaves alone, and its endpoints."""
    labels = {"service.kubernetes.io/service-proxy-name": "none"}
    port = {"name": "http", "port": 80, "targetPort": 3000}
    return (
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"namespace": namespace, "name": name, "labels": labels},
            "spec": {"clusterIP": "None", "ports": [port]},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "namespace": namespace,
                "name": f"{name}-x",
                "labels": {"kubernetes.io/service-name": name},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.244.200.1"], "conditions": {"ready": True}}],
            "ports": [{"name": "http", "port": 3000, "protocol": "TCP"}],
        },
    )


def _wait_rest(pid: int) -> None:
    """Wait until the process hardly works for some seconds."""

    def rests() -> bool:
        before = cpu_of(pid)
        time.sleep(3)
        return cpu_of(pid) - before < 0.1

    wait_until(rests, 300)


def _memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(one.split()[1]) for one in lines if one.startswith("VmRSS")) / 1024
