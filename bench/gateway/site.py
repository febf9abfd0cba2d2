"""A site: one gateway in its own world (test cluster), with a Gateway "eg", two backends and a route that answers.

In: a world, and how a gateway is installed. Out: what tests act on. Only the installation differs between gateways; every test uses
objects of the Gateway API, and policies of the gateway where the API has none.
Must never: give one gateway more processes than another: one replica, one worker thread of the proxy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.cluster.spent import CONTROLLER, PROXY, Meter
from cluster.installed import GATEWAY, conditions_of, gateway, listener, route
from cluster.world.api import Api, Manifest
from cluster.world.load import Answers
from cluster.world.manifests import echo
from cluster.world.waiting import wait_until
from cluster.world.world import World

STEADY = "steady.example"
WRITERS = 4
_START_SECONDS = 180.0


@dataclass(frozen=True, kw_only=True)
class Installation:
    """A gateway that is installed, without any Gateway."""

    class_name: str
    controller: tuple[str, str]  # namespace, Deployment
    #: The namespace and the labels of the pods of Gateway "eg" in a namespace.
    proxies: Callable[[str], tuple[str, str]]
    #: Objects of a route's backend health: by namespace and name of the route, in the gateway's own API.
    checks: Callable[[str, str], Sequence[Manifest]]


@dataclass(frozen=True, kw_only=True)
class Product:
    """A gateway that can be measured."""

    name: str
    title: str
    version: Callable[[], str]
    install: Callable[[World], AbstractContextManager[Installation]]


@dataclass
class Site:
    """What a test acts on."""

    world: World
    installed: Installation
    app: str
    address: str = ""

    @property
    def admin(self) -> Api:
        """The API as an administrator sees it."""
        return self.world.admin

    def bring_up(self) -> None:
        """Make the Gateway with its backends, and wait until the steady route answers."""
        eg = gateway(self.app, "eg", self.installed.class_name, listener("http", routes="All"))
        eg["spec"]["allowedListeners"] = {"namespaces": {"from": "Same"}}
        self.admin.apply(
            *echo(self.app, "one", replicas=2),
            *echo(self.app, "two"),
            eg,
            route(self.app, "steady", "eg", [STEADY], service="one"),
        )
        self.world.workloads.wait_rollout(self.app, "one")
        self.world.workloads.wait_rollout(self.app, "two")
        path = self.path("gateways", "eg")
        found = self.admin.wait(path, _has_address, _START_SECONDS)
        self.address = str(found["status"]["addresses"][0]["value"])
        self.wait_served(STEADY)

    def path(self, plural: str, name: str = "") -> str:
        """Return the path of objects of the application."""
        return f"/apis/{GATEWAY}/namespaces/{self.app}/{plural}" + (f"/{name}" if name else "")

    def ask(self, host: str) -> int:
        """Return the status of one answer; 0 without an answer."""
        try:
            return self.world.client.request(f"http://{self.address}/", host=host).status
        except OSError:
            return 0

    def wait_served(self, host: str, seconds: float = _START_SECONDS) -> None:
        """Wait until a host answers 200."""
        wait_until(lambda: self.ask(host) == 200, seconds)

    def attached(self) -> int:
        """Return the routes that the first listener reports."""
        found = self.admin.get(self.path("gateways", "eg"))
        return attached_of(found)

    def load(
        self, rate: float, hosts: Sequence[str] = (STEADY,)
    ) -> AbstractContextManager[Answers]:
        """Send requests at a rate while the body runs, some on kept connections."""
        return self.world.client.load(f"http://{self.address}", hosts, rate, per_connection=20)

    def each(self, work: Callable[[int], object], numbers: Sequence[int]) -> None:
        """Do something for every number, some at a time."""
        with ThreadPoolExecutor(WRITERS) as pool:
            for done in [pool.submit(work, number) for number in numbers]:
                done.result()

    def programs(self) -> Mapping[str, Sequence[int]]:
        """Return the first processes of the containers of controller and proxy."""
        namespace, name = self.installed.controller
        found = self.admin.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
        labels = found["spec"]["selector"]["matchLabels"]
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        proxies = self.installed.proxies(self.app)
        return {CONTROLLER: self._pids(namespace, selector), PROXY: self._pids(*proxies)}

    def meter(self) -> Meter:
        """Return a meter of the programs that run now."""
        return Meter.of_pids(self.world.folder, self.programs())

    def restart_proxies(self) -> None:
        """Roll the Deployment of the proxies, as `kubectl rollout restart` does, and wait for it."""
        namespace, selector = self.installed.proxies(self.app)
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        (found,) = self.admin.items(path, labelSelector=selector)
        self.world.workloads.restart(namespace, found["metadata"]["name"])
        self.world.workloads.wait_rollout(namespace, found["metadata"]["name"], _START_SECONDS)

    def _pids(self, namespace: str, selector: str) -> list[int]:
        return [
            self.world.workloads.pid(namespace, pod["metadata"]["name"], one["name"])
            for pod in self.world.workloads.pods(namespace, selector)
            if "deletionTimestamp" not in pod["metadata"]
            for one in pod["spec"]["containers"]
        ]


def memory_of(pids: Sequence[int]) -> float:
    """Return the MiB of processes, pages that several share divided among them."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def attached_of(found: Manifest) -> int:
    """Return the routes that the first listener of a Gateway reports."""
    listeners = found.get("status", {}).get("listeners") or [{}]
    return int(listeners[0].get("attachedRoutes", 0))


def _has_address(found: Manifest | None) -> bool:
    programmed = any(
        one["type"] == "Programmed" and one["status"] == "True" for one in conditions_of(found)
    )
    return programmed and bool((found or {}).get("status", {}).get("addresses"))


def numbered(prefix: str, count: int) -> Iterator[tuple[str, str]]:
    """Yield names and hosts."""
    for number in range(count):
        yield f"{prefix}-{number}", f"{prefix}{number}.example"
