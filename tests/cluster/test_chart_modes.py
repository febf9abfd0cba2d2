"""Every deployment mode as the chart installs it: real controllers under exactly the chart's permissions serve, and are refused nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.world.world import World
from controller.manifests.naming import Release
from tests.support.manifest import manifest

PROJECT = Path(__file__).parents[2]
LABEL = "edge-tenant"


@dataclass(frozen=True)
class Mode:
    """One deployment mode."""

    own: bool  # fleets in the Gateways' namespaces
    watch: str  # "", Namespaces or NamespaceSelector


MODES = {
    "controller-namespace": Mode(False, ""),
    "gateway-namespace": Mode(True, ""),
    "listed": Mode(False, "Namespaces"),
    "listed-gateway-namespace": Mode(True, "Namespaces"),
    "labelled": Mode(False, "NamespaceSelector"),
    "labelled-gateway-namespace": Mode(True, "NamespaceSelector"),
}


class Tenant:
    """A release in a namespace of its own, a namespace that it serves and one that it may not see."""

    def __init__(self, world: World, name: str, mode: Mode, folder: Path) -> None:
        self._world, self._mode, self._folder = world, mode, folder
        self.home = world.namespace("home")
        self.served = world.namespace("served", **{LABEL: name})
        self.beside = world.namespace("beside")
        self.release = Release(name, self.home)
        self.gateway_class = f"{self.home}-class"
        self.controller_name = f"gateway.edge.io/{self.home}"

    def values(self) -> dict[str, Any]:
        """Values of the mode."""
        settings: dict[str, Any] = {}
        if self._mode.own:
            settings["deploy"] = {"type": "GatewayNamespace"}
        if self._mode.watch == "Namespaces":
            settings["watch"] = {"type": "Namespaces", "namespaces": [self.served]}
        if self._mode.watch == "NamespaceSelector":
            labels = {"matchLabels": {LABEL: self.release.name}}
            settings["watch"] = {"type": "NamespaceSelector", "namespaceSelector": labels}
        provider = {"type": "Orchestrator", "orchestrator": settings}
        gateway = {"controllerName": self.controller_name}
        return {"config": {"edgeGateway": {"gateway": gateway, "provider": provider}}}

    def edgefast(self, verb: str, *arguments: str) -> None:
        """Run `edgefast install` or `uninstall`; it must succeed."""
        code = f"from controller.cli.{verb} import {verb} as main; main()"
        command = [sys.executable, "-c", code, "--release", self.release.name, "-n", self.home]
        command += ["--kubeconfig", str(self._world.kubeconfig), *arguments]
        done = subprocess.run(
            command, cwd=PROJECT, env=os.environ, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def install(self) -> None:
        """Install the release; returns when the controller is ready."""
        path = self._folder / "values.yaml"
        path.write_text(yaml.safe_dump(self.values()))
        self.edgefast("install", "-f", str(path), "--timeout", "150")

    def apply(self) -> None:
        """The class, and in both namespaces a Gateway with a route and a backend."""
        group = "gateway.networking.k8s.io/v1"
        self._world.admin.apply(
            manifest(
                f"GatewayClass {self.gateway_class}",
                {"controllerName": self.controller_name},
                api=group,
            )
        )
        for namespace in (self.served, self.beside):
            self._world.admin.apply(
                BACKEND.replace("HERE", namespace).replace("CLASS", self.gateway_class)
            )

    def gateway(self, namespace: str) -> dict[str, Any]:
        """The Gateway of a namespace."""
        path = f"/apis/gateway.networking.k8s.io/v1/namespaces/{namespace}/gateways/edge"
        found: dict[str, Any] = self._world.admin.get(path)
        return found

    def log(self) -> str:
        """The log of the controller."""
        selector = f"control-plane=edge-gateway,app.kubernetes.io/instance={self.release.name}"
        (pod,) = self._world.workloads.pods(self.home, selector)
        return self._world.workloads.logs(self.home, pod["metadata"]["name"], "edge-gateway")

    def remove(self) -> None:
        """Take everything away again."""
        for namespace in (self.served, self.beside):
            self._world.admin.delete(
                f"/apis/gateway.networking.k8s.io/v1/namespaces/{namespace}/gateways/edge"
            )
        self._world.admin.delete(
            f"/apis/gateway.networking.k8s.io/v1/gatewayclasses/{self.gateway_class}"
        )
        self.edgefast("uninstall", "--purge")
        for namespace in (self.home, self.served, self.beside):
            self._world.admin.delete(f"/api/v1/namespaces/{namespace}")


BACKEND = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: HERE}
spec:
  gatewayClassName: CLASS
  listeners: [{name: http, protocol: HTTP, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: backend, namespace: HERE}
spec:
  parentRefs: [{name: edge}]
  hostnames: [HERE.example]
  rules: [{backendRefs: [{name: backend, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: backend, namespace: HERE}
spec:
  selector: {app: backend}
  ports: [{port: 80, targetPort: 3000}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: backend, namespace: HERE}
spec:
  selector: {matchLabels: {app: backend}}
  template:
    metadata: {labels: {app: backend}}
    spec:
      containers:
      - name: backend
        image: registry.k8s.io/gateway-api/echo-basic:v1.5.1
        env: [{name: NAMESPACE, value: HERE}]
        readinessProbe: {tcpSocket: {port: 3000}}
"""


