"""Rate limits in a cluster: configuration in the ConfigMap, a real redis behind a password, two proxies, exact counts."""

from __future__ import annotations

import base64
import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.installed import (
    PROXIES,
    Installed,
    applications,
    edge_proxy,
    fleet_of,
    gateway,
    installed,
    release_of,
    route,
)
from cluster.world.manifests import pod
from cluster.world.waiting import wait_until
from cluster.world.world import World
from tests.support.manifest import manifest

PASSWORD = "k3y-of-the-store"
LIMIT = 7


@pytest.fixture(scope="module", params=["ControllerNamespace", "GatewayNamespace"])
def release(world: World, request: pytest.FixtureRequest) -> Iterator[Installed]:
    """A release with a store in a namespace of its own, and the store's password beside the controller."""
    store, system = world.namespace_for_pods("store"), world.namespace("edge")
    redis = {
        "image": "redis:7",
        "args": [
            "--requirepass",
            PASSWORD,
            "--save",
            "",
            "--bind",
            "0.0.0.0",
            "--protected-mode",
            "no",
        ],
        "readinessProbe": {"tcpSocket": {"port": 6379}, "periodSeconds": 1},
    }
    world.admin.apply(
        pod(store, "redis", redis),
        manifest(
            f"Service {store}/redis", {"selector": {"app": "redis"}, "ports": [{"port": 6379}]}
        ),
        manifest(f"Secret {system}/store", stringData={"password": PASSWORD}),
    )
    backend = {
        "type": "Redis",
        "redis": {"url": f"redis.{store}.svc.cluster.local:6379", "passwordRef": {"name": "store"}},
    }
    config = {
        # The machine of the tests is slow at times, and a request that the store did not count would pass.
        "rateLimit": {"backend": backend, "timeout": "5s", "failClosed": True},
        "provider": {"orchestrator": {"deploy": {"type": request.param}}},
        "gateway": {"controllerName": f"gateway.edge.io/{system}"},
    }
    with installed(world, config, release=release_of(system)) as made:
        world.workloads.wait_pod(store, "redis")
        made.admin.apply(
            edge_proxy(system, "edge", deployment={"replicas": 2}, rateLimit={"headers": True}),
            made.gateway_class(system, (system, "edge")),
        )
        yield made
    world.admin.delete(f"/api/v1/namespaces/{store}")


@pytest.fixture
def namespace(world: World) -> Iterator[str]:
    """A namespace with a backend."""
    with applications(world, "app") as (made,):
        yield made


