"""Deployment modes of spec section 1 in one cluster: one class, several classes, merged Gateways, separate controllers.

The default release has the names of spec section 2; beside it another one with a controllerName of its own. Fleets are in the
namespace of their controller.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import partial
from typing import Any

import pytest

from cluster.installed import (
    EDGE,
    GATEWAY,
    PROXIES,
    Installed,
    applications,
    backend_of,
    condition,
    edge_proxy,
    fleet_of,
    gateway,
    installed,
    is_programmed,
    listener,
    route,
)
from cluster.world.waiting import wait_until
from cluster.world.world import World
from controller.manifests.naming import Release

pytestmark = pytest.mark.timeout(180)

CONFLICT = "port, protocol and hostname must be unique for every listener"


@pytest.fixture(scope="module")
def default(world: World) -> Iterator[Installed]:
    """The default release, with the classes `eg` and `eg-two` and the merged class `merged-eg`."""
    world.admin.wait_gone("/api/v1/namespaces/edge-gateway-system", 60)
    with installed(world, release=Release()) as made:
        world.admin.apply(
            edge_proxy(made.namespace, "plain"),
            edge_proxy(made.namespace, "merged", mergeGateways=True),
            made.gateway_class("eg", (made.namespace, "plain")),
            made.gateway_class("eg-two", (made.namespace, "plain")),
            made.gateway_class("merged-eg", (made.namespace, "merged")),
        )
        yield made


@pytest.fixture(scope="module")
def apps(world: World) -> Iterator[tuple[str, ...]]:
    """Two namespaces with a backend in each."""
    with applications(world, "team-a", "team-b") as made:
        yield made


def test_the_default_release_has_the_names_of_the_specification(default: Installed) -> None:
    system = "edge-gateway-system"
    api = default.admin
    ports = {
        name: [
            (one["port"], one["protocol"])
            for one in api.get(f"/api/v1/namespaces/{system}/services/{name}")["spec"]["ports"]
        ]
        for name in ("edge-gateway", "edge-gateway-metrics-service")
    }
    assert ports == {
        "edge-gateway": [(18000, "TCP"), (18001, "TCP")],
        "edge-gateway-metrics-service": [(19001, "TCP")],
    }
    config = api.get(f"/api/v1/namespaces/{system}/configmaps/edge-gateway-config")
    assert list(config["data"]) == ["edge-gateway.yaml"]
    api.get(f"/api/v1/namespaces/{system}/serviceaccounts/edge-gateway")
    api.get(f"/apis/apps/v1/namespaces/{system}/deployments/edge-gateway")
    api.get(f"/apis/coordination.k8s.io/v1/namespaces/{system}/leases/edge-gateway-leader")


def test_classes_of_one_controller_have_fleets_of_their_own(
    default: Installed, apps: tuple[str, ...]
) -> None:
    """One class, and several: every Gateway has its own Deployment, Service and ServiceAccount."""
    first, second = apps
    default.admin.apply(
        gateway(first, "eg", "eg"),
        gateway(second, "eg", "eg-two"),
        route(first, "web", "eg", ["www.first.example"]),
        route(second, "web", "eg", ["www.second.example"]),
    )
    addresses = [default.address(one, "eg") for one in apps]
    assert len(set(addresses)) == 2
    for namespace, address in zip(apps, addresses, strict=True):
        fleet = fleet_of(f"{namespace}/eg")
        path = f"namespaces/{default.namespace}"
        service = default.admin.get(f"/api/v1/{path}/services/{fleet}")
        assert service["spec"]["type"] == "LoadBalancer"
        assert service["spec"]["externalTrafficPolicy"] == "Local"
        assert [one["port"] for one in service["spec"]["ports"]] == [80]
        labels = service["metadata"]["labels"]
        assert labels["gateway.edge.io/owning-gateway-name"] == "eg"
        assert labels["gateway.edge.io/owning-gateway-namespace"] == namespace
        deployment = default.admin.get(f"/apis/apps/v1/{path}/deployments/{fleet}")
        assert len(deployment["spec"]["template"]["spec"]["containers"]) == 2
        default.admin.get(f"/api/v1/{path}/serviceaccounts/{fleet}")
        # Nothing of a fleet is where users are.
        assert not default.world.workloads.pods(namespace, PROXIES)
        assert default.wait_status(
            address, "www.first.example" if namespace == first else "www.second.example"
        )
    hosts = ("www.first.example", "www.second.example")
    for mine, (namespace, address) in enumerate(zip(apps, addresses, strict=True)):
        answer = default.ask(address, hosts[mine])
        assert backend_of(answer) == namespace
        assert "x-edge-upstream-service-time" in answer.headers
        foreign = default.ask(address, hosts[1 - mine])
        assert (foreign.status, foreign.headers["content-length"], foreign.body) == (404, "0", b"")
    classes = f"/apis/{GATEWAY}/gatewayclasses"
    for name in ("eg", "eg-two", "merged-eg"):
        status = default.admin.get(f"{classes}/{name}")["status"]
        assert condition(status["conditions"], "Accepted")["status"] == "True"


def test_merged_gateways_share_one_fleet_beside_others(
    default: Installed, apps: tuple[str, ...]
) -> None:
    """One Deployment, one Service, one address for all Gateways of the class; the others keep their own."""
    first, second = apps
    default.admin.apply(
        gateway(first, "one", "merged-eg", listener(hostname="one.merged.example")),
        route(first, "one", "one"),
    )
    address = default.address(first, "one")
    default.admin.apply(
        gateway(
            second,
            "two",
            "merged-eg",
            listener(hostname="two.merged.example"),
            listener("more", 8080),
        ),
        gateway(first, "alone", "eg", listener(hostname="one.merged.example")),
        route(second, "two", "two"),
        route(first, "alone", "alone", path="/alone"),
    )
    assert default.address(second, "two") == address
    assert default.address(first, "alone") != address
    fleet = fleet_of("merged-eg")
    assert fleet == "edge-merged-eg-668ac7ae"
    selector = "gateway.edge.io/owning-gatewayclass=merged-eg"
    path = f"namespaces/{default.namespace}"
    deployments = default.admin.items(f"/apis/apps/v1/{path}/deployments", labelSelector=selector)
    (service,) = default.admin.items(f"/api/v1/{path}/services", labelSelector=selector)
    assert [one["metadata"]["name"] for one in deployments] == [fleet]
    assert service["metadata"]["name"] == fleet
    assert sorted(one["port"] for one in service["spec"]["ports"]) == [80, 8080]

    assert default.wait_status(address, "one.merged.example")
    assert backend_of(default.ask(address, "one.merged.example")) == first
    assert backend_of(default.ask(address, "two.merged.example")) == second
    assert backend_of(default.wait_status(address, "two.merged.example", port=8080)) == second
    assert default.ask(address, "one.merged.example", port=8080).status == 200, "any host there"
    assert default.ask(address, "three.merged.example").status == 404
    # The same hostname on a fleet of its own is another place.
    alone = default.address(first, "alone")
    assert default.wait_status(alone, "one.merged.example", path="/alone/x")
    assert default.ask(alone, "one.merged.example").status == 404


def test_a_tuple_that_two_merged_gateways_want_is_the_older_ones(
    default: Installed, apps: tuple[str, ...]
) -> None:
    """The loser is Conflicted and not programmed; it takes over when the winner goes."""
    first, second = apps
    default.admin.apply(
        gateway(second, "older", "merged-eg", listener(hostname="same.example")),
        route(second, "older", "older"),
    )
    default.gateway_of(second, "older")
    # Creation times are whole seconds: the name decides between equals, so the older one has the lesser name.
    default.admin.apply(
        gateway(
            second,
            "younger",
            "merged-eg",
            listener(hostname="same.example"),
            listener("mine", 80, "mine.example"),
        ),
        route(second, "younger", "younger", path="/younger"),
        gateway(second, "z-only", "merged-eg", listener(hostname="same.example")),
    )
    conflict = {"type": "Conflicted", "status": "True", "reason": "HostnameConflict"}
    younger = default.wait_condition("gateways", second, "younger", conflict)
    default.wait_route(second, "younger")
    only = default.wait_condition("gateways", second, "z-only", conflict)
    address = default.address(second, "older")
    conditions = younger["status"]["listeners"][0]["conditions"]
    assert CONFLICT in condition(conditions, "Conflicted")["message"]
    assert condition(conditions, "Programmed")["status"] == "False"
    assert condition(conditions, "Accepted")["status"] == "False"
    # The Gateway has another listener, which is served; one that has none is not programmed.
    assert default.address(second, "younger") == address
    assert condition(only["status"]["conditions"], "Programmed")["status"] == "False"
    assert condition(only["status"]["conditions"], "Accepted")["status"] == "False"
    assert default.wait_status(address, "mine.example", path="/younger")
    assert default.ask(address, "same.example").status == 200
    assert default.ask(address, "same.example", "/younger").status == 200, "of the older's route"
    assert default.ask(address, "mine.example").status == 404

    # A port of another protocol is a conflict too, whoever's Gateway it is.
    protocol = {**listener("tls", 80), "protocol": "HTTPS"}
    protocol["tls"] = {"certificateRefs": [{"name": "none"}]}
    default.admin.apply(gateway(first, "speaks-tls", "merged-eg", protocol))
    lost = {"type": "Conflicted", "status": "True", "reason": "ProtocolConflict"}
    default.wait_condition("gateways", first, "speaks-tls", lost)

    default.admin.remove(gateway(second, "older", "merged-eg"))
    default.world.client.wait(
        f"http://{address}/", lambda answer: answer.status == 404, host="same.example"
    )
    default.wait_status(address, "same.example", path="/younger")
    found = default.admin.wait(
        f"/apis/{GATEWAY}/namespaces/{second}/gateways/younger",
        lambda one: not condition(one["status"]["listeners"][0]["conditions"], "Conflicted"),
    )
    listeners = found["status"]["listeners"]
    assert {condition(one["conditions"], "Programmed")["status"] for one in listeners} == {"True"}


def test_separate_controllers_are_blind_to_each_other(
    world: World, default: Installed, apps: tuple[str, ...]
) -> None:
    """A second release in the same namespace: names prefixed; neither touches a class of the other."""
    own = {"gateway": {"controllerName": "gateway.edge.io/marketing"}}
    first = apps[0]
    marketing = Installed(world, Release("marketing", default.namespace), own)
    marketing.helm("install")
    try:
        path = f"/apis/apps/v1/namespaces/{default.namespace}/deployments"
        default.admin.get(f"{path}/marketing-edge-gateway")
        world.admin.apply(
            marketing.gateway_class("marketing", (default.namespace, "plain")),
            gateway(first, "market", "marketing"),
            gateway(first, "mine", "eg"),
            # One route, a parent of each: both write their own entry.
            {
                **(both := route(first, "both", "market", ["both.example"])),
                "spec": {**both["spec"], "parentRefs": [{"name": "market"}, {"name": "mine"}]},
            },
        )
        found = default.wait_route(first, "both")
        writers = {
            one["parentRef"]["name"]: one["controllerName"] for one in found["status"]["parents"]
        }
        if len(writers) < 2:
            found = default.admin.wait(
                f"/apis/{GATEWAY}/namespaces/{first}/httproutes/both",
                lambda one: len(one["status"]["parents"]) == 2,
            )
            writers = {
                one["parentRef"]["name"]: one["controllerName"]
                for one in found["status"]["parents"]
            }
        assert writers == {"market": marketing.controller, "mine": default.controller}
        address = marketing.address(first, "market")
        assert address != default.address(first, "mine")
        assert backend_of(marketing.wait_status(address, "both.example")) == first
        fleet = world.admin.get(f"{path}/{fleet_of(f'{first}/market')}")
        args = fleet["spec"]["template"]["spec"]["containers"][0]["args"]
        server = "marketing-edge-gateway.edge-gateway-system.svc.cluster.local:18000"
        assert server in args
        assert fleet["metadata"]["labels"]["gateway.edge.io/controller"].endswith(
            "marketing-edge-gateway"
        )

        # Without its controller, nothing of a tenant moves, whatever the other one does.
        scale = f"{path}/marketing-edge-gateway"
        world.admin.patch(scale, {"spec": {"replicas": 0}})
        world.admin.wait(scale, lambda one: not one["status"].get("replicas"), 40)
        world.admin.apply(
            marketing.gateway_class("marketing-two"),
            route(first, "late", "market", ["late.example"]),
            route(first, "mine", "mine", ["mine.example"]),
        )
        assert default.wait_status(default.address(first, "mine"), "mine.example")
        default.wait_route(first, "mine")
        late = world.admin.get(f"/apis/{GATEWAY}/namespaces/{first}/httproutes/late")
        assert "parents" not in late.get("status", {}) or not late["status"]["parents"]
        classes = f"/apis/{GATEWAY}/gatewayclasses"
        waiting = world.admin.get(f"{classes}/marketing-two")["status"]["conditions"]
        assert [one["reason"] for one in waiting if one["type"] == "Accepted"] == ["Pending"]
        assert marketing.ask(address, "late.example").status == 404
        assert backend_of(marketing.ask(address, "both.example")) == first
        world.admin.patch(scale, {"spec": {"replicas": 1}})
        assert backend_of(marketing.wait_status(address, "late.example")) == first
    finally:
        for name in ("marketing", "marketing-two"):
            world.admin.delete(f"/apis/{GATEWAY}/gatewayclasses/{name}")
        marketing.uninstall()


def test_a_class_begins_to_merge_and_stops(default: Installed, apps: tuple[str, ...]) -> None:
    """Gateways move to the common fleet and back; what nobody owns any more goes."""
    system = f"/apis/apps/v1/namespaces/{default.namespace}/deployments"
    proxy = edge_proxy(default.namespace, "flips")
    default.admin.apply(
        proxy,
        default.gateway_class("flips", (default.namespace, "flips")),
        *(
            made
            for namespace in apps
            for made in (
                gateway(
                    namespace, "flips", "flips", listener(hostname=f"{namespace}.flips.example")
                ),
                route(namespace, "flips", "flips"),
            )
        ),
    )
    fleets = [fleet_of(f"{namespace}/flips") for namespace in apps]
    merged = fleet_of("flips")
    before = [default.address(namespace, "flips") for namespace in apps]
    assert len(set(before)) == 2

    def is_at(addresses: Container[str], found: Any) -> bool:
        has = (found or {}).get("status", {}).get("addresses") or [{"value": ""}]
        return is_programmed(found) and all(one["value"] in addresses for one in has)

    for merge in (True, False):
        default.admin.apply({**proxy, "spec": {**proxy["spec"], "mergeGateways": merge}})
        here, gone = ([merged], fleets) if merge else (fleets, [merged])
        for name in gone:
            default.admin.wait_gone(f"{system}/{name}", 60)
        for name in here:
            default.world.workloads.wait_rollout(default.namespace, name)
        services = f"/api/v1/namespaces/{default.namespace}/services"
        addresses = [default.world.workloads.address(default.namespace, name) for name in here]
        for namespace in apps:
            path = f"/apis/{GATEWAY}/namespaces/{namespace}/gateways/flips"
            found = default.admin.wait(path, partial(is_at, addresses), 60)
            (address,) = (one["value"] for one in found["status"]["addresses"])
            assert (
                backend_of(default.wait_status(address, f"{namespace}.flips.example")) == namespace
            )
            other = next(one for one in apps if one != namespace)
            status = default.ask(address, f"{other}.flips.example").status
            assert status == (200 if merge else 404)
        assert all(default.admin.find(f"{services}/{name}") is None for name in gone)


def test_a_gateway_moves_to_another_controller(default: Installed, apps: tuple[str, ...]) -> None:
    """Its class is another one's: this controller takes its fleet away and says nothing more of it."""
    namespace = apps[0]
    foreign = default.gateway_class("elsewhere")
    foreign["spec"]["controllerName"] = "example.com/another-controller"
    moves = gateway(namespace, "moves", "eg")
    default.admin.apply(foreign, moves, route(namespace, "moves", "moves", ["moves.example"]))
    address = default.address(namespace, "moves")
    default.wait_status(address, "moves.example")
    moves["spec"]["gatewayClassName"] = "elsewhere"
    try:
        default.admin.apply(moves)
        fleet = fleet_of(f"{namespace}/moves")
        default.admin.wait_gone(f"/api/v1/namespaces/{default.namespace}/services/{fleet}", 60)
        # Our entry in the route's status goes: no Gateway of ours is its parent.
        default.admin.wait(
            f"/apis/{GATEWAY}/namespaces/{namespace}/httproutes/moves",
            lambda one: not (one["status"].get("parents") or []),
        )
        moves["spec"]["gatewayClassName"] = "eg"
        default.admin.apply(moves)
        again = default.address(namespace, "moves")
        assert backend_of(default.wait_status(again, "moves.example")) == namespace
    finally:
        default.admin.remove(foreign)


