"""Names of backends that do not resolve: whose they are, and where it is said, until they do."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edgefast import ir
from edgefast.proxy.agent.unresolved_hosts import describe_unresolved
from proxy.command import Object, Start, gateway, gateway_class, save
from wire.harness.ports import free_port


def cluster(name: str, *hostnames: str) -> tuple[str, bytes]:
    endpoints = tuple(ir.Endpoint(hostname=one, port=80) for one in hostnames)
    return name, msgspec.msgpack.encode(ir.Cluster(name=name, endpoints=endpoints))


@pytest.mark.pure
def test_a_name_is_that_of_the_objects_that_have_it() -> None:
    clusters = [
        cluster("service/shop/db/80", "db.test"),
        cluster("service/shop/db/443", "db.test"),
        cluster("backend/shop/both@shop/own", "db.test", "x.db.test"),
        cluster("backend/other/good/80", "good.test"),
    ]
    found = describe_unresolved(["db.test", "nobody.test"], clusters)
    assert [str(one.object) for one in found] == ["Backend shop/both", "Service shop/db"]
    assert {(one.reason, one.severity) for one in found} == {("EndpointsNotFound", "warning")}
    assert all("the name db.test does not resolve" in one.text() for one in found)
    assert describe_unresolved([], clusters) == ()
    broken = ("service/shop/broken/80", b"\xc1db.test")
    assert describe_unresolved(["db.test", "nobody.test"], [broken, *clusters]) == found


def objects(port: int, hostname: str) -> list[Object]:
    backend = {
        "apiVersion": "gateway.edge.io/v1alpha1",
        "kind": "Backend",
        "metadata": {"name": "far", "namespace": "default"},
        "spec": {"endpoints": [{"fqdn": {"hostname": hostname, "port": 80}}]},
    }
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "parentRefs": [{"name": "edge"}],
            "rules": [
                {"backendRefs": [{"group": "gateway.edge.io", "kind": "Backend", "name": "far"}]}
            ],
        },
    }
    return [gateway_class(), gateway(port), backend, route]


@pytest.mark.wire
def test_a_running_gateway_says_so_until_it_resolves(start: Start, tmp_path: Path) -> None:
    port, file = free_port(), tmp_path / "a.yaml"
    save(file, *objects(port, "nobody.invalid"))
    run = start("-f", str(file), "--workers", "2")
    run.wait_ready()
    words = "Backend default/far: EndpointsNotFound the name nobody.invalid does not resolve"
    run.until(lambda: words in run.said, "word about it")
    (problem,) = run.dump()["problems"]
    assert words in problem["text"] and problem["severity"] == "warning"
    assert "edgefast_config_problems 1" in run.get(run.metrics, "/metrics")[1]
    save(file, *objects(port, "localhost"))
    run.until(lambda: "1 problem solved" in run.said, "word that it is over")
    run.until(lambda: run.dump()["problems"] == [], "no problem")
    assert run.said.count("nobody.invalid") == 1
