"""Kube against a real API server: verbs, typed errors, pages, tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.world.apiserver import ApiServer
from controller.kube.apis import APIS, api_of
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from tests.support.manifest import manifest

CONFIG_MAPS = APIS["v1", "ConfigMap"]


def config_map(namespace: str, name: str, **data: str) -> dict[str, Any]:
    return manifest(f"ConfigMap {namespace}/{name}", data=data)


async def test_an_object_lives_through_every_verb(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("client")
    async with await Kube.open(apiserver.kubeconfig) as kube:
        made = await kube.create(config_map(namespace, "a", x="1"))
        path = CONFIG_MAPS.path_of(made)
        with pytest.raises(ApiError) as taken:
            await kube.create(config_map(namespace, "a"))
        assert taken.value.exists and not taken.value.conflict

        patched = await kube.patch(path, {"data": {"y": "2"}})
        assert patched["data"] == {"x": "1", "y": "2"}
        with pytest.raises(ApiError) as late:
            await kube.replace({**made, "data": {}})
        assert late.value.conflict and late.value.status == 409
        assert (await kube.replace({**patched, "data": {"z": "3"}}))["data"] == {"z": "3"}

        await kube.apply(config_map(namespace, "a", mine="1"), "someone")
        with pytest.raises(ApiError) as owned:
            await kube.apply(config_map(namespace, "a", mine="2"), "other")
        assert owned.value.conflict
        applied = await kube.apply(config_map(namespace, "a", mine="2"), "other", force=True)
        assert applied["data"] == {"z": "3", "mine": "2"}
        dry = await kube.apply(config_map(namespace, "b"), "other", dry_run=True)
        assert dry["metadata"]["name"] == "b"
        assert await kube.read_metadata(CONFIG_MAPS.path(namespace, "b")) is None

        meta = await kube.read_metadata(path)
        assert meta is not None and "data" not in meta
        assert json.loads(await kube.read(path))["data"] == applied["data"]
        with pytest.raises(ApiError) as other:
            await kube.delete(path, uid="00000000-0000-0000-0000-000000000000")
        assert other.value.status == 409
        assert await kube.delete(path, uid=made["metadata"]["uid"])
        assert not await kube.delete(path)
        with pytest.raises(ApiError) as gone:
            await kube.get(path)
        assert gone.value.not_found and gone.value.reason == "NotFound"


async def test_a_status_is_written_apart(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("client")
    [gateway] = apiserver.admin.apply(
        manifest(
            f"Gateway {namespace}/g",
            {"gatewayClassName": "x", "listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}]},
        )
    )
    condition = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    async with await Kube.open(apiserver.kubeconfig) as kube:
        gateway["status"] = {"conditions": [condition]}
        gateway["spec"]["gatewayClassName"] = "not looked at"
        written = await kube.replace_status(gateway)
        assert written["status"]["conditions"] == [condition]
        assert written["spec"]["gatewayClassName"] == "x"
        path = api_of(gateway["apiVersion"], "Gateway").path_of(gateway, "status")
        version = written["metadata"]["resourceVersion"]
        body = {"metadata": {"resourceVersion": version}, "status": {"conditions": []}}
        await kube.patch(path, body)
        with pytest.raises(ApiError) as late:
            await kube.patch(path, body)
        assert late.value.conflict


async def test_lists_come_in_pages(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("client")
    for at in range(5):
        apiserver.admin.create(config_map(namespace, f"m{at}", text="x" * 50))
    async with await Kube.open(apiserver.kubeconfig) as kube:
        first = await kube.list(CONFIG_MAPS, namespace, limit=2, metadata_only=True)
        assert first.items is not None and len(first.items) == 2 and first.cursor
        assert "data" not in json.loads(bytes(first.items[0]))
        rest = await kube.list(CONFIG_MAPS, namespace, limit=9, cursor=first.cursor)
        assert rest.items is not None and len(rest.items) == 3 and not rest.cursor
        found = await kube.list_all(CONFIG_MAPS, namespace)
        assert [one["metadata"]["name"] for one in found] == [f"m{at}" for at in range(5)]


async def test_a_version_that_is_too_old_is_told(apiserver: ApiServer) -> None:
    # A new process knows nothing of versions before its start.
    apiserver.plane.stop_apiserver()
    apiserver.plane.start_apiserver()
    async with await Kube.open(apiserver.kubeconfig) as kube:
        lines: list[bytes] = []
        async for batch in kube.watch(
            APIS["v1", "Namespace"], resource_version="1", seconds=20, silence=20
        ):
            lines += batch
        assert [json.loads(one)["object"]["code"] for one in lines] == [410]


async def test_what_is_not_allowed_says_so(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("client")
    async with await Kube.open(apiserver.kubeconfig_for(f"{namespace}/nobody")) as kube:
        with pytest.raises(ApiError) as refused:
            await kube.list(CONFIG_MAPS, namespace)
        assert refused.value.forbidden and refused.value.reason == "Forbidden"
        assert "nobody" in refused.value.message


async def test_tokens_are_reviewed(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("client")
    token = apiserver.accounts.token(namespace, "proxy", audiences=["ours"])
    async with await Kube.open(apiserver.kubeconfig) as kube:
        said = await kube.token_review(token, ["ours"])
        assert said.authenticated and said.audiences == ("ours",)
        assert said.username == f"system:serviceaccount:{namespace}:proxy"
        assert "system:serviceaccounts" in said.groups
        other = await kube.token_review(token, ["theirs"])
        assert not other.authenticated and other.error


async def test_kinds_outside_of_the_table_are_asked_for(apiserver: ApiServer) -> None:
    async with await Kube.open(apiserver.kubeconfig) as kube:
        found = await kube.resolve("storage.k8s.io/v1", "StorageClass")
        assert (found.plural, found.namespaced) == ("storageclasses", False)
        with pytest.raises(ApiError) as unknown:
            await kube.resolve("storage.k8s.io/v1", "Nonsense")
        assert unknown.value.not_found


def test_every_row_of_the_table_is_as_the_server_says(apiserver: ApiServer) -> None:
    for (api_version, kind), api in APIS.items():
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            listed = apiserver.admin.get(root)["resources"]
        except Exception as error:  # a version that this server does not serve
            assert getattr(error, "status", 0) == 404
            continue
        found = [
            (one["name"], one["namespaced"])
            for one in listed
            if one["kind"] == kind and "/" not in one["name"]
        ]
        assert not found or found == [(api.plural, api.namespaced)]
