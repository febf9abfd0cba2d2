"""Cache against a real API server: namespaces, permissions, outages and kinds that come and go."""

from __future__ import annotations

from typing import Any

from cluster.kube_cached import GROUP, WORLD, following
from cluster.world.apiserver import ApiServer
from tests.controller.waiting import until

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