@pytest.fixture
def tenant(world: World, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tenant]:
    """The tenant of a mode, installed."""
    name: str = request.param
    made = Tenant(world, name, MODES[name], tmp_path)
    try:
        made.install()
        yield made
    finally:
        made.remove()


@pytest.mark.parametrize("tenant", MODES, indirect=True)
def test_a_mode_serves_under_the_chart_s_permissions(
    world: World, tenant: Tenant, request: pytest.FixtureRequest
) -> None:
    mode = MODES[request.node.callspec.params["tenant"]]
    tenant.apply()
    path = f"/apis/gateway.networking.k8s.io/v1/namespaces/{tenant.served}/gateways/edge"
    gateway = world.admin.wait(path, lambda found: _condition(found, "Programmed"))
    address = gateway["status"]["addresses"][0]["value"]
    answer = world.client.wait(
        f"http://{address}/", lambda one: one.status == 200, host=f"{tenant.served}.example"
    )
    assert f'"namespace": "{tenant.served}"'.encode() in answer.body
    home = tenant.served if mode.own else tenant.home
    selector = "app.kubernetes.io/managed-by=edge-gateway"
    fleets = world.admin.items(
        f"/apis/apps/v1/namespaces/{home}/deployments", labelSelector=selector
    )
    names = [fleet["metadata"]["name"] for fleet in fleets]
    assert [name for name in names if name.startswith(f"edge-{tenant.served}-edge-")], names
    if mode.own:
        secrets = world.admin.items(f"/api/v1/namespaces/{tenant.served}/secrets")
        assert not secrets, "no key in a Gateway's namespace"
    if mode.watch:
        assert not _condition(tenant.gateway(tenant.beside), "Accepted")
        foreign = world.client.request(f"http://{address}/", host=f"{tenant.beside}.example")
        assert foreign.status == 404
    else:
        other = f"/apis/gateway.networking.k8s.io/v1/namespaces/{tenant.beside}/gateways/edge"
        world.admin.wait(other, lambda found: _condition(found, "Programmed"))
    log = tenant.log()
    assert "forbidden" not in log.lower() and " 403 " not in log, log


def _condition(gateway: Any, name: str) -> bool:
    """Whether a condition is True; the one that the API fills in at creation is Unknown."""
    conditions = (gateway or {}).get("status", {}).get("conditions") or []
    return any(one["type"] == name and one["status"] == "True" for one in conditions)
