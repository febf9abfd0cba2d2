"""A Gateway of two proxies under a steady load, and what operators and accidents do to it meanwhile."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from cluster.installed import (
    GATEWAY,
    PROXIES,
    Installed,
    Manifest,
    edge_proxy,
    fleet_of,
    gateway,
    installed,
    is_accepted,
    listener,
    route,
)
from cluster.world.api import Api, ApiError
from cluster.world.client import Client
from cluster.world.load import Answers
from cluster.world.manifests import echo
from cluster.world.waiting import wait_until
from cluster.world.world import World

#: Long enough that every node has heard that a pod goes.
SHUTDOWN = {"drainTimeout": "8s", "minDrainDuration": "3s"}
#: Long enough for a container alone, which nobody has told to go: its readiness is asked for every 5 s.
PATIENT = {"drainTimeout": "20s", "minDrainDuration": "9s"}
STEADY = "steady.example"
_WRITERS = 3


class UnderLoad:
    """One Gateway "eg" with routes to the backends "one" and "two", all in the namespace `app`."""

    def __init__(self, made: Installed, app: str, shutdown: Mapping[str, str] = SHUTDOWN) -> None:
        self.made, self.world, self.admin, self.app = made, made.world, made.admin, app
        self.namespace = made.namespace
        self.fleet = fleet_of(f"{app}/eg")
        self.address = ""
        self._shutdown = dict(shutdown)
        self.class_name = f"{made.namespace}-class"
        self._node = Client(made.world.network.node)

    def bring_up(self, proxies: int = 2) -> None:
        """Make everything and wait until the steady route answers."""
        app = self.app
        self.shape(replicas=proxies)
        self.admin.apply(
            self.made.gateway_class(self.class_name, (self.namespace, "edge")),
            *echo(app, "one"),
            *echo(app, "two"),
            gateway(app, "eg", self.class_name),
            route(app, "steady", "eg", [STEADY], service="one"),
        )
        self.world.workloads.wait_rollout(app, "one")
        self.world.workloads.wait_rollout(app, "two")
        self.address = self.made.address(app, "eg")
        self.world.workloads.wait_rollout(self.namespace, self.fleet)
        self.made.wait_status(self.address, STEADY)

    def shape(self, via: str = "", **deployment: Any) -> None:
        """Say what the fleet's workload is like, and how its proxies call themselves."""
        spec = {"deployment": {"replicas": 2, **deployment}, "shutdown": self._shutdown}
        if via:
            spec["http"] = {"via": via}
        self.admin.apply(edge_proxy(self.namespace, "edge", **spec))

    # --- requests -------------------------------------------------------------------------------

    @contextmanager
    def load(
        self,
        hosts: Sequence[str] = (STEADY,),
        expected: Sequence[int] = (200,),
        rate: float = 120.0,
        **options: Any,
    ) -> Iterator[Answers]:
        """Send requests while the body runs, some on kept connections, and fail on any other answer."""
        url = f"http://{self.address}"
        with self.world.client.load(
            url, hosts, rate, expected=expected, per_connection=20, **options
        ) as answers:
            answers.wait_more(20)
            yield answers
            answers.wait_more(60)
        assert not answers.unexpected(*expected), answers.unexpected(*expected)

    def ask(self, host: str, path: str = "/") -> int:
        """Return the status of one answer."""
        return self.made.ask(self.address, host, path).status

    # --- objects --------------------------------------------------------------------------------

    def each(self, work: Callable[[Api, int], object], numbers: Iterable[int]) -> None:
        """Do something for every number, some at a time."""
        with ThreadPoolExecutor(_WRITERS) as pool:
            for done in [pool.submit(work, self.admin, number) for number in numbers]:
                done.result()

    def path(self, kind: str, name: str = "") -> str:
        """Return the path of objects of the application."""
        return f"/apis/{GATEWAY}/namespaces/{self.app}/{kind}" + (f"/{name}" if name else "")

    def wait_routes(self, prefix: str, count: int, seconds: float = 180.0) -> None:
        """Wait until so many routes with names of this beginning are accepted in their present generation."""

        def all_accepted() -> bool:
            found = [
                one
                for one in self.admin.items(self.path("httproutes"))
                if one["metadata"]["name"].startswith(prefix)
            ]
            return len(found) == count and all(map(is_accepted, found))

        wait_until(all_accepted, seconds, every=1.0)

    def tables(self) -> dict[str, float]:
        """Return the number of resources that each proxy serves, by pod."""
        sizes = TableSizes(self)
        sizes.look()
        return sizes.seen

    def attached(self) -> int:
        """Return the routes that the first listener says it has."""
        found = self.admin.get(self.path("gateways", "eg"))
        return int(found["status"]["listeners"][0]["attachedRoutes"])

    # --- processes ------------------------------------------------------------------------------

    def proxies(self) -> list[Manifest]:
        """Return the proxies' pods that are to stay."""
        selector = f"{PROXIES},gateway.edge.io/owning-gateway-name=eg"
        pods = self.world.workloads.pods(self.namespace, selector)
        return [one for one in pods if "deletionTimestamp" not in one["metadata"]]

    def controllers(self, *, ending: bool = False) -> list[str]:
        """Return the names of the controllers' pods, also of those that are to go."""
        selector = f"control-plane=edge-gateway,app.kubernetes.io/instance={self.made.release.name}"
        pods = [one["metadata"] for one in self.world.workloads.pods(self.namespace, selector)]
        return [one["name"] for one in pods if ending or "deletionTimestamp" not in one]

    def leader(self) -> str:
        """Return the name of the leader's pod as the Lease has it, "" when nobody leads."""
        found = self.admin.find(self.lease())
        return str((found or {"spec": {}})["spec"].get("holderIdentity") or "").partition("_")[0]

    def lease(self) -> str:
        """Return the path of the controllers' Lease."""
        return (
            f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/edge-gateway-leader"
        )

    def pid(self, pod: str, container: str) -> int:
        """Return the first process of a container."""
        return self.world.workloads.pid(self.namespace, pod, container)

    def scale_controllers(self, count: int) -> None:
        """Set the number of controllers and wait for it."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.made.release.base}"
        self.admin.patch(path, {"spec": {"replicas": count}})
        if count:
            self.world.workloads.wait_rollout(self.namespace, self.made.release.base)
        else:
            # What is to go serves for some seconds still.
            wait_until(lambda: not self.controllers(ending=True))

    def restart_controllers(self) -> None:
        """Roll them all."""
        self.world.workloads.restart(self.namespace, self.made.release.base)
        self.world.workloads.wait_rollout(self.namespace, self.made.release.base)

    def metrics(self, address: str, name: str) -> float:
        """Return one number of a pod's metrics; KeyError when it is not there."""
        page = self._node.request(f"http://{address}:19001/metrics", seconds=5).body.decode()
        found = re.search(rf"^{name} (\S+)$", page, re.M)
        if found is None:
            raise KeyError(name)
        return float(found.group(1))

    @contextmanager
    def no_table_shrinks(self) -> Iterator[TableSizes]:
        """Watch the tables of all proxies; at the end none has ever been smaller than at the beginning."""
        sizes = TableSizes(self)
        wait_until(lambda: sizes.look() or sizes.seen)
        first = sizes.least()
        thread = threading.Thread(target=sizes.run, daemon=True)
        thread.start()
        try:
            yield sizes
        finally:
            sizes.over.set()
            thread.join(20)
        assert sizes.least() >= first > 0, f"a table had {first} resources, then {sizes.seen}"


