"""Cache against a real API server: snapshots, identity, referenced Secrets, namespaces and kinds that come and go."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from cluster.kube_waiting import run, running, until
from cluster.world.apiserver import ApiServer
from cluster.world.crds import install_gateway_api, install_own
from controller.kube.cache import Cache
from controller.kube.client import Kube
from controller.kube.pace import Pace
from controller.kube.references import referenced
from controller.kube.scope import Scope
from edgefast.problem import ObjectRef
from edgefast.resources.meta import LabelSelector
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings

QUICK = Pace(
    page=3,
    backoff_first=0.02,
    backoff_most=0.2,
    discover=0.2,
    discover_missing=0.1,
    absent_after=0.1,
    gone_after=0.3,
)
GROUP = "gateway.networking.k8s.io"
WORLD = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: NAMESPACE}
spec: {controllerName: gateway.edge.io/NAMESPACE}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: g, namespace: NAMESPACE}
spec:
  gatewayClassName: NAMESPACE
  listeners:
  - {name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: used}]}}
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: HTTPRoute
metadata: {name: r, namespace: NAMESPACE}
spec:
  parentRefs: [{name: g}]
  rules: [{backendRefs: [{name: s, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: NAMESPACE}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s-1, namespace: NAMESPACE, labels: {kubernetes.io/service-name: s}}
addressType: IPv4
ports: [{port: 80, name: ""}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: v1
kind: Secret
metadata: {name: used, namespace: NAMESPACE}
stringData: {tls.crt: x, tls.key: y}
type: kubernetes.io/tls
---
apiVersion: v1
kind: Secret
metadata: {name: unused, namespace: NAMESPACE}
stringData: {password: x}
"""


class Following:
    """A running cache and what it told."""

    def __init__(self, cache: Cache, namespace: str) -> None:
        self.cache = cache
        self.changes = 0
        self.statuses: list[ObjectRef] = []
        self.settings = Settings(
            standalone=False,
            namespace=namespace,
            controller_name=f"gateway.edge.io/{namespace}",
        )
        cache.on_change = self._on_change
        cache.on_status = self.statuses.append

    def _on_change(self) -> None:
        assert self.cache.synced
        self.changes += 1

    def settled(self) -> bool:
        return self.cache.want(referenced(self.cache.snapshot(), self.settings))


@contextlib.asynccontextmanager
async def following(
    server: ApiServer, namespace: str, *listed: str, account: str = ""
) -> AsyncIterator[Following]:
    kubeconfig = server.kubeconfig_for(account) if account else server.kubeconfig
    async with await Kube.open(kubeconfig) as kube:
        cache = Cache(kube, Scope(namespace, listed), pace=QUICK)
        found = Following(cache, namespace)
        async with running(cache.run()):
            yield found


def gateway_ref(namespace: str) -> ObjectRef:
    return ObjectRef("Gateway", namespace, "g", GROUP)


def test_a_snapshot_holds_what_counts(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("cache")
    apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))

    async def test() -> None:
        async with following(apiserver, namespace) as one:
            await one.cache.wait_synced()
            assert (namespace, "g") in one.cache.snapshot().gateways
            await until(one.settled, "Secrets read")
            snapshot = one.cache.snapshot()
            assert snapshot.http_routes[namespace, "r"].spec.rules[0].backend_refs[0].name == "s"
            assert snapshot.services[namespace, "s"].spec.ports[0].port == 80
            assert len(snapshot.slices_by_service[namespace, "s"]) == 1
            assert [key for key in snapshot.secrets if key[0] == namespace] == [(namespace, "used")]
            assert snapshot.secrets[namespace, "used"].value("tls.crt") == b"x"
            assert one.cache.bundle_version.startswith("v1.")
            assert one.cache.served["HTTPRoute"].version == "v1"
            assert not one.cache.problems and not one.cache.refused
            assert one.cache.snapshot() is snapshot

            # A Secret that changes, goes, comes back, and is referred to no longer.
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "used", "namespace": namespace},
                "type": "kubernetes.io/tls",
                "stringData": {"tls.crt": "new", "tls.key": "y"},
            }

            def certificate() -> bytes | None:
                found = one.cache.snapshot().secrets.get((namespace, "used"))
                return found.value("tls.crt") if found else None

            apiserver.admin.apply(secret)
            await until(lambda: certificate() == b"new", "read again")
            apiserver.admin.remove(secret)
            await until(lambda: certificate() is None, "gone")
            assert one.settled()
            apiserver.admin.apply(secret)
            await until(lambda: certificate() == b"new", "back")
            assert one.cache.want(frozenset()) and certificate() is None

    run(test())


