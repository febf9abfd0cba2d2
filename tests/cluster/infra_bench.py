"""The infra room of one controller against a real API server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cluster.world.apiserver import ApiServer
from controller.fleets.apply import Applier
from controller.fleets.inventory import Inventory
from controller.fleets.observe import Observer
from controller.fleets.placement import Placement
from controller.fleets.render import render_fleet
from controller.kube.client import Kube
from edgefast import ir
from edgefast.translate.settings import FleetState
from tests.controller.waiting import running, until
from tests.support.manifest import manifest

#: A fleet as `fleet` describes it, and the kinds of its objects.
NAME = "edge-default-eg-e41e7b31"
KINDS = ("ServiceAccount", "ConfigMap", "Service", "Deployment")
SELECTOR = (
    ("app.kubernetes.io/component", "proxy"),
    ("app.kubernetes.io/managed-by", "edge-gateway"),
    ("app.kubernetes.io/name", "edge"),
    ("gateway.edge.io/owning-gateway-name", "eg"),
    ("gateway.edge.io/owning-gateway-namespace", "default"),
)


class InfraBench:
    """What a body sees."""

    def __init__(
        self, server: ApiServer, kube: Kube, place: Placement, namespaces: Sequence[str] | None
    ) -> None:
        self.server = server
        self.leading = True
        self.problems: list[tuple[str, str]] = []
        self.inventory = Inventory(kube, place, namespaces)
        self.applier = Applier(
            kube, self.inventory, place.identity, lambda: self.leading, self._on_problem
        )
        self.observer = Observer(self.inventory, self.applier.failure)

    def _on_problem(self, fleet: str, text: str) -> None:
        self.problems.append((fleet, text))
        self.observer.look(fleet)

    def state(self, name: str) -> FleetState:
        """Return what is observed of a fleet; an empty state when there is nothing of it."""
        found = (one for one in self.observer.states() if one.name == name)
        return next(found, FleetState(name=name))

    def live(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """Read an object from the server, None when there is none."""
        found = self.server.admin.find(self.path(kind, namespace, name))
        return None if found is None else dict(found)

    def path(self, kind: str, namespace: str, name: str) -> str:
        """Return the path of an object of a fleet."""
        return self.server.admin.path_of(
            manifest(f"{kind} {namespace}/{name}", api=_VERSIONS[kind])
        )


_VERSIONS = {
    "ConfigMap": "v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "PodDisruptionBudget": "policy/v1",
    "Secret": "v1",
    "Service": "v1",
    "ServiceAccount": "v1",
}


@contextlib.asynccontextmanager
async def infra_bench(
    server: ApiServer,
    place: Placement,
    namespaces: Sequence[str] | None = (),
    kubeconfig: Path | None = None,
) -> AsyncIterator[InfraBench]:
    """Run the inventory and the applier; `namespaces` () is the placement's, None all; as administrator by default."""
    async with await Kube.open(kubeconfig or server.kubeconfig) as kube:
        where = (place.namespace,) if namespaces == () else namespaces
        bench = InfraBench(server, kube, place, where)
        async with running(bench.inventory.run(), bench.applier.run()):
            yield bench


def installation(server: ApiServer) -> Placement:
    """Return an installation in a namespace of its own."""
    return Placement(image="edgefast/proxy:1", ca="PEM\n", namespace=server.namespace("infra"))


def fleet(place: Placement, **changes: Any) -> ir.Infra:
    """Return the fleet of Gateway default/eg, with changes."""
    infra = ir.Infra(
        name=NAME,
        namespace=place.namespace,
        selector=SELECTOR,
        labels=SELECTOR,
        gateways=("default/eg",),
        ports=(ir.InfraPort("http-80", 80, 10080),),
        service=ir.InfraService(external_traffic_policy="Local"),
    )
    return msgspec.structs.replace(infra, **changes)


def key(place: Placement) -> str:
    """Return its key."""
    return f"{place.namespace}/{NAME}"


def want(bench: InfraBench, place: Placement, *fleets: ir.Infra) -> None:
    """Want these fleets and no others."""
    bench.applier.want({f"{one.namespace}/{one.name}": render_fleet(one, place) for one in fleets})


async def settled(bench: InfraBench) -> None:
    """Wait until all is applied."""
    await until(lambda: bench.applier.settled)
