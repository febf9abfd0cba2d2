"""What becomes of fleets when classes, Gateways and EdgeProxies change while they serve."""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import Any

from cluster.cutover import go_after
from cluster.installed import (
    GATEWAY,
    Installed,
    backend_of,
    condition,
    edge_proxy,
    fleet_of,
    gateway,
    is_programmed,
    listener,
    route,
)
from cluster.world.waiting import wait_until
from tests.support.manifest import manifest


def test_a_class_begins_to_merge_and_stops(default: Installed, apps: tuple[str, ...]) -> None:
    """Gateways move to the common fleet and back; what nobody owns any more goes, once the other one serves."""
    pods = f"/api/v1/namespaces/{default.namespace}/pods"
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
        here, gone = ([merged], fleets) if merge else (fleets, [merged])
        seen = default.admin.get(pods)["metadata"]["resourceVersion"]
        default.admin.apply({**proxy, "spec": {**proxy["spec"], "mergeGateways": merge}})
        events = default.admin.watch(pods, 240, resourceVersion=seen)
        go_after(
            events, *([f"{default.namespace}/{one}" for one in names] for names in (here, gone))
        )
        for name in here:
            default.world.workloads.wait_rollout(default.namespace, name)
        services = f"/api/v1/namespaces/{default.namespace}/services"
        addresses = [default.world.workloads.address(default.namespace, name) for name in here]
        for namespace in apps:
            path = f"/apis/{GATEWAY}/namespaces/{namespace}/gateways/flips"
            found = default.admin.wait(path, partial(is_at, addresses))
            (address,) = (one["value"] for one in found["status"]["addresses"])
            assert (
                backend_of(default.wait_status(address, f"{namespace}.flips.example")) == namespace
            )
            other = next(one for one in apps if one != namespace)
            status = default.ask(address, f"{other}.flips.example").status
            assert status == (200 if merge else 404)
        for name in gone:
            default.admin.wait_gone(f"{services}/{name}")


def test_a_gateway_moves_to_another_controller(default: Installed, apps: tuple[str, ...]) -> None:
    """Its fleet serves until the other controller has it programmed; until then nothing says that it is fine."""
    namespace = apps[0]
    foreign = default.gateway_class("elsewhere")
    foreign["spec"]["controllerName"] = "example.com/another-controller"
    moves = gateway(namespace, "moves", "eg")
    path = f"/apis/{GATEWAY}/namespaces/{namespace}/gateways/moves"
    default.admin.apply(foreign, moves, route(namespace, "moves", "moves", ["moves.example"]))
    address = default.address(namespace, "moves")
    default.wait_status(address, "moves.example")
    service = f"/api/v1/namespaces/{default.namespace}/services/{fleet_of(f'{namespace}/moves')}"
    uid = default.admin.get(service)["metadata"]["uid"]

    def is_nobodys(found: Any) -> bool:
        told = condition((found or {}).get("status", {}).get("conditions"), "Programmed")
        return (
            told.get("status") == "Unknown" and "example.com/another-controller" in told["message"]
        )

    try:
        moves["spec"]["gatewayClassName"] = "elsewhere"
        default.admin.apply(moves)
        found = default.admin.wait(path, is_nobodys)
        assert [one["value"] for one in found["status"]["addresses"]] == [address]
        assert not found["status"].get("listeners")
        # Our entry in the route's status goes: no Gateway of ours is its parent.
        default.admin.wait(
            f"/apis/{GATEWAY}/namespaces/{namespace}/httproutes/moves",
            lambda one: not (one["status"].get("parents") or []),
        )
        assert backend_of(default.ask(address, "moves.example")) == namespace
        # Back again, with the address that it had.
        moves["spec"]["gatewayClassName"] = "eg"
        default.admin.apply(moves)
        assert default.address(namespace, "moves") == address
        assert default.admin.get(service)["metadata"]["uid"] == uid
        # And away for good: the other one says that it serves it, somewhere else.
        moves["spec"]["gatewayClassName"] = "elsewhere"
        default.admin.apply(moves)
        found = default.admin.wait(path, is_nobodys)
        assert backend_of(default.ask(address, "moves.example")) == namespace
        _say_programmed(default, path, found["metadata"]["generation"])
        default.admin.wait_gone(service)
        assert is_programmed(default.admin.get(path)), "the other one's word stays"
    finally:
        default.admin.remove(moves, foreign)


def _say_programmed(made: Installed, path: str, generation: int) -> None:
    """Do as another controller: write into the status that a Gateway is served elsewhere."""
    conditions = [
        {
            "type": type_,
            "status": "True",
            "reason": type_,
            "message": "by another one",
            "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for type_ in ("Accepted", "Programmed")
    ]
    addresses = [{"type": "IPAddress", "value": "192.0.2.77"}]
    status = {"status": {"conditions": conditions, "addresses": addresses}}
    made.admin.patch(f"{path}/status?fieldManager=another", status)


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
    of_gateway = manifest(
        f"EdgeProxy {namespace}/mine",
        {"deployment": {"labels": {"from": "gateway"}, "replicas": 2}},
    )
    reference = {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "mine"}
    infrastructure = {
        "parametersRef": reference,
        "labels": {"team": "blue"},
        "annotations": {"note": "gateway", "note.example/b": "gateway"},
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
    labels = template["metadata"]["labels"]
    assert not {"from", "team"} & set(labels), "a Service of another team may select pods by them"
    assert "tier" not in template["metadata"]["labels"], "the Gateway's labels are the field"
    assert template["metadata"]["annotations"]["note.example/a"] == "class"
    assert template["metadata"]["annotations"]["note"] == "gateway"
    assert "note.example/b" not in template["metadata"]["annotations"], "an injector may read it"
    assert {"key": "edge", "operator": "Exists"} in template["spec"]["tolerations"]
    edge = template["spec"]["containers"][0]
    assert edge["resources"]["requests"]["memory"] == "64Mi"
    assert "--workers 1 --drain-timeout 2 --min-drain 0" in " ".join(edge["args"])
    service = default.admin.get(f"/api/v1/{where}/services/{fleet}")
    assert service["metadata"]["labels"]["team"] == "blue"
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
    default.admin.wait(path, lambda one: one["status"].get("readyReplicas") == 1)
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
