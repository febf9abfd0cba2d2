"""Pods that XBackends select, at a real API server: they come, serve, leave and go; without permission nothing is asked, and nothing said."""

from __future__ import annotations

from typing import Any

import msgspec

from cluster.kube_cached import QUICK, WORLD, following
from cluster.test_kube_cache_scope import RULES, grant
from cluster.world.apiserver import ApiServer
from controller.cli.objects import Reader
from controller.kube.client import Kube
from edgefast import ir
from edgefast.resources.config.edgegateway import EdgeGateway, ExtensionApis
from edgefast.resources.kubernetes.selectedpod import SelectedPod, SelectedPods
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from edgefast.translate.status.status import PolicyStatus
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


def service_account(namespace: str) -> dict[str, Any]:
    """Return what no controller makes here, and every Pod needs."""
    metadata = {"name": "default", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _rule(group: str, *kinds: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [*kinds], "verbs": ["get", "list", "watch"]}


def test_pods_come_and_go(newest: ApiServer) -> None:
    namespace = newest.namespace("pods")
    newest.admin.apply((WORLD + XBACKEND).replace("NAMESPACE", namespace))
    newest.admin.apply(
        service_account(namespace), pod(namespace, "a", "web"), pod(namespace, "other", "else")
    )
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
            assert one.cache.snapshot().pods.keys() == {(namespace, "app=web")}
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


def test_the_command_line_reads_the_same_pods(newest: ApiServer) -> None:
    namespace = newest.namespace("pods")
    newest.admin.apply((WORLD + XBACKEND).replace("NAMESPACE", namespace))
    newest.admin.apply(service_account(namespace), pod(namespace, "a", "web"))
    serve(newest, namespace, "a", "10.9.0.1")
    config = EdgeGateway(extension_apis=ExtensionApis(enable_x_backend=True))
    settings = Settings(standalone=False, controller_name=f"gateway.edge.io/{namespace}")

    async def test() -> None:
        async with await Kube.open(newest.kubeconfig) as kube:
            reader = Reader(kube)
            snapshot = await reader.fetch(await reader.read(config, namespace), settings)
            found = SelectedPods(pods=(SelectedPod(address="10.9.0.1"),))
            assert snapshot.pods == {(namespace, "app=web"): found}

    run(test())


def test_without_permission_nothing_is_asked(newest: ApiServer) -> None:
    """The roles without enableXBackend read neither XBackends nor Pods."""
    namespace = newest.namespace("pods")
    newest.admin.apply((WORLD + XBACKEND).replace("NAMESPACE", namespace))
    grant(newest, namespace, "plain", [_rule(group, *kinds) for group, kinds in RULES.items()])

    async def test() -> None:
        async with following(newest, namespace, account=f"{namespace}/reader") as one:
            await one.cache.wait_synced()
            await until(one.settled, "read")
            assert not one.cache.problems and not one.cache.snapshot().x_backends
            assert not one.cache.snapshot().pods
            made = translate(one.cache.snapshot(), one.settings)
            status = made.statuses.http_routes[namespace, "pods"]
            said = [c for c in status.parents[0].conditions if c.type == "ResolvedRefs"]
            assert "extensionApis.enableXBackend" in said[0].message

    run(test())


def test_pods_that_may_not_be_read_any_more(newest: ApiServer) -> None:
    """They stay, and the XBackend's status says that nobody reads them; with the right back it says so no more."""
    namespace = newest.namespace("pods")
    newest.admin.apply((WORLD + XBACKEND).replace("NAMESPACE", namespace))
    newest.admin.apply(service_account(namespace), pod(namespace, "a", "web"))
    serve(newest, namespace, "a", "10.9.0.1")
    kinds = RULES | {"gateway.networking.x-k8s.io": ["xbackendtrafficpolicies", "xbackends"]}
    rules = [_rule(group, *named) for group, named in kinds.items()]
    grant(newest, namespace, "plain", rules)
    grant(newest, namespace, "pods", [_rule("", "pods")])
    pace = msgspec.structs.replace(QUICK, watch_least=1.0, watch_most=2.0, backoff_most=1.0)
    reader = f"{namespace}/reader"

    async def test() -> None:
        async with following(newest, namespace, account=reader, pace=pace, x_backends=True) as one:

            def told() -> tuple[list[str], str]:
                """Return the endpoints, and why they are not those of now."""
                if not one.settled():
                    return [], "?"
                made = translate(one.cache.snapshot(), one.settings)
                clusters = [x for fleet in made.ir.fleets for x in fleet.clusters]
                (cluster,) = (x for x in clusters if x.name == f"xbackend/{namespace}/pods")
                status = made.statuses.x_backends[namespace, "pods"]
                assert isinstance(status, PolicyStatus)
                why = [x.message for x in status.ancestors[0].conditions if x.status == "False"]
                return [x.address for x in cluster.endpoints], "".join(why)

            await one.cache.wait_synced()
            await until(lambda: told() == (["10.9.0.1"], ""), "one serves")
            changes = one.changes
            grant(newest, namespace, "pods", [])
            await until(lambda: one.changes > changes, "told")
            addresses, why = told()
            assert addresses == ["10.9.0.1"] and "PodsNotRead" in why and "(Forbidden)" in why
            assert one.cache.problems
            grant(newest, namespace, "pods", [_rule("", "pods")])
            await until(lambda: told() == (["10.9.0.1"], ""), "read again", seconds=100.0)

    run(test())
