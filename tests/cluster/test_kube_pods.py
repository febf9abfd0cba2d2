"""Pods that XBackends select, at a real API server: they come, serve, leave and go; without permission nothing is asked, and nothing said."""

from __future__ import annotations

from typing import Any

from cluster.kube_cached import WORLD, following
from cluster.test_kube_cache_scope import RULES, grant
from cluster.world.apiserver import ApiServer
from edgefast import ir
from edgefast.translate.pipeline import translate
from tests.controller.kube.waiting import run, until

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
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [{"name": "web", "image": "web"}],
        },
    }


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


def test_pods_come_and_go(newest: ApiServer) -> None:
    namespace = newest.namespace("pods")
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": namespace},
    }
    newest.admin.apply((WORLD + XBACKEND).replace("NAMESPACE", namespace))
    newest.admin.apply(account, pod(namespace, "a", "web"), pod(namespace, "other", "else"))
    serve(newest, namespace, "other", "10.9.0.9")

    async def test() -> None:
        async with following(newest, namespace, namespace, x_backends=True) as one:

            def addresses() -> list[str]:
                one.settled()
                made = translate(one.cache.snapshot(), one.settings)
                clusters: dict[str, ir.Cluster] = {
                    cluster.name: cluster for fleet in made.ir.fleets for cluster in fleet.clusters
                }
                found = clusters.get(f"xbackend/{namespace}/pods")
                return [endpoint.address for endpoint in found.endpoints] if found else ["?"]

            await one.cache.wait_synced()
            await until(lambda: addresses() == [], "none serves")
            assert one.cache.selections == {(namespace, "app=web")}
            serve(newest, namespace, "a", "10.9.0.1")
            await until(lambda: addresses() == ["10.9.0.1"], "one serves")
            newest.admin.apply(pod(namespace, "b", "web"))
            serve(newest, namespace, "b", "10.9.0.2")
            await until(lambda: addresses() == ["10.9.0.1", "10.9.0.2"], "both serve")
            serve(newest, namespace, "a", "10.9.0.1", "False")
            await until(lambda: addresses() == ["10.9.0.2"], "one is not ready")
            newest.admin.apply(pod(namespace, "b", "else"))
            await until(lambda: addresses() == [], "its label is another")
            assert not one.cache.problems

    run(test())


def test_without_permission_nothing_is_asked(newest: ApiServer) -> None:
    """The roles without enableXBackend read neither XBackends nor Pods."""
    namespace = newest.namespace("pods")
    newest.admin.apply((WORLD + XBACKEND).replace("NAMESPACE", namespace))
    rules: list[dict[str, Any]] = [
        {"apiGroups": [group], "resources": kinds, "verbs": ["get", "list", "watch"]}
        for group, kinds in RULES.items()
    ]
    grant(newest, namespace, "plain", rules)

    async def test() -> None:
        async with following(newest, namespace, account=f"{namespace}/reader") as one:
            await one.cache.wait_synced()
            await until(one.settled, "read")
            assert not one.cache.problems and not one.cache.snapshot().x_backends
            assert not one.cache.selections
            made = translate(one.cache.snapshot(), one.settings)
            status = made.statuses.http_routes[namespace, "pods"]
            said = [c for c in status.parents[0].conditions if c.type == "ResolvedRefs"]
            assert "extensionApis.enableXBackend" in said[0].message

    run(test())
