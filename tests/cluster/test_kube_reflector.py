"""Reflector against a real API server: pages, every way in which a watch ends, outages, missing permissions."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from cluster.cable import Cable, laid
from cluster.world.apiserver import ApiServer
from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.reflector import Item, Reflector, Target
from controller.kube.throttle import RequestRate
from tests.controller.waiting import running, until
from tests.support.manifest import manifest

CONFIG_MAPS = APIS["v1", "ConfigMap"]
QUICK = RequestRate(page=2, silence=1.0, backoff_first=0.02, backoff_most=0.2)


class Picture:
    """What a reflector says there is, and how often it said so."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.puts: Counter[str] = Counter()
        self.deletes: Counter[str] = Counter()
        self.at_sync: set[str] | None = None

    def put(self, item: Item) -> None:
        self.objects[item.name] = json.loads(bytes(item.raw))
        self.puts[item.name] += 1

    def delete(self, namespace: str, name: str) -> None:
        del self.objects[name]
        self.deletes[name] += 1

    def synced(self) -> None:
        assert self.at_sync is None
        self.at_sync = set(self.objects)

    def reflect(self, kube: Kube, target: Target, pace: RequestRate = QUICK) -> Reflector:
        return Reflector(kube, target, self.put, self.delete, self.synced, pace=pace)


@contextlib.asynccontextmanager
async def through_cable(server: ApiServer) -> AsyncIterator[tuple[Cable, Kube]]:
    at = server.plane.server
    async with laid(at.host, at.port) as cable:
        async with await Kube.open(cable.kubeconfig(server.kubeconfig)) as kube:
            yield cable, kube


def put(server: ApiServer, namespace: str, *names: str, text: str = "") -> None:
    for name in names:
        server.admin.apply(
            manifest(f"ConfigMap {namespace}/{name}", labels={"l": name}, data={"text": text})
        )


def remove(server: ApiServer, namespace: str, name: str) -> None:
    server.admin.delete(CONFIG_MAPS.path(namespace, name))


async def test_the_picture_is_that_of_the_server(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("reflector")
    put(apiserver, namespace, "a", "b", "c", "d", "e")
    picture = Picture()
    async with await Kube.open(apiserver.kubeconfig) as kube:
        reflector = picture.reflect(kube, Target(CONFIG_MAPS, namespace))
        async with running(reflector.run()):
            await until(lambda: reflector.synced, "synced")
            assert picture.at_sync == {"a", "b", "c", "d", "e"}
            put(apiserver, namespace, "b", text="new")
            put(apiserver, namespace, "f")
            remove(apiserver, namespace, "c")
            await until(lambda: picture.deletes["c"] and picture.puts["f"], "events")
            assert picture.objects["b"]["data"] == {"text": "new"}
            assert picture.objects.keys() == {"a", "b", "d", "e", "f"}
            assert picture.puts == Counter({"a": 1, "b": 2, "c": 1, "d": 1, "e": 1, "f": 1})
            assert {name for _, name in reflector.known} == picture.objects.keys()


async def test_selectors_and_metadata_alone(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("reflector")
    put(apiserver, namespace, "a", "b")
    picture = Picture()
    async with await Kube.open(apiserver.kubeconfig) as kube:
        target = Target(CONFIG_MAPS, namespace, label_selector="l!=b", metadata_only=True)
        reflector = picture.reflect(kube, target)
        async with running(reflector.run()):
            await until(lambda: reflector.synced, "synced")
            put(apiserver, namespace, "c")
            await until(lambda: "c" in picture.objects, "event")
            assert picture.objects.keys() == {"a", "c"}
            for one in picture.objects.values():
                assert one["kind"] == "PartialObjectMetadata" and "data" not in one


async def test_a_reset_watch_goes_on_where_it_was(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("reflector")
    put(apiserver, namespace, "a", "b")
    picture = Picture()
    async with through_cable(apiserver) as (cable, kube):
        reflector = picture.reflect(kube, Target(CONFIG_MAPS, namespace))
        async with running(reflector.run()):
            await until(lambda: reflector.synced, "synced")
            cable.cut()
            put(apiserver, namespace, "c")
            remove(apiserver, namespace, "a")
            await until(lambda: reflector.restarts["unreachable"], "noticed")
            await until(lambda: reflector.problem, "said")
            assert reflector.synced and picture.objects.keys() == {"a", "b"}
            cable.mend()
            await until(lambda: picture.objects.keys() == {"b", "c"}, "caught up")
            assert picture.puts == Counter({"a": 1, "b": 1, "c": 1})
            assert not reflector.problem and not reflector.restarts["expired"]


ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: read, namespace: NAMESPACE}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: read, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: read}
subjects: [{kind: ServiceAccount, name: reader, namespace: NAMESPACE}]
"""


async def test_without_permission_nothing_is_synced(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("reflector")
    put(apiserver, namespace, "a")
    picture = Picture()
    async with await Kube.open(apiserver.kubeconfig_for(f"{namespace}/reader")) as kube:
        reflector = picture.reflect(kube, Target(CONFIG_MAPS, namespace))
        async with running(reflector.run()):
            await until(lambda: reflector.restarts["forbidden"] > 3, "refused")
            assert not reflector.synced and picture.at_sync is None
            assert "configmaps" in reflector.problem and "forbidden" in reflector.problem
            apiserver.admin.apply(ROLE.replace("NAMESPACE", namespace))
            await until(lambda: reflector.synced, "synced")
            assert picture.at_sync == {"a"} and not reflector.problem
