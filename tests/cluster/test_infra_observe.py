"""The observer against a real API server: addresses by type of Service, ready pods, replicas."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.infra_bench import (
    NAME,
    SELECTOR,
    InfraBench,
    fleet,
    infra_bench,
    installation,
    key,
    settled,
    want,
)
from cluster.world.apiserver import ApiServer
from controller.fleets.placement import Placement
from edgefast import ir
from tests.controller.waiting import until
from tests.support.manifest import manifest


@pytest.fixture
def place(apiserver: ApiServer) -> Placement:
    """An installation in a namespace of its own."""
    return installation(apiserver)


async def make(
    bench: InfraBench, place: Placement, service: ir.InfraService, replicas: int | None = None
) -> None:
    want(bench, place, fleet(place, service=service, replicas=replicas))
    await settled(bench)


def put_slice(server: ApiServer, place: Placement, name: str, *endpoints: dict[str, Any]) -> None:
    """Make an EndpointSlice as the cluster's controller does: with the labels of the Service."""
    labels = {
        **dict(SELECTOR),
        "gateway.edge.io/controller": place.identity,
        "kubernetes.io/service-name": NAME,
    }
    server.admin.apply(
        manifest(
            f"EndpointSlice {place.namespace}/{name}",
            labels=labels,
            addressType="IPv4",
            endpoints=list(endpoints),
            ports=[{"name": "http-80", "port": 10080}],
        )
    )


def endpoint(pod: str, address: str, node: str = "", **conditions: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "addresses": [address],
        "conditions": conditions,
        "targetRef": {"kind": "Pod", "name": pod},
    }
    return {**found, "nodeName": node} if node else found


async def test_load_balancer_replicas_and_ready_pods(
    apiserver: ApiServer, place: Placement
) -> None:
    calls: list[int] = []
    async with infra_bench(apiserver, place) as bench:
        bench.observer.on_change = lambda: calls.append(1)
        await make(bench, place, ir.InfraService(), 3)
        await until(lambda: bench.state(NAME).replicas == 3)
        assert bench.state(NAME).addresses == () and bench.state(NAME).ready == ()
        path = bench.path("Service", place.namespace, NAME)
        ingress = [{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}]
        status = {"status": {"loadBalancer": {"ingress": ingress}}}
        apiserver.admin.patch(f"{path}/status", status, "merge")
        await until(lambda: bench.state(NAME).addresses == ("192.0.2.1", "lb.example.com"))
        ready = {"ready": True, "serving": True, "terminating": False}
        put_slice(
            apiserver,
            place,
            f"{NAME}-1",
            endpoint("pod-b", "10.0.0.2", **ready),
            endpoint("pod-a", "10.0.0.1", **ready),
            endpoint("pod-c", "10.0.0.3", ready=False, serving=True, terminating=True),
            endpoint("pod-d", "10.0.0.4", ready=False),
        )
        await until(lambda: bench.state(NAME).ready == ("pod-a", "pod-b"))
        assert bench.observer.fleet_problem_of(key(place)).unready == {"pod-d"}
        # A pod has an endpoint for each family, and counts once.
        put_slice(apiserver, place, f"{NAME}-2", endpoint("pod-a", "10.0.1.1", **ready))
        put_slice(apiserver, place, f"{NAME}-3", endpoint("pod-e", "10.0.1.2", **ready))
        await until(lambda: bench.state(NAME).ready == ("pod-a", "pod-b", "pod-e"))
        before = len(calls)
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{place.namespace}/endpointslices"
        apiserver.admin.delete(f"{slices}/{NAME}-2")
        apiserver.admin.delete(f"{slices}/{NAME}-3")
        await until(lambda: bench.state(NAME).ready == ("pod-a", "pod-b"))
        assert len(calls) == before + 1  # the first one changed nothing that is seen
        bench.applier.want({})
        await until(lambda: bench.observer.states() == ())


async def test_node_port_has_the_addresses_of_nodes(apiserver: ApiServer, place: Placement) -> None:
    names = [f"{place.namespace}-{letter}" for letter in "ab"]
    for at, name in enumerate(names):
        internal = {"type": "InternalIP", "address": f"10.9.0.{at}"}
        external = [{"type": "ExternalIP", "address": f"192.0.2.{at}"}] if at else []
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        apiserver.admin.create(node)
        status = {"status": {"addresses": [internal, *external]}}
        apiserver.admin.patch(f"/api/v1/nodes/{name}/status", status, "strategic")
    async with infra_bench(apiserver, place) as bench:
        everywhere = ir.InfraService(type="NodePort", external_traffic_policy="Cluster")
        await make(bench, place, everywhere)
        await until(lambda: {"10.9.0.0", "192.0.2.1"} <= set(bench.state(NAME).addresses))
        assert "10.9.0.1" not in bench.state(NAME).addresses  # it has an external one
        local = ir.InfraService(type="NodePort", external_traffic_policy="Local")
        put_slice(apiserver, place, f"{NAME}-1", endpoint("pod-a", "10.0.0.1", names[1]))
        await make(bench, place, local)
        await until(lambda: bench.state(NAME).addresses == ("192.0.2.1",))
        apiserver.admin.delete(f"/api/v1/nodes/{names[1]}")
        await until(lambda: bench.state(NAME).addresses == ())