def _filter(namespace: str, name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    limit = {"limit": {"requests": LIMIT, "unit": "Hour"}}
    return manifest(
        f"RateLimitFilter {namespace}/{name}",
        {"type": "Global", "global": {"rules": [{**limit, **one} for one in rules]}},
    )


def _limited(namespace: str, name: str) -> dict[str, Any]:
    """Return a route, in the old version of the kind, with the filter of the same name."""
    reference = {"group": "gateway.edge.io", "kind": "RateLimitFilter", "name": name}
    return route(
        namespace,
        name,
        "eg",
        [f"{name}.example"],
        version="v1beta1",
        filters=[{"type": "ExtensionRef", "extensionRef": reference}],
    )


def test_counts_are_exact_over_two_proxies(release: Installed, namespace: str) -> None:
    """N pass and all others are 429, whichever proxy is asked; one counter per value with Distinct."""
    world, system = release.world, release.namespace
    header = {"name": "x-user", "type": "Exact", "value": "one"}
    distinct = {"name": "x-user", "type": "Distinct"}
    release.admin.apply(
        gateway(namespace, "eg", system),
        route(namespace, "free", "eg", ["free.example"]),
        _filter(namespace, "all", {}),
        _filter(namespace, "exact", {"clientSelectors": [{"headers": [header]}]}),
        _filter(namespace, "distinct", {"clientSelectors": [{"headers": [distinct]}]}),
        *(_limited(namespace, name) for name in ("all", "exact", "distinct")),
    )
    address = release.address(namespace, "eg")
    for name in ("free", "all", "exact", "distinct"):
        release.wait_route(namespace, name)
    gateways = release.config["provider"]["orchestrator"]["deploy"]["type"] == "GatewayNamespace"
    where = namespace if gateways else system
    fleet = fleet_of(f"{namespace}/eg")
    world.workloads.wait_rollout(where, fleet)
    path = f"/apis/gateway.networking.k8s.io/v1/namespaces/{namespace}/gateways/eg"
    both = "2/2 proxies"
    release.admin.wait(
        path, lambda one: any(both in has["message"] for has in one["status"]["conditions"])
    )
    pods = world.workloads.pods(where, PROXIES)

    def served() -> list[int]:
        release.wait_status(address, "free.example")
        return [_served(release, where, one["metadata"]["name"]) for one in pods]

    # A ready proxy gets connections a moment later.
    wait_until(lambda: all(served()))
    before = served()
    _keep_clear_of_the_hour()

    # Whichever of the two gets a connection, they count together.
    assert _ask(release, address, "all", LIMIT + 5) == {200: LIMIT, 429: 5}
    answer = release.ask(address, "all.example")
    assert answer.status == 429
    assert answer.headers["x-edge-ratelimited"] == "true"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert answer.body == b""
    assert "x-edge-upstream-service-time" not in answer.headers
    assert answer.headers["ratelimit-remaining"] == "0"

    assert _ask(release, address, "exact", LIMIT + 4, user="one") == {200: LIMIT, 429: 4}
    assert _ask(release, address, "exact", 4, user="two") == {200: 4}
    assert _ask(release, address, "exact", 4) == {200: 4}
    for user in ("one", "two"):
        assert _ask(release, address, "distinct", LIMIT + 2, user=user) == {200: LIMIT, 429: 2}
    assert _ask(release, address, "distinct", LIMIT + 2) == {200: LIMIT + 2}, "no header, no count"
    assert _ask(release, address, "free", LIMIT + 5) == {200: LIMIT + 5}

    after = served()
    more = [now - then for now, then in zip(after, before, strict=True)]
    assert len(more) == 2 and all(one > 1 for one in more), f"both proxies were asked: {more}"

    _has_no_secret(release, namespace)
    _is_not_shown(release, where, [one["metadata"]["name"] for one in pods])


def _ask(release: Installed, address: str, name: str, count: int, user: str = "") -> dict[int, int]:
    headers = {"x-user": user} if user else {}
    return Counter(
        release.ask(address, f"{name}.example", headers=headers).status for _ in range(count)
    )


def _keep_clear_of_the_hour() -> None:
    """Windows are hours of the clock: do not begin in the last minute of one."""
    left = 3600 - time.time() % 3600
    if left < 60:
        time.sleep(left)


def _served(release: Installed, namespace: str, name: str) -> int:
    """Return how many connections a proxy has taken from clients."""
    done = release.world.workloads.execute(
        namespace, name, "edge", ["curl", "-s", "http://127.0.0.1:19001/metrics"]
    )
    lines = [one for one in done.stdout.splitlines() if one.startswith("edgefast_requests_total")]
    return int(sum(float(one.rpartition(" ")[2]) for one in lines))


def _has_no_secret(release: Installed, namespace: str) -> None:
    """No object in the Gateway's namespace holds the password, or where the store is."""
    secret = (PASSWORD, base64.b64encode(PASSWORD.encode()).decode())
    for path in (
        "/api/v1/namespaces/{}/secrets",
        "/api/v1/namespaces/{}/configmaps",
        "/api/v1/namespaces/{}/pods",
        "/api/v1/namespaces/{}/events",
        "/apis/apps/v1/namespaces/{}/deployments",
        "/apis/apps/v1/namespaces/{}/replicasets",
        "/apis/gateway.edge.io/v1alpha1/namespaces/{}/ratelimitfilters",
        "/apis/gateway.networking.k8s.io/v1/namespaces/{}/gateways",
        "/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes",
    ):
        text = json.dumps(release.admin.get(path.format(namespace)))
        assert not [one for one in secret if one in text], path
        assert "redis." not in text, path


def _is_not_shown(release: Installed, namespace: str, pods: list[str]) -> None:
    """Nobody prints the password: no log, no dump."""
    workloads = release.world.workloads
    texts = [release.controller_log()]
    for name in pods:
        texts.append(workloads.logs(namespace, name, "edge"))
        dump = ["curl", "-s", "http://127.0.0.1:19000/dump"]
        texts.append(workloads.execute(namespace, name, "edge", dump).stdout)
    assert all(texts)
    assert not [one for one in texts if PASSWORD in one]