class TableSizes:
    """The least number of resources that each proxy has served."""

    def __init__(self, site: UnderLoad) -> None:
        self._site = site
        self.seen: dict[str, float] = {}
        self.over = threading.Event()

    def least(self) -> float:
        """Return the smallest number seen."""
        return min(self.seen.values())

    def look(self) -> None:
        """Look at every proxy that is ready once."""
        for pod in self._site.proxies():
            address = pod.get("status", {}).get("podIP")
            try:
                # A proxy that has just begun has no table, and nobody sends it requests.
                if not address or not self._site.metrics(address, "edgefast_ready"):
                    continue
                size = self._site.metrics(address, "edgefast_table_resources")
            except (OSError, http.client.HTTPException, KeyError):
                continue
            name = pod["metadata"]["name"]
            self.seen[name] = min(size, self.seen.get(name, size))

    def run(self) -> None:
        """Look until it is over."""
        while not self.over.wait(0.2):
            try:
                self.look()
            except (OSError, http.client.HTTPException, ApiError):
                continue  # the API server is away, or not yet itself: the next look sees it


@contextmanager
def under_load(
    world: World,
    *,
    controllers: int = 1,
    proxies: int = 2,
    shutdown: Mapping[str, str] = SHUTDOWN,
    values: Mapping[str, Any] | None = None,
) -> Iterator[UnderLoad]:
    """Install a release with a Gateway for a while."""
    # Short: what is tested is the change of leaders, not the wait for it.
    quick = {"leaseDuration": "6s", "renewDeadline": "5s", "retryPeriod": "1s"}
    app = world.namespace_for_pods("app")
    deployment = {"replicas": controllers}
    with installed(
        world, {"leaderElection": quick}, values={"deployment": deployment, **(values or {})}
    ) as made:
        site = UnderLoad(made, app, shutdown)
        site.bring_up(proxies)
        yield site
    world.admin.delete(f"/api/v1/namespaces/{app}")


def listeners_of(*more: Manifest) -> dict[str, Any]:
    """Return the spec of the Gateway with these listeners after its first."""
    return {"spec": {"listeners": [listener(), *more]}}