def test_a_status_costs_no_translation(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("cache")
    apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))

    async def test() -> None:
        async with following(apiserver, namespace) as one:
            await one.cache.wait_synced()
            before = one.cache.snapshot()
            present = one.cache.present(gateway_ref(namespace))
            assert present is not None and present.generation == 1 and present.uid
            changes = one.changes
            one.statuses.clear()
            path = f"/apis/{GROUP}/v1/namespaces/{namespace}/gateways/g"
            apiserver.admin.patch(f"{path}/status", {"status": {"conditions": []}})
            apiserver.admin.patch(path, {"metadata": {"finalizers": ["test/x"]}})
            apiserver.admin.patch(path, {"metadata": {"finalizers": []}})
            version = apiserver.admin.get(path)["metadata"]["resourceVersion"]

            def seen() -> str:
                now = one.cache.present(gateway_ref(namespace))
                return now.resource_version if now else ""

            await until(lambda: seen() == version, "seen")
            now = one.cache.present(gateway_ref(namespace))
            assert now is not None and b"conditions" in now.status and now.uid == present.uid
            assert one.statuses == [gateway_ref(namespace)]
            assert one.cache.snapshot().gateways[namespace, "g"] is before.gateways[namespace, "g"]
            # Other tests leave their objects alone; this one's changes are none.
            assert one.changes == changes

            apiserver.admin.patch(path, {"metadata": {"labels": {"a": "b"}}})
            await until(lambda: one.changes > changes, "a label counts")
            labelled = one.cache.snapshot().gateways[namespace, "g"]
            assert labelled is not before.gateways[namespace, "g"]
            apiserver.admin.delete(path)
            await until(lambda: one.cache.present(gateway_ref(namespace)) is None, "deleted")
            assert (namespace, "g") not in one.cache.snapshot().gateways

    run(test())


def test_the_address_of_a_service_is_seen(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("cache")
    apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))
    path = f"/api/v1/namespaces/{namespace}/services/s"
    apiserver.admin.patch(path, {"spec": {"type": "LoadBalancer"}})

    async def test() -> None:
        async with following(apiserver, namespace) as one:
            await one.cache.wait_synced()
            ingress = [{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}]
            status = {"loadBalancer": {"ingress": ingress}}
            apiserver.admin.patch(f"{path}/status", {"status": status})

            def addresses() -> tuple[str, ...]:
                return one.cache.snapshot().services[namespace, "s"].addresses

            await until(lambda: addresses() == ("192.0.2.1", "lb.example.com"), "seen")

    run(test())


def test_listed_namespaces_alone_and_others_later(apiserver: ApiServer) -> None:
    own, listed, other, later = (apiserver.namespace("cache") for _ in range(4))
    for namespace in (own, listed, other, later):
        apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))

    async def test() -> None:
        async with following(apiserver, own, own, listed) as one:
            await one.cache.wait_synced()
            snapshot = one.cache.snapshot()
            assert {namespace for namespace, _ in snapshot.gateways} == {own, listed}
            assert {namespace for namespace, _ in snapshot.services} == {own, listed}
            assert ("", other) in snapshot.gateway_classes  # cluster-wide
            one.cache.rescope(Scope(own, (own, later)))
            # A namespace joins whole: with its first object all the others are there.
            await until(lambda: (later, "g") in one.cache.snapshot().gateways, "joined")
            snapshot = one.cache.snapshot()
            assert (later, "s") in snapshot.services and (later, "r") in snapshot.http_routes
            await until(
                lambda: (
                    {namespace for namespace, _ in one.cache.snapshot().gateways} == {own, later}
                ),
                "left",
            )
            assert {namespace for namespace, _ in one.cache.snapshot().services} == {own, later}

    run(test())


def test_labels_decide_while_running(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("cache")
    apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))
    path = f"/api/v1/namespaces/{namespace}"

    async def test() -> None:
        async with following(apiserver, namespace) as one:
            await one.cache.wait_synced()
            settings = Settings(
                standalone=False,
                namespace=namespace,
                controller_name=f"gateway.edge.io/{namespace}",
                watch_selector=LabelSelector(match_labels={"tenant": namespace}),
            )

            def served() -> bool:
                return (namespace, "g") in translate(
                    one.cache.snapshot(), settings
                ).statuses.gateways

            assert not served() and not referenced(one.cache.snapshot(), settings)
            apiserver.admin.patch(path, {"metadata": {"labels": {"tenant": namespace}}})
            await until(served, "label added")
            assert referenced(one.cache.snapshot(), settings) == {("Secret", namespace, "used")}
            apiserver.admin.patch(path, {"metadata": {"labels": {"tenant": None}}})
            await until(lambda: not served(), "label removed")

    run(test())


RULES: dict[str, list[str]] = {
    GROUP: [
        "gatewayclasses", "gateways", "httproutes", "listenersets", "referencegrants",
        "backendtlspolicies",
    ],
    "gateway.edge.io": ["edgeproxies", "ratelimitfilters", "backends"],
    "discovery.k8s.io": ["endpointslices"],
    "": ["services", "namespaces", "configmaps", "secrets"],
}  # fmt: skip


