"""Observer: the state of every fleet, for translation and statuses.

In: the Inventory (Service, workload, EndpointSlices, nodes) and failures of the Applier.
Out: `states()`, and a call for each change. A pod counts as ready when the cluster sends it
traffic: a ready endpoint that is not terminating.
Source: spec section 2 (status.addresses, Programmed); discovery.k8s.io/v1 EndpointConditions.
Must never: depend on tables; acknowledgements report which pods serve them.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from controller.fleets.addresses import service_addresses
from controller.fleets.inventory import Inventory
from controller.fleets.object_ref import WORKLOADS
from controller.fleets.workload_status import find_trouble, wanted_pods
from edgefast import ir
from edgefast.translate.settings import FleetState


class FleetProblem(msgspec.Struct, frozen=True):
    """What keeps proxies of a fleet from taking traffic, as the cluster says it; tables have nothing to do with it."""

    trouble: str = ""  # of its workload, in words
    unready: frozenset[str] = frozenset()  # pods that are there and get no traffic


WELL = FleetProblem()


class Observer:
    """Computes the state of each fleet from its Service, workload and EndpointSlices.

    It has no task of its own.
    """

    def __init__(
        self,
        holdings: Inventory,
        failure: Callable[[str], str] = lambda fleet: "",
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """`failure`: Applier.failure; call `look` for a fleet whose failure changed."""
        self._inventory = holdings
        self._failure = failure
        self.on_change = on_change
        self._states: dict[str, FleetState] = {}
        self._sorted: tuple[FleetState, ...] = ()
        self._plights: dict[str, FleetProblem] = {}
        holdings.on_object.append(lambda ref, _: self.look(ref.fleet))
        holdings.on_slices.append(self.look)
        holdings.on_nodes.append(self._look_at_all)

    def states(self) -> tuple[FleetState, ...]:
        """Return the state of every fleet that there is something of, by name."""
        return self._sorted

    def state_of(self, fleet: str) -> FleetState | None:
        """Return the state of one fleet ("namespace/name"), None when there is nothing of it."""
        return self._states.get(fleet)

    def fleet_problem_of(self, fleet: str) -> FleetProblem:
        """Return what keeps proxies of a fleet ("namespace/name") from taking traffic."""
        return self._plights.get(fleet, WELL)

    def look(self, fleet: str) -> None:
        """Look at one fleet ("namespace/name") again."""
        state, problem = self._observe(fleet)
        if state == self._states.get(fleet) and problem == self.fleet_problem_of(fleet):
            return
        self._plights.pop(fleet, None)
        if state is None:
            self._states.pop(fleet, None)
        else:
            self._states[fleet] = state
            if problem != WELL:
                self._plights[fleet] = problem
        self._sorted = tuple(self._states[key] for key in sorted(self._states))
        self.on_change()

    def _look_at_all(self) -> None:
        for fleet in list(self._states):
            self.look(fleet)

    def _observe(self, fleet: str) -> tuple[FleetState | None, FleetProblem]:
        failure = self._failure(fleet)
        objects = self._inventory.objects_of(fleet)
        if not objects and not failure:
            return None, WELL
        ready, unready, hosts = self._pods(fleet)
        problem = []
        addresses: tuple[str, ...] = ()
        ports: tuple[tuple[ir.Transport, int], ...] = ()
        replicas = 0
        for ref, held in objects.items():
            if not held.ours:
                continue
            if ref.kind == "Service":
                if held.live["spec"].get("type") == "NodePort":
                    self._inventory.want_nodes()
                addresses = service_addresses(held.live, self._inventory.nodes, hosts)
                there = held.live["spec"].get("ports") or ()
                ports = tuple(sorted((one.get("protocol", "TCP"), one["port"]) for one in there))
            elif ref.kind in WORKLOADS:
                # There are two while one takes the other's place.
                replicas = max(replicas, wanted_pods(held.live))
                if message := find_trouble(held.live):
                    problem.append(message)
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
        return state, FleetProblem("; ".join(sorted(problem)), frozenset(unready))

    def _pods(self, fleet: str) -> tuple[set[str], set[str], set[str]]:
        """Return the names of ready pods, of those that are not, and of the nodes of the ready ones."""
        pods: set[str] = set()
        others: set[str] = set()
        hosts: set[str] = set()
        for one in self._inventory.slices_of(fleet):
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
