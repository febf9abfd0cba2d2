"""A listed namespace that does not exist holds nothing up: its permissions went with it, and nothing is in it."""

from __future__ import annotations

import secrets
from typing import Any

from cluster.kube_cached import WORLD, following
from cluster.world.apiserver import ApiServer
from tests.controller.waiting import until

_RBAC = "rbac.authorization.k8s.io"


def _pair(kind: str, namespace: str, account: str, groups: list[str]) -> list[dict[str, Any]]:
    """Return a role that may read all of these API groups, bound to an account."""
    name = f"{account.replace('/', '-')}-reads"
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    rule = {"apiGroups": groups, "resources": ["*"], "verbs": ["get", "list", "watch"]}
    where, who = account.split("/")
    subject = {"kind": "ServiceAccount", "namespace": where, "name": who}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": meta, "rules": [rule]},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{kind}Binding",
            "metadata": meta,
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
            "subjects": [subject],
        },
    ]


async def test_a_namespace_that_is_listed_and_not_there(apiserver: ApiServer) -> None:
    own, other = apiserver.namespace("own"), f"later-{secrets.token_hex(4)}"
    account = f"{own}/reader"
    groups = ["", "discovery.k8s.io", "gateway.networking.k8s.io", "gateway.networking.x-k8s.io"]
    groups.append("gateway.edge.io")
    cluster = _pair("ClusterRole", "", account, ["gateway.networking.k8s.io"])
    cluster[0]["rules"] = [
        {
            "apiGroups": ["", "gateway.networking.k8s.io", "apiextensions.k8s.io"],
            "resources": ["namespaces", "gatewayclasses", "customresourcedefinitions"],
            "verbs": ["get", "list", "watch"],
        }
    ]
    apiserver.admin.apply(*cluster, *_pair("Role", own, account, groups))
    async with following(apiserver, own, own, other, account=account) as one:
        await one.cache.wait_synced()
        assert not one.cache.is_absent(own)
        assert one.cache.is_absent(other)
        await until(lambda: not one.cache.problems, "what cannot be read is not asked for")

        apiserver.admin.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
        )
        apiserver.admin.apply(
            *_pair("Role", other, account, groups), WORLD.replace("NAMESPACE", other)
        )
        await until(lambda: (other, "g") in one.cache.snapshot().gateways, "joined")
        assert not one.cache.is_absent(other)
