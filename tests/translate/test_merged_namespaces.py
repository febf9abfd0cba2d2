"""Merged Gateways by mode: one fleet of a class, or one for each of its namespaces; tuples are unique within a fleet."""

from __future__ import annotations

import pytest

from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from edgefast.translate.translation import Translation
from tests.support.manifest import manifest
from tests.translate import world

pytestmark = pytest.mark.pure


def gateway(namespace: str, name: str, created: str) -> Object:
    meta = {
        "name": name,
        "namespace": namespace,
        "creationTimestamp": f"2026-01-{created}T00:00:00Z",
    }
    listener = {"name": "http", "port": 80, "protocol": "HTTP", "hostname": "same.example"}
    spec = {"gatewayClassName": "edge", "listeners": [listener]}
    return world.make(
        {"apiVersion": world.GATEWAY, "kind": "Gateway", "metadata": meta, "spec": spec}
    )


def merged(*, in_namespaces: bool) -> Translation:
    """Translate three Gateways of one merged class that want the same tuple, two of them of one namespace."""
    reference = {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "p", "namespace": "x"}
    controller = Settings().controller_name
    made = [
        manifest("GatewayClass edge", {"controllerName": controller, "parametersRef": reference}),
        manifest("EdgeProxy x/p", {"mergeGateways": True}),
    ]
    gateways = (gateway("a", "old", "01"), gateway("a", "new", "02"), gateway("b", "third", "03"))
    settings = Settings(standalone=False, gateway_namespace_mode=in_namespaces)
    return translate(Snapshot.of([*map(world.make, made), *gateways]), settings)


def served(made: Translation) -> dict[str, bool]:
    """Whether the listener of each Gateway is served, or conflicted."""
    found = {}
    for (namespace, name), status in made.statuses.gateways.items():
        conditions = {one.type: one.status for one in status.listeners[0].conditions}
        assert (conditions.get("Conflicted") == "True") == (conditions["Accepted"] == "False")
        found[f"{namespace}/{name}"] = conditions["Accepted"] == "True"
    return found


def test_one_fleet_has_each_tuple_once() -> None:
    made = merged(in_namespaces=False)
    assert len(made.infra) == 1
    assert served(made) == {"a/old": True, "a/new": False, "b/third": False}


def test_in_gateway_namespace_mode_each_namespace_has_a_fleet_and_tuples_of_its_own() -> None:
    made = merged(in_namespaces=True)
    assert sorted((one.namespace, one.gateways) for one in made.infra) == [
        ("a", ("a/old",)),
        ("b", ("b/third",)),
    ]
    assert served(made) == {"a/old": True, "a/new": False, "b/third": True}
