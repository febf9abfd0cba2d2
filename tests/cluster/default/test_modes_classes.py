"""Deployment modes of spec section 1 in one cluster: one class, several classes, merged Gateways, separate controllers."""

from __future__ import annotations

from typing import Any

from cluster.installed import (
    GATEWAY,
    PROXIES,
    Installed,
    backend_of,
    condition,
    fleet_of,
    gateway,
    listener,
    route,
)
from cluster.world.world import World
from controller.manifests.naming import Release


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
    # A replica is ready before it has asked who leads.
    api.wait(f"/apis/coordination.k8s.io/v1/namespaces/{system}/leases/edge-gateway-leader", bool)


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
    for name in ("eg", "eg-two", "merged-eg"):
        default.admin.wait(f"/apis/{GATEWAY}/gatewayclasses/{name}", _is_accepted)


def _is_accepted(found: Any) -> bool:
    conditions = (found.get("status") or {}).get("conditions")
    return bool(condition(conditions, "Accepted").get("status") == "True")


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
    assert backend_of(default.wait_status(address, "two.merged.example")) == second
    assert backend_of(default.wait_status(address, "two.merged.example", port=8080)) == second
    assert default.ask(address, "one.merged.example", port=8080).status == 200, "any host there"
    assert default.ask(address, "three.merged.example").status == 404
    # The same hostname on a fleet of its own is another place.
    alone = default.address(first, "alone")
    assert default.wait_status(alone, "one.merged.example", path="/alone/x")
    assert default.ask(alone, "one.merged.example").status == 404


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
        world.admin.wait(scale, lambda one: not one["status"].get("replicas"))
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
