"""Pods that XBackends select, read from a real API server by the command line; without permission nothing is read."""

from __future__ import annotations

from typing import Any

from cluster.kube_cached import WORLD, following
from cluster.test_kube_cache_scope import RULES, grant
from cluster.world.apiserver import ApiServer
from controller.cli.objects import Reader
from controller.kube.client import Kube
from edgefast.api.config.edgegateway import EdgeGateway, ExtensionApis
from edgefast.api.core.selected_pod import SelectedPod, SelectedPods
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from tests.controller.waiting import until
from tests.support.manifest import manifest

XBACKEND = """
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackend
metadata: {name: pods, namespace: NAMESPACE}
spec:
  type: EndpointSelector
  port: {number: 8080}
  endpointSelector: {matchLabels: {app: web}}
  sessionPersistence: {cookie: {name: sid}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: pods, namespace: NAMESPACE}
spec:
  parentRefs: [{name: plain}]
  rules: [{backendRefs: [{group: gateway.networking.x-k8s.io, kind: XBackend, name: pods}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: plain, namespace: NAMESPACE}
spec:
  gatewayClassName: NAMESPACE
  listeners: [{name: a, port: 80, protocol: HTTP}]
"""


def pod(namespace: str, name: str, app: str) -> dict[str, Any]:
    return manifest(
        f"Pod {namespace}/{name}",
        {"automountServiceAccountToken": False, "containers": [{"name": "web", "image": "web"}]},
        labels={"app": app},
    )


def serve(server: ApiServer, namespace: str, name: str, address: str, ready: str = "True") -> None:
    """Say of a Pod what a kubelet would."""
    status = {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": ready}],
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
    server.admin.patch(path, {"status": status})


def service_account(namespace: str) -> dict[str, Any]:
    """Return what no controller makes here, and every Pod needs."""
    metadata = {"name": "default", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _rule(group: str, *kinds: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [*kinds], "verbs": ["get", "list", "watch"]}


async def test_the_command_line_reads_the_same_pods(newest: ApiServer) -> None:
    namespace = newest.namespace("pods")
    newest.admin.apply((WORLD + XBACKEND).replace("NAMESPACE", namespace))
    newest.admin.apply(service_account(namespace), pod(namespace, "a", "web"))
    serve(newest, namespace, "a", "10.9.0.1")
    config = EdgeGateway(extension_apis=ExtensionApis(enable_x_backend=True))
    settings = Settings(standalone=False, controller_name=f"gateway.edge.io/{namespace}")
    async with await Kube.open(newest.kubeconfig) as kube:
        reader = Reader(kube)
        snapshot = await reader.fetch(await reader.read(config, namespace), settings)
        found = SelectedPods(pods=(SelectedPod(address="10.9.0.1"),))
        assert snapshot.pods == {(namespace, "app=web"): found}


async def test_without_permission_nothing_is_asked(newest: ApiServer) -> None:
    """The roles without enableXBackend read neither XBackends nor Pods."""
    namespace = newest.namespace("pods")
    newest.admin.apply((WORLD + XBACKEND).replace("NAMESPACE", namespace))
    grant(newest, namespace, "plain", [_rule(group, *kinds) for group, kinds in RULES.items()])
    async with following(newest, namespace, account=f"{namespace}/reader") as one:
        await one.cache.wait_synced()
        await until(one.settled, "read")
        assert not one.cache.problems and not one.cache.snapshot().x_backends
        assert not one.cache.snapshot().pods
        made = translate(one.cache.snapshot(), one.settings)
        status = made.statuses.http_routes[namespace, "pods"]
        said = [c for c in status.parents[0].conditions if c.type == "ResolvedRefs"]
        assert "extensionApis.enableXBackend" in said[0].message