def test_an_edge_proxy_by_class_and_by_gateway(default: Installed, apps: tuple[str, ...]) -> None:
    """The Gateway's EdgeProxy wins field by field; what concerns no pod rolls none."""
    namespace = apps[0]
    of_class = edge_proxy(
        default.namespace,
        "tuned",
        deployment={
            "labels": {"from": "class", "tier": "edge"},
            "annotations": {"note.example/a": "class"},
            "tolerations": [{"key": "edge", "operator": "Exists"}],
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        },
        service={"annotations": {"lb.example/kind": "fast"}, "externalTrafficPolicy": "Cluster"},
        pdb={"minAvailable": 1},
        http={"headerCount": 20},
    )
    of_gateway = {
        "apiVersion": EDGE,
        "kind": "EdgeProxy",
        "metadata": {"namespace": namespace, "name": "mine"},
        "spec": {"deployment": {"labels": {"from": "gateway"}, "replicas": 2}},
    }
    reference = {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "mine"}
    infrastructure = {
        "parametersRef": reference,
        "labels": {"team": "blue"},
        "annotations": {"note.example/b": "gateway"},
    }
    default.admin.apply(
        of_class,
        of_gateway,
        default.gateway_class("tuned", (default.namespace, "tuned")),
        gateway(namespace, "tuned", "tuned", infrastructure=infrastructure),
        route(namespace, "tuned", "tuned", ["tuned.example"]),
    )
    address = default.address(namespace, "tuned")
    fleet = fleet_of(f"{namespace}/tuned")
    where = f"namespaces/{default.namespace}"
    deployment = default.world.workloads.wait_rollout(default.namespace, fleet)
    assert deployment["spec"]["replicas"] == 2
    template = deployment["spec"]["template"]
    assert (
        template["metadata"]["labels"] | {"from": "gateway", "team": "blue"}
        == (template["metadata"]["labels"])
    )
    assert "tier" not in template["metadata"]["labels"], "the Gateway's labels are the field"
    assert template["metadata"]["annotations"]["note.example/a"] == "class"
    assert template["metadata"]["annotations"]["note.example/b"] == "gateway"
    assert {"key": "edge", "operator": "Exists"} in template["spec"]["tolerations"]
    edge = template["spec"]["containers"][0]
    assert edge["resources"]["requests"]["memory"] == "64Mi"
    assert "--workers 1 --drain-timeout 2 --min-drain 0" in " ".join(edge["args"])
    service = default.admin.get(f"/api/v1/{where}/services/{fleet}")
    assert service["metadata"]["annotations"]["lb.example/kind"] == "fast"
    assert service["metadata"]["annotations"]["note.example/b"] == "gateway"
    assert service["spec"]["externalTrafficPolicy"] == "Cluster"
    budget = default.admin.get(f"/apis/policy/v1/{where}/poddisruptionbudgets/{fleet}")
    assert budget["spec"]["minAvailable"] == 1
    many = {f"x-{number}": "1" for number in range(30)}
    assert default.wait_status(address, "tuned.example")
    assert default.ask(address, "tuned.example", headers=many).status == 431

    # Behaviour changes without a new pod; the budget goes when it is no more wanted.
    of_class["spec"]["http"] = {"headerCount": 100}
    del of_class["spec"]["pdb"]
    default.admin.apply(of_class)
    default.admin.wait_gone(f"/apis/policy/v1/{where}/poddisruptionbudgets/{fleet}")
    wait_until(lambda: default.ask(address, "tuned.example", headers=many).status == 200)
    after = default.admin.get(f"/apis/apps/v1/{where}/deployments/{fleet}")
    assert after["spec"]["template"] == template

    # With an autoscaler the number of proxies is its own; without, the Gateway's again.
    of_class["spec"]["hpa"] = {"minReplicas": 1, "maxReplicas": 3}
    default.admin.apply(of_class)
    scaler = f"/apis/autoscaling/v2/{where}/horizontalpodautoscalers/{fleet}"
    found = default.admin.wait(scaler, bool)["spec"]
    assert (found["minReplicas"], found["maxReplicas"]) == (1, 3)
    assert found["scaleTargetRef"]["name"] == fleet
    path = f"/apis/apps/v1/{where}/deployments/{fleet}"
    default.admin.patch(path, {"spec": {"replicas": 1}})
    default.admin.wait(path, lambda one: one["status"].get("readyReplicas") == 1, 60)
    assert default.admin.get(path)["spec"]["replicas"] == 1, "nobody sets it back"
    del of_class["spec"]["hpa"]
    default.admin.apply(of_class)
    default.admin.wait_gone(scaler)
    default.admin.wait(path, lambda one: one["spec"]["replicas"] == 2)

    # An EdgeProxy that is deleted by mistake refuses the Gateway; its fleet goes on serving.
    default.admin.remove(of_gateway)
    refused = {"type": "Accepted", "status": "False", "reason": "InvalidParameters"}
    default.wait_condition("gateways", namespace, "tuned", refused)
    assert default.ask(address, "tuned.example").status == 200
    default.admin.apply(of_gateway)
    assert default.address(namespace, "tuned") == address
