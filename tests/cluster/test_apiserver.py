"""The `apiserver` fixture: what other tests rely on is so."""

from __future__ import annotations

import signal

import pytest

from cluster.world.api import Api, ApiError, Server
from cluster.world.apiserver import ApiServer
from cluster.world.waiting import wait_until
from tests.support.manifest import manifest

GATEWAY = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: one, namespace: NAMESPACE}
spec:
  gatewayClassName: edge
  listeners:
  - {name: http, protocol: HTTP, port: 80}
"""
PROXY = """
apiVersion: gateway.edge.io/v1alpha1
kind: EdgeProxy
metadata: {name: one, namespace: NAMESPACE}
spec: {mergeGateways: true}
"""


def test_gateway_api_and_own_kinds_are_served(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace()
    made = apiserver.admin.apply(
        GATEWAY.replace("NAMESPACE", namespace), PROXY.replace("NAMESPACE", namespace)
    )
    assert [one["kind"] for one in made] == ["Gateway", "EdgeProxy"]


def test_an_account_may_do_nothing_until_a_role_is_bound(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace()
    user = apiserver.accounts.api_for(f"{namespace}/reader")
    path = f"/api/v1/namespaces/{namespace}/secrets"
    with pytest.raises(ApiError) as refused:
        user.get(path)
    assert refused.value.status == 403
    meta = {"name": "read", "namespace": namespace}
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    role = {"kind": "Role", "name": "read", "apiGroup": group}
    version = f"{group}/v1"
    apiserver.admin.apply(
        {"apiVersion": version, "kind": "Role", "metadata": meta, "rules": [rule]},
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": role,
            "subjects": [subject],
        },
    )
    # The authorizer learns of bindings through a watch of its own.
    wait_until(lambda: _may_list(user, path))


def _may_list(user: Api, path: str) -> bool:
    try:
        user.items(path)
    except ApiError as error:
        assert error.status == 403
        return False
    return True


def test_nobody_is_refused(apiserver: ApiServer) -> None:
    server = apiserver.plane.server
    with pytest.raises(ApiError) as refused:
        Api(Server(server.host, server.port, server.ca)).get("/readyz")
    assert refused.value.status == 401


def test_a_token_is_good_for_its_audience_alone(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace()
    token = apiserver.accounts.token(namespace, "proxy", audiences=["ours"])
    seen = {}
    for audience in ("ours", "theirs"):
        review = apiserver.admin.create(
            manifest(
                "TokenReview x",
                {"token": token, "audiences": [audience]},
                api="authentication.k8s.io/v1",
            )
        )
        seen[audience] = bool(review["status"].get("authenticated"))
    assert seen == {"ours": True, "theirs": False}


def test_what_was_written_is_there_after_a_crash(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace()
    apiserver.plane.stop_apiserver(signal.SIGKILL)
    with pytest.raises(OSError):
        apiserver.admin.get("/readyz")
    apiserver.plane.start_apiserver()
    assert apiserver.admin.get(f"/api/v1/namespaces/{namespace}")["metadata"]["name"] == namespace
