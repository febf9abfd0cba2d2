"""The ways of deploying that the suite is run in: what the chart and the GatewayClass are given for each.

In: a name. Out: values for helm, manifests of the class, the flags of the suite that only this mode needs.
Must never: change what the product claims; a feature that a mode cannot have is left out here by name, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CLASS = "conformance"
SYSTEM = "edge-gateway-system"
CONTROLLER = "gateway.edge.io/gatewayclass-controller"

_DEPLOY = "config.edgeGateway.provider.orchestrator.deploy.type"
_PARAMETERS = "conformance-merged"


@dataclass(frozen=True, kw_only=True)
class Mode:
    """One way of deploying."""

    name: str
    title: str
    report: str  # its name in reports, where the usual mode is "default"
    values: tuple[str, ...] = ()  # helm --set
    merged: bool = False
    exempt: tuple[str, ...] = ()  # features claimed by the class that this mode cannot have

    def manifests(self) -> list[dict[str, Any]]:
        """Return the GatewayClass and what it refers to."""
        spec: dict[str, Any] = {"controllerName": CONTROLLER}
        made: list[dict[str, Any]] = []
        if self.merged:
            spec["parametersRef"] = {
                "group": "gateway.edge.io",
                "kind": "EdgeProxy",
                "name": _PARAMETERS,
                "namespace": SYSTEM,
            }
            made.append(
                {
                    "apiVersion": "gateway.edge.io/v1alpha1",
                    "kind": "EdgeProxy",
                    "metadata": {"name": _PARAMETERS, "namespace": SYSTEM},
                    "spec": {"mergeGateways": True},
                }
            )
        made.append(
            {
                "apiVersion": "gateway.networking.k8s.io/v1",
                "kind": "GatewayClass",
                "metadata": {"name": CLASS},
                "spec": spec,
            }
        )
        return made


MODES = {
    mode.name: mode
    for mode in (
        Mode(name="controller-namespace", title="Controller Namespace", report="default"),
        Mode(
            name="gateway-namespace",
            title="Gateway Namespace",
            report="gateway-namespace",
            values=(f"{_DEPLOY}=GatewayNamespace",),
        ),
        Mode(name="merged", title="merged Gateways", report="merged", merged=True),
    )
}