def grant(server: ApiServer, namespace: str, name: str, rules: list[dict[str, Any]]) -> None:
    group = "rbac.authorization.k8s.io"
    meta = {"name": f"{namespace}-{name}"}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    role = {"apiGroup": group, "kind": "ClusterRole", **meta}
    version = f"{group}/v1"
    server.admin.apply(
        {"apiVersion": version, "kind": "ClusterRole", "metadata": meta, "rules": rules},
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": meta,
            "roleRef": role,
            "subjects": [subject],
        },
    )


def test_one_kind_without_permission_holds_everything_back(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("cache")
    apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))
    verbs = ["list", "watch"]
    rules = [
        {
            "apiGroups": [group],
            "resources": [one for one in kinds if one != "services"],
            "verbs": verbs,
        }
        for group, kinds in RULES.items()
    ]
    # Names may be listed; but only what is referred to is read.
    read = {
        "apiGroups": [""],
        "resources": ["secrets"],
        "verbs": ["get"],
        "resourceNames": ["used"],
    }
    grant(apiserver, namespace, "most", [*rules, read])

    async def test() -> None:
        async with following(apiserver, namespace, account=f"{namespace}/reader") as one:
            await until(lambda: one.cache.waiting == ("services.v1",), "the others are there", 60)
            await until(lambda: one.cache.restarts["Service", "forbidden"] > 2, "tried again")
            assert not one.cache.synced and not one.changes
            assert "forbidden" in one.cache.problems["services.v1"]
            rest = {"apiGroups": [""], "resources": ["services"], "verbs": verbs}
            grant(apiserver, namespace, "rest", [rest])
            await until(lambda: one.cache.synced, "synced")
            await until(one.settled, "Secrets read")
            assert (namespace, "s") in one.cache.snapshot().services
            assert not one.cache.problems and not one.cache.waiting

    run(test())


def test_an_outage_changes_nothing(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("cache")
    apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))

    async def test() -> None:
        async with following(apiserver, namespace) as one:
            await one.cache.wait_synced()
            await until(one.settled, "Secrets read")
            before = one.cache.snapshot()
            apiserver.plane.stop_apiserver()
            try:
                await until(lambda: len(one.cache.problems) >= 10, "noticed")
                assert one.cache.synced and one.cache.snapshot() is before
            finally:
                apiserver.plane.start_apiserver()
            await until(lambda: not one.cache.problems, "back", 60)
            after = one.cache.snapshot()
            assert after.gateways[namespace, "g"] is before.gateways[namespace, "g"]
            assert after.secrets[namespace, "used"] is before.secrets[namespace, "used"]
            apiserver.admin.delete(f"/apis/{GROUP}/v1/namespaces/{namespace}/httproutes/r")
            await until(
                lambda: (namespace, "r") not in one.cache.snapshot().http_routes, "followed again"
            )

    run(test())


@pytest.fixture
def bare() -> Iterator[ApiServer]:
    """An API server of its own, without any CRD."""
    server = ApiServer()
    try:
        server.start(crds=False)
        yield server
    finally:
        server.stop()


def test_kinds_join_when_their_crds_come_and_leave_with_them(bare: ApiServer) -> None:
    namespace = bare.namespace("cache")
    parts = WORLD.replace("NAMESPACE", namespace).split("---")
    for part in parts:
        if GROUP not in part:
            bare.admin.apply(part)

    async def test() -> None:
        async with following(bare, namespace) as one:
            await one.cache.wait_synced()
            assert (namespace, "s") in one.cache.snapshot().services
            assert {"Gateway", "HTTPRoute", "EdgeProxy"} <= one.cache.missing
            assert one.cache.bundle_version == ""
            install_gateway_api(bare.admin)
            install_own(bare.admin)
            for part in parts:
                if GROUP in part:
                    bare.admin.apply(part)
            await until(lambda: (namespace, "g") in one.cache.snapshot().gateways, "joined")
            await until(lambda: not one.cache.missing, "all there")
            assert one.cache.bundle_version.startswith("v1.")
            crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

            # The kind moves to another version: the same objects, followed on.
            route = one.cache.snapshot().http_routes[namespace, "r"]
            changes = one.changes
            routes = f"{crd}/httproutes.{GROUP}"
            versions = bare.admin.get(routes)["spec"]["versions"]
            for version in versions:
                version["served"] = version["name"] != "v1"
            bare.admin.patch(routes, {"spec": {"versions": versions}})
            await until(lambda: one.cache.served["HTTPRoute"].version == "v1beta1", "moved")
            await until(lambda: not one.cache.waiting, "listed")
            assert one.cache.snapshot().http_routes[namespace, "r"] is route
            assert one.changes == changes
            path = f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/httproutes/r"
            bare.admin.patch(path, {"spec": {"hostnames": ["new.example.com"]}})
            await until(lambda: one.changes > changes, "followed")

            bare.admin.delete(f"{crd}/gateways.{GROUP}")
            await until(lambda: "Gateway" in one.cache.missing, "gone")
            assert not one.cache.snapshot().gateways and one.cache.synced
            assert (namespace, "r") in one.cache.snapshot().http_routes

    run(test())
