"""Inventory: the present objects of all fleets of this installation, and the nodes while they are needed.

In: watches by label (nodes: without).
Out: objects by fleet, as plain values with the API server's metadata, and a call for each change.
All applied objects are watched, and the EndpointSlices that the cluster creates for them.
Must never: write; or drop an object because the API server is not reachable.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from controller.fleets.managed_objects import is_ours
from controller.fleets.object_ref import APPLIED, ObjectRef
from controller.fleets.placement import Placement
from controller.kube.apis import APIS, Api
from controller.kube.client import Kube
from controller.kube.depth import decode_json
from controller.kube.reflector import Item, Key, Reflector, Target
from controller.kube.throttle import RequestRate

_SLICES = ("discovery.k8s.io/v1", "EndpointSlice")
_NODES = ("v1", "Node")
_SERVICE_NAME = "kubernetes.io/service-name"


class Held(msgspec.Struct, frozen=True):
    """One object; `managedFields` is read once and dropped, it is half of an object's size."""

    uid: str
    ours: bool
    live: Mapping[str, Any]


class Inventory:
    """Watches the objects of all fleets, and nodes while a fleet needs them.

    `namespaces` None is all of them.
    """

    def __init__(
        self,
        kube: Kube,
        place: Placement,
        namespaces: Sequence[str] | None = None,
        *,
        pace: RequestRate | None = None,
    ) -> None:
        self.nodes: dict[str, Mapping[str, Any]] = {}
        #: Called with what was put or deleted, and whether it is there now.
        self.on_object: list[Callable[[ObjectRef, bool], None]] = []
        self.on_slices: list[Callable[[str], None]] = []  # of which fleet
        self.on_nodes: list[Callable[[], None]] = []
        self.on_synced: list[Callable[[], None]] = []
        #: Tells of a namespace that surely does not exist, so that nothing can be read there.
        self.is_absent: Callable[[str | None], bool] = lambda _: False
        self._objects: defaultdict[str, dict[ObjectRef, Held]] = defaultdict(dict)
        self._slices: defaultdict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
        self._fleet_of_slice: dict[Key, str] = {}
        self._kube = kube
        self._identity = place.identity
        self._pace = pace
        self._need_nodes = asyncio.Event()
        kinds = list(APPLIED)
        if place.gateway_namespace_mode:
            kinds.remove(("v1", "Secret"))  # fleets have none there, and none may be read
        where: Sequence[str | None] = (None,) if namespaces is None else namespaces
        self.reflectors = [
            self._reflect_kind(APIS[kind], one, place.selector) for kind in kinds for one in where
        ]
        for one in where:
            target = Target(APIS[_SLICES], one, place.selector)
            self.reflectors.append(self._reflect(target, self._on_slice, self._on_slice_gone))
        self.node_reflector = self._reflect(Target(APIS[_NODES]), self._on_node, self._on_node_gone)

    @property
    def synced(self) -> bool:
        """Tell whether every kind has been read once, where it can be."""
        return all(one.synced or self.is_absent(one.target.namespace) for one in self.reflectors)

    def want_nodes(self) -> None:
        """Begin to watch nodes: a Service of type NodePort has their addresses."""
        self._need_nodes.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self.reflectors:
                group.create_task(one.run())
            await self._need_nodes.wait()
            group.create_task(self.node_reflector.run())

    def get(self, ref: ObjectRef) -> Held | None:
        """Return an object that was applied for a fleet, None when there is none."""
        return self._objects.get(ref.fleet, {}).get(ref)

    def objects_of(self, fleet: str) -> Mapping[ObjectRef, Held]:
        """Return what there is of a fleet ("namespace/name")."""
        return self._objects.get(fleet, {})

    def slices_of(self, fleet: str) -> Iterable[Mapping[str, Any]]:
        """Return the EndpointSlices of a fleet's Service."""
        return self._slices.get(fleet, {}).values()

    def fleets(self) -> set[str]:
        """Return the keys of all fleets that there is something of."""
        return set(self._objects)

    # --- what is seen ---------------------------------------------------------------------------

    def _reflect_kind(self, api: Api, namespace: str | None, selector: str) -> Reflector:
        def on_put(item: Item) -> None:
            ref = ObjectRef(api.kind, item.namespace, item.name)
            # The items of a list do not say their kind.
            named = {"apiVersion": api.api_version, "kind": api.kind}
            live = {**named, **decode_json(item.raw)}
            self._objects[ref.fleet][ref] = hold(live, self._identity)
            for call in self.on_object:
                call(ref, True)

        def on_delete(namespace: str, name: str) -> None:
            ref = ObjectRef(api.kind, namespace, name)
            objects = self._objects[ref.fleet]
            objects.pop(ref, None)
            if not objects:
                del self._objects[ref.fleet]
            for call in self.on_object:
                call(ref, False)

        return self._reflect(Target(api, namespace, selector), on_put, on_delete)

    def _reflect(
        self,
        target: Target,
        on_put: Callable[[Item], None],
        on_delete: Callable[[str, str], None],
    ) -> Reflector:
        return Reflector(self._kube, target, on_put, on_delete, self._on_synced, pace=self._pace)

    def _on_synced(self) -> None:
        if self.synced:
            for call in self.on_synced:
                call()

    def _on_slice(self, item: Item) -> None:
        live = decode_json(item.raw)
        labels = live["metadata"].get("labels") or {}
        fleet = f"{item.namespace}/{labels.get(_SERVICE_NAME, '')}"
        self._slices[fleet][item.name] = {"endpoints": live.get("endpoints") or ()}
        self._fleet_of_slice[item.namespace, item.name] = fleet
        self._notify_slices(fleet)

    def _on_slice_gone(self, namespace: str, name: str) -> None:
        fleet = self._fleet_of_slice.pop((namespace, name))
        slices = self._slices[fleet]
        slices.pop(name, None)
        if not slices:
            del self._slices[fleet]
        self._notify_slices(fleet)

    def _notify_slices(self, fleet: str) -> None:
        for call in self.on_slices:
            call(fleet)

    def _on_node(self, item: Item) -> None:
        node = decode_json(item.raw)
        addresses = (node.get("status") or {}).get("addresses")
        before = self.nodes.get(item.name)
        self.nodes[item.name] = {"addresses": addresses}
        # Nodes report every few seconds; their addresses hardly ever change.
        if before is None or before["addresses"] != addresses:
            self._notify_nodes()

    def _on_node_gone(self, _: str, name: str) -> None:
        self.nodes.pop(name, None)
        self._notify_nodes()

    def _notify_nodes(self) -> None:
        for call in self.on_nodes:
            call()


def hold(live: dict[str, Any], identity: str) -> Held:
    """Return an object as it is held; takes `managedFields` out of it."""
    held = Held(
        uid=live["metadata"]["uid"],
        ours=is_ours(live, identity),
        live=live,
    )
    live["metadata"].pop("managedFields", None)
    return held
