"""Cache against a real API server: namespaces, permissions, outages and kinds that come and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.kube_cached import GROUP, WORLD, following
from cluster.world.apiserver import ApiServer
from cluster.world.crds import install_gateway_api, install_own
from controller.kube.discovery import OPTIONAL
from controller.kube.references import referenced
from controller.kube.scope import Scope
from edgefast.api.model.meta import LabelSelector
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from tests.controller.waiting import until


async def test_listed_namespaces_alone_and_others_later(apiserver: ApiServer) -> None:
    own, listed, other, later = (apiserver.namespace("cache") for _ in range(4))
    for namespace in (own, listed, other, later):
        apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))
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
            lambda: {namespace for namespace, _ in one.cache.snapshot().gateways} == {own, later},
            "left",
        )
        assert {namespace for namespace, _ in one.cache.snapshot().services} == {own, later}


async def test_labels_decide_while_running(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("cache")
    apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))
    path = f"/api/v1/namespaces/{namespace}"
    async with following(apiserver, namespace) as one:
        await one.cache.wait_synced()
        settings = Settings(
            standalone=False,
            namespace=namespace,
            controller_name=f"gateway.edge.io/{namespace}",
            watch_selector=LabelSelector(match_labels={"tenant": namespace}),
        )

        def served() -> bool:
            return (namespace, "g") in translate(one.cache.snapshot(), settings).statuses.gateways

        assert not served() and not referenced(one.cache.snapshot(), settings)
        apiserver.admin.patch(path, {"metadata": {"labels": {"tenant": namespace}}})
        await until(served, "label added")
        assert referenced(one.cache.snapshot(), settings) == {("Secret", namespace, "used")}
        apiserver.admin.patch(path, {"metadata": {"labels": {"tenant": None}}})
        await until(lambda: not served(), "label removed")


RULES: dict[str, list[str]] = {
    GROUP: [
        "gatewayclasses", "gateways", "grpcroutes", "httproutes", "listenersets", "referencegrants",
        "backendtlspolicies", "tcproutes", "tlsroutes", "udproutes",
    ],
    "gateway.networking.x-k8s.io": ["xbackendtrafficpolicies"],
    "gateway.edge.io": [
        "edgeproxies", "ratelimitfilters", "backends", "securitypolicies", "backendtrafficpolicies",
        "httproutefilters",
    ],
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


async def test_one_kind_without_permission_holds_everything_back(apiserver: ApiServer) -> None:
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


async def test_an_outage_changes_nothing(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("cache")
    apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))
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


@pytest.fixture
def bare() -> Iterator[ApiServer]:
    """An API server of its own, without any CRD."""
    server = ApiServer()
    try:
        server.start(crds=False)
        yield server
    finally:
        server.stop()


async def test_kinds_join_when_their_crds_come_and_leave_with_them(bare: ApiServer) -> None:
    namespace = bare.namespace("cache")
    parts = WORLD.replace("NAMESPACE", namespace).split("---")
    for part in parts:
        if GROUP not in part:
            bare.admin.apply(part)
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
        await until(lambda: one.cache.missing <= OPTIONAL and not one.cache.waiting, "all there")
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
        # Its object stays in force: the server deleted it with its kind.
        assert (namespace, "g") in one.cache.snapshot().gateways and one.cache.synced
        assert one.cache.retained["Gateway"] >= 1
        one.cache.release(["Gateway"])
        assert not one.cache.snapshot().gateways and not one.cache.retained
        assert (namespace, "r") in one.cache.snapshot().http_routes
