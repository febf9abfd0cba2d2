"""Cases of the v1.7.0 suite about statuses, by name: what others wrote stays as it is, and a name may have its full length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.controller_bench import Bench, wait_for
from cluster.world.apiserver import ApiServer
from wire.harness.certificates import Authority

_JSON_PATCH = "application/json-patch+json"
STALE = "gateway.networking.k8s.io/stale-controller"
THEIRS = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "unmanaged-gateway"}


@pytest.fixture(scope="module")
def bench(newest: ApiServer) -> Iterator[Bench]:
    with Bench(newest) as made:
        made.add_class()
        made.port, _ = made.bring_up()
        made.add_backend("web", made.add_origin("one").port)
        yield made


def condition(type_: str, reason: str) -> dict[str, Any]:
    return {
        "type": type_,
        "status": "True",
        "reason": reason,
        "message": "seeded",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def seed(bench: Bench, kind: str, name: str, path: str, value: Any) -> None:
    """Put something of another controller's into a status."""
    operation = {"op": "add", "path": path, "value": value}
    where = f"{bench.path(kind, name)}/status"
    bench.api.request("PATCH", where, [operation], content_type=_JSON_PATCH)


def test_http_route_preserve_foreign_status(bench: Bench) -> None:
    """HTTPRoutePreserveForeignStatus: of a parent that nobody else has, under a name that is not ours."""
    spec = {
        "parentRefs": [{"name": "gw"}, {"name": "unmanaged-gateway"}],
        "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
    }
    bench.apply("HTTPRoute", "foreign", spec)
    bench.expect_condition("HTTPRoute", "foreign", "Accepted", "True")
    theirs = {
        "parentRef": THEIRS,
        "controllerName": STALE,
        "conditions": [condition("Accepted", "Accepted")],
    }
    seed(bench, "HTTPRoute", "foreign", "/status/parents/-", theirs)
    bench.apply("HTTPRoute", "foreign", {**spec, "hostnames": ["second.example.com"]})
    bench.expect_condition("HTTPRoute", "foreign", "Accepted", "True", generation=2)
    parents = bench.get("HTTPRoute", "foreign")["status"]["parents"]
    assert [one for one in parents if one["controllerName"] == STALE] == [theirs]
    assert [
        one["parentRef"]["name"]
        for one in parents
        if one["controllerName"] == bench.controller_name
    ] == ["gw"]


def test_gateway_preserve_foreign_conditions(bench: Bench) -> None:
    """GatewayPreserveForeignConditions: on the Gateway, and on a listener that has just been changed."""
    bench.add_gateway("foreign", hostname="first.example.com")
    bench.expect_condition("Gateway", "foreign", "Accepted", "True")
    theirs = condition("conformance.gateway.networking.k8s.io/StaleCondition", "Seeded")
    for path in ("/status/conditions/-", "/status/listeners/0/conditions/-"):
        seed(bench, "Gateway", "foreign", path, theirs)
    spec = bench.get("Gateway", "foreign")["spec"]
    (listener,) = spec["listeners"]
    changed = {**spec, "listeners": [{**listener, "hostname": "second.example.com"}]}
    bench.apply("Gateway", "foreign", changed)
    bench.expect_condition("Gateway", "foreign", "Accepted", "True", generation=2)
    status = bench.get("Gateway", "foreign")["status"]
    assert theirs in status["conditions"]
    (listener,) = status["listeners"]
    assert theirs in listener["conditions"]
    ours = [one for one in listener["conditions"] if one != theirs]
    assert {one["observedGeneration"] for one in ours} == {2}


def test_backend_tls_policy_preserve_foreign_status(bench: Bench) -> None:
    """BackendTLSPolicyPreserveForeignStatus."""
    bench.add_backend("inside", bench.add_origin("inside").port)
    bench.apply("ConfigMap", "ca", None, "v1", data={"ca.crt": Authority().pem.decode()})
    refs = [{"group": "", "kind": "ConfigMap", "name": "ca"}]
    spec = {
        "targetRefs": [{"group": "", "kind": "Service", "name": "inside"}],
        "validation": {"hostname": "abc.example.com", "caCertificateRefs": refs},
    }
    bench.apply("BackendTLSPolicy", "foreign", spec)
    bench.add_route("inside", host="preserve.example.com", backend="inside")
    bench.expect_condition("BackendTLSPolicy", "foreign", "Accepted", "True")
    theirs = {
        "ancestorRef": THEIRS,
        "controllerName": STALE,
        "conditions": [condition("Accepted", "Accepted")],
    }
    seed(bench, "BackendTLSPolicy", "foreign", "/status/ancestors/-", theirs)
    validation = {"hostname": "second.example.com", "caCertificateRefs": refs}
    bench.apply("BackendTLSPolicy", "foreign", {**spec, "validation": validation})
    bench.expect_condition("BackendTLSPolicy", "foreign", "Accepted", "True", generation=2)
    ancestors = bench.get("BackendTLSPolicy", "foreign")["status"]["ancestors"]
    assert [one for one in ancestors if one["controllerName"] == STALE] == [theirs]


def test_gateway_name_maximum_length(bench: Bench) -> None:
    """GatewayNameMaximumLength: 253 characters, and its fleet serves."""
    name = "gateway-name-maximum-length-".ljust(253, "a")
    port = bench.add_gateway(name)
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments"

    def find_fleet() -> str:
        names = (str(one["metadata"]["name"]) for one in bench.api.items(path))
        return next((one for one in names if "gateway-name-maximum" in one), "")

    fleet = wait_for("its fleet", find_fleet)
    bench.give_address(fleet)
    bench.start_proxy(fleet)
    bench.set_pods(fleet, f"{fleet}-0")
    bench.expect_condition("Gateway", name, "Accepted", "True", generation=1)
    bench.expect_condition("Gateway", name, "Programmed", "True", generation=1)
    bench.add_route("route-name-maximum-length-".ljust(253, "a"), gateway=name)
    bench.expect(port, (200, "one"))
