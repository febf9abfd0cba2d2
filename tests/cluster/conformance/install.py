"""The product in a world, put there as its users do: the chart by helm, then a GatewayClass.

In: a world, a mode. Out: an accepted GatewayClass that says what it supports.
Must never: give the product anything that a user would not.
"""

from __future__ import annotations

from typing import Any

from cluster.conformance.modes import CLASS, SYSTEM, Mode
from cluster.world.folder import PROJECT
from cluster.world.world import World

CHART = PROJECT / "controller" / "manifests" / "chart"
_SECONDS = 60.0


def install(world: World, mode: Mode) -> None:
    """Install the chart and make the class; TimeoutError when it is not accepted."""
    values = [argument for value in mode.values for argument in ("--set", value)]
    world.helm.run(
        *("install", "edge-gateway", str(CHART)),
        *("--namespace", SYSTEM, "--create-namespace", "--wait"),
        *values,
    )
    for manifest in mode.manifests():
        world.admin.apply(manifest)
    path = f"/apis/gateway.networking.k8s.io/v1/gatewayclasses/{CLASS}"
    world.admin.wait(path, _is_accepted, _SECONDS)


def _is_accepted(found: Any) -> bool:
    status = (found or {}).get("status") or {}
    accepted = any(
        one["type"] == "Accepted" and one["status"] == "True"
        for one in status.get("conditions") or []
    )
    return accepted and bool(status.get("supportedFeatures"))
