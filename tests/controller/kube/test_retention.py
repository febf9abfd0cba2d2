"""Objects of removed kinds stay in force; deleted objects of other kinds do not. A scripted API server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from controller.kube.apis import Api
from controller.kube.cache import Cache
from controller.kube.retention import Retention
from controller.kube.scope import Scope
from controller.kube.store import Name, Source
from controller.kube.throttle import RequestRate
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.reference import GATEWAY_GROUP
from tests.controller.waiting import running, until

from .script import event, failure, page, scripted, stream

POLICIES = Api(EDGE_GROUP, "v1alpha1", "SecurityPolicy", "securitypolicies")
ROUTES = Api(GATEWAY_GROUP, "v1", "HTTPRoute", "httproutes")
GATEWAYS = Api(GATEWAY_GROUP, "v1", "Gateway", "gateways")
SERVICES = Api("", "v1", "Service", "services")
CREATED = "2026-03-01T00:00:00Z"
OLDER, YOUNGER = "2026-02-28T23:59:59Z", "2026-03-01T00:00:00Z"
SOURCE = Source(released=True)


def policy(name: str = "a") -> Name:
    return ("SecurityPolicy", "ns", name)


class Cluster:
    """The CRD in the API server, and the decisions about objects."""

    def __init__(self) -> None:
        self.crd: dict[str, str] | int = {"creationTimestamp": CREATED}  # metadata, or a status
        self.verbs: list[str] | None = ["create", "delete"]
        self.routes_status = 200  # of the answer for the CRD of HTTPRoute
        self.looks = 0
        self.deleted: list[str] = []
        self.retention: Retention

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("s.gateway.networking.k8s.io"):
            if self.routes_status != 200 and "/httproutes." in request.path:
                return failure(self.routes_status, "No")
            return web.json_response({"metadata": {"creationTimestamp": CREATED}})
        if "customresourcedefinitions" in request.path:
            assert request.path.endswith("/securitypolicies.gateway.edge.io")
            self.looks += 1
            if isinstance(self.crd, int):
                return failure(self.crd, "No")
            return web.json_response({"metadata": self.crd})
        if self.verbs is None:
            return failure(404, "NotFound")
        return web.json_response({"resources": [{"name": POLICIES.plural, "verbs": self.verbs}]})

    def ask(self, name: Name, created: str = YOUNGER) -> None:
        self.retention.ask(POLICIES, SOURCE, name, created)

    @property
    def held(self) -> dict[str, int]:
        return dict(self.retention.held)


@pytest.fixture
@contextlib.asynccontextmanager
async def one() -> AsyncIterator[Cluster]:
    one = Cluster()
    async with scripted(one.serve) as kube:
        pace = RequestRate(backoff_first=0.01, backoff_most=0.02)
        one.retention = Retention(kube, lambda _, name: one.deleted.append(name[2]), pace=pace)
        async with running(one.retention.run()):
            yield one


@pytest.mark.parametrize(
    ("crd", "verbs", "created", "stays"),
    [
        ({"creationTimestamp": CREATED}, [], YOUNGER, False),
        ({"creationTimestamp": CREATED}, [], "", False),
        ({"creationTimestamp": CREATED, "deletionTimestamp": CREATED}, [], YOUNGER, True),
        ({"creationTimestamp": CREATED}, [], OLDER, True),  # deleted, and made again since
        (404, [], YOUNGER, True),
        (403, ["create", "delete"], YOUNGER, False),
        (403, ["delete", "get"], YOUNGER, True),
        (403, None, YOUNGER, True),
    ],
)
async def test_the_crd_decides(
    one: Cluster, crd: dict[str, str] | int, verbs: list[str] | None, created: str, stays: bool
) -> None:
    one.crd, one.verbs = crd, verbs
    one.ask(policy(), created)
    assert not one.deleted and not one.held  # in force until it is known
    await until(lambda: one.deleted or one.held)
    assert (one.deleted, one.held) == (([], {"SecurityPolicy": 1}) if stays else (["a"], {}))


async def test_without_an_answer_an_object_stays(one: Cluster) -> None:
    one.crd = 500
    one.ask(policy("a"))
    one.ask(policy("b"))
    await until(lambda: one.looks > 3, "tried again")
    assert not one.deleted and "securitypolicies" in one.retention.problem
    one.retention.forget(policy("b"))  # it was created again meanwhile
    one.crd = {"creationTimestamp": CREATED}
    await until(lambda: one.deleted, "deleted")
    await until(lambda: not one.retention.problem)
    assert one.deleted == ["a"] and not one.held


async def test_a_deletion_waits_for_the_undecided_ones_before_it(one: Cluster) -> None:
    """A policy that is dropped before its route would open the route."""
    one.routes_status = 500
    one.ask(policy("first"))
    one.retention.ask(ROUTES, SOURCE, ("HTTPRoute", "ns", "r"), YOUNGER)
    one.ask(policy("p"))
    await until(lambda: one.looks > 3, "tried again")
    assert one.deleted == ["first"] and "httproutes" in one.retention.problem
    one.retention.release(["SecurityPolicy"])  # waits as well
    one.ask(policy("q"))
    assert one.deleted == ["first"]
    one.routes_status = 200
    await until(lambda: len(one.deleted) == 4, "deleted")
    assert one.deleted == ["first", "r", "p", "q"]


@pytest.mark.parametrize(("failing", "waits"), [("routes", ["r", "q"]), ("policies", ["p", "q"])])
async def test_a_crd_that_cannot_be_read_holds_no_unrelated_deletions(
    one: Cluster, failing: str, waits: list[str]
) -> None:
    one.routes_status = 500 if failing == "routes" else 200
    one.crd = 500 if failing == "policies" else {"creationTimestamp": CREATED}
    one.ask(policy("p"))
    one.retention.ask(ROUTES, SOURCE, ("HTTPRoute", "ns", "r"), YOUNGER)
    one.ask(policy("q"))
    one.retention.ask(GATEWAYS, SOURCE, ("Gateway", "ns", "g"), YOUNGER)
    await until(lambda: len(one.deleted) == 2, "deleted")
    await until(lambda: one.looks > 3, "tried again")
    assert one.deleted == [name for name in "prqg" if name not in waits]
    assert one.retention.problem
    one.routes_status, one.crd = 200, {"creationTimestamp": CREATED}
    await until(lambda: len(one.deleted) == 4, "deleted")
    assert one.deleted[2:] == waits


async def test_a_removed_kind_with_many_objects_does_not_block_the_loop(one: Cluster) -> None:
    changes: list[int] = []
    one.retention._on_change = lambda: changes.append(one.retention.held["SecurityPolicy"])
    names = [policy(str(number)) for number in range(10_000)]
    began = time.process_time()
    one.retention.lose(SOURCE, names)
    one.retention.lose(SOURCE, names)
    for name in names[1:]:
        one.retention.forget(name)
    assert time.process_time() - began < 1.0  # 6 seconds with a count of all for each
    assert one.held == {"SecurityPolicy": 1}
    one.retention.forget(names[0])
    assert not one.held
    assert max(changes) == 10_000


async def test_what_is_held_leaves_by_name_only(one: Cluster) -> None:
    names = [policy(name) for name in "abcd"]
    one.retention.lose(SOURCE, names)
    assert one.held == {"SecurityPolicy": 4} and not one.deleted
    one.retention.forget(names[0])  # installed again ...
    one.ask(names[0])  # ... and deleted
    await until(lambda: one.deleted == ["a"])
    one.retention.drop("SecurityPolicy", "other")
    one.retention.release(["BackendTrafficPolicy"])
    assert one.held == {"SecurityPolicy": 3}
    one.retention.release(["SecurityPolicy"])
    assert not one.held and one.deleted == ["a", "b", "c", "d"]
    one.retention.lose(SOURCE, [policy("e")])  # from now on none is held
    one.ask(policy("f"))
    assert not one.held and one.deleted[4:] == ["e", "f"]


async def test_kinds_of_kubernetes_itself_cost_no_question(one: Cluster) -> None:
    one.retention.ask(SERVICES, SOURCE, ("Service", "ns", "web"), "")
    assert one.deleted == ["web"] and not one.looks


class Lone:
    """An API server with one kind that comes with a CRD, and one object of it."""

    def __init__(self) -> None:
        self.object = {
            "apiVersion": f"{EDGE_GROUP}/v1alpha1",
            "kind": "SecurityPolicy",
            "metadata": {
                "name": "a",
                "namespace": "ns",
                "resourceVersion": "1",
                "uid": "u",
                "creationTimestamp": YOUNGER,
            },
            "spec": {
                "targetRefs": [
                    {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "r"}
                ]
            },
        }
        self.crd: dict[str, str] | None = {"creationTimestamp": CREATED}
        self.removed = asyncio.Event()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        if request.path == "/readyz":
            return web.Response(text="ok")
        if "customresourcedefinitions" in parts:
            if parts[-1] != "securitypolicies.gateway.edge.io" or self.crd is None:
                return failure(404, "NotFound")
            return web.json_response({"metadata": self.crd})
        if parts[:2] == ["apis", EDGE_GROUP] and self.crd is not None:
            if len(parts) == 2:
                return web.json_response({"versions": [{"version": "v1alpha1"}]})
            if len(parts) == 3:
                return web.json_response({"resources": [{"name": POLICIES.plural}]})
            if "watch" not in request.query:
                return page(1, self.object)
            await self.removed.wait()
            return await stream(request, event("DELETED", self.object))
        if parts[0] == "apis" and parts[1] != "discovery.k8s.io":
            return failure(404, "NotFound")
        return await stream(request) if "watch" in request.query else page(1)


@pytest.mark.parametrize("by_its_own", [False, True])
async def test_a_policy_stays_in_the_snapshot_when_its_crd_is_deleted(by_its_own: bool) -> None:
    server, key = Lone(), ("ns", "a")
    quick = RequestRate(
        absent_after=0.01, gone_after=0.01, discover_missing=0.02, discover=0.05, silence=5.0
    )
    async with scripted(server.serve) as kube:
        cache = Cache(kube, Scope("system"), pace=quick)
        async with running(cache.run()):
            await cache.wait_synced()
            policy = cache.snapshot().security_policies[key]
            assert server.crd is not None
            if by_its_own:
                server.removed.set()
                await until(lambda: not cache.snapshot().security_policies, "deleted")
                assert not cache.retained
                return
            # As an API server does it: the CRD is marked, its objects are deleted, then the kind is gone.
            server.crd = {**server.crd, "deletionTimestamp": CREATED}
            server.removed.set()
            await until(lambda: cache.retained == {"SecurityPolicy": 1}, "held")
            server.crd = None
            await until(lambda: "SecurityPolicy" in cache.missing, "missing")
            assert cache.snapshot().security_policies[key] is policy
            cache.release(["SecurityPolicy"])
            assert not cache.snapshot().security_policies and not cache.retained
