"""Observer: the state of every fleet, as translation and the statuses need it.

In: Holdings (Service, workload, EndpointSlices, nodes) and what the Applier could not do. Out: `states()`, and a call
when one of them has changed. A pod counts as ready when the cluster sends it traffic: a ready endpoint that is not
terminating. Source: spec section 2 (status.addresses, Programmed); discovery.k8s.io/v1 EndpointConditions.
Must never: know of tables; who serves which is told by acknowledgements.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from controller.infra.addresses import service_addresses
from controller.infra.holdings import Holdings
from controller.infra.objectref import WORKLOADS
from controller.infra.workloadstatus import find_trouble, wanted_pods
from edgefast import ir
from edgefast.translate.settings import FleetState


class Plight(msgspec.Struct, frozen=True):
    """What keeps proxies of a fleet from taking traffic, as the cluster says it; tables have nothing to do with it."""

    trouble: str = ""  # of its workload, in words
    unready: frozenset[str] = frozenset()  # pods that are there and get no traffic


WELL = Plight()


class Observer:
    """Computes the state of each fleet from its Service, workload and EndpointSlices.

    It has no task of its own.
    """

    def __init__(
        self,
        holdings: Holdings,
        failure: Callable[[str], str] = lambda fleet: "",
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """`failure`: Applier.failure; call `look` for a fleet whose failure changed."""
        self._holdings = holdings
        self._failure = failure
        self.on_change = on_change
        self._states: dict[str, FleetState] = {}
        self._sorted: tuple[FleetState, ...] = ()
        self._plights: dict[str, Plight] = {}
        holdings.on_object.append(lambda ref, _: self.look(ref.fleet))
        holdings.on_slices.append(self.look)
        holdings.on_nodes.append(self._look_at_all)

    def states(self) -> tuple[FleetState, ...]:
        """Return the state of every fleet that there is something of, by name."""
        return self._sorted

    def state_of(self, fleet: str) -> FleetState | None:
        """Return the state of one fleet ("namespace/name"), None when there is nothing of it."""
        return self._states.get(fleet)

    def plight_of(self, fleet: str) -> Plight:
        """Return what keeps proxies of a fleet ("namespace/name") from taking traffic."""
        return self._plights.get(fleet, WELL)

    def look(self, fleet: str) -> None:
        """Look at one fleet ("namespace/name") again."""
        state, plight = self._observe(fleet)
        if state == self._states.get(fleet) and plight == self.plight_of(fleet):
            return
        self._plights.pop(fleet, None)
        if state is None:
            self._states.pop(fleet, None)
        else:
            self._states[fleet] = state
            if plight != WELL:
                self._plights[fleet] = plight
        self._sorted = tuple(self._states[key] for key in sorted(self._states))
        self.on_change()

    def _look_at_all(self) -> None:
        for fleet in list(self._states):
            self.look(fleet)

    def _observe(self, fleet: str) -> tuple[FleetState | None, Plight]:
        failure = self._failure(fleet)
        objects = self._holdings.objects_of(fleet)
        if not objects and not failure:
            return None, WELL
        ready, unready, hosts = self._pods(fleet)
        trouble = []
        addresses: tuple[str, ...] = ()
        ports: tuple[tuple[ir.Transport, int], ...] = ()
        replicas = 0
        for ref, held in objects.items():
            if not held.ours:
                continue
            if ref.kind == "Service":
                if held.live["spec"].get("type") == "NodePort":
                    self._holdings.want_nodes()
                addresses = service_addresses(held.live, self._holdings.nodes, hosts)
                there = held.live["spec"].get("ports") or ()
                ports = tuple(sorted((one.get("protocol", "TCP"), one["port"]) for one in there))
            elif ref.kind in WORKLOADS:
                # There are two while one takes the other's place.
                replicas = max(replicas, wanted_pods(held.live))
                if said := find_trouble(held.live):
                    trouble.append(said)
        namespace, _, name = fleet.partition("/")
        state = FleetState(
            name=name,
            namespace=namespace,
            addresses=addresses,
            ports=ports,
            replicas=replicas,
            ready=tuple(sorted(ready)),
            failure=failure,
        )
        return state, Plight("; ".join(sorted(trouble)), frozenset(unready))

    def _pods(self, fleet: str) -> tuple[set[str], set[str], set[str]]:
        """Return the names of ready pods, of those that are not, and of the nodes of the ready ones."""
        pods: set[str] = set()
        others: set[str] = set()
        hosts: set[str] = set()
        for one in self._holdings.slices_of(fleet):
            for endpoint in one["endpoints"]:
                conditions = endpoint.get("conditions") or {}
                name = (endpoint.get("targetRef") or {}).get("name") or endpoint["addresses"][0]
                if conditions.get("terminating"):
                    continue
                # Absent means unknown, which consumers are to take for ready.
                if conditions.get("ready") is False:
                    others.add(name)
                    continue
                pods.add(name)
                hosts.add(endpoint.get("nodeName") or "")
        return pods, others - pods, hosts
