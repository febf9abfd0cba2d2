"""The applier against a real API server: applied once, valid whatever is asked for, repaired; what is others' stays."""

from __future__ import annotations

import time
from functools import partial

import msgspec
import pytest

from cluster.infra_bench import (
    KINDS,
    NAME,
    SELECTOR,
    fleet,
    infra_bench,
    installation,
    settled,
    want,
)
from cluster.world.api import Api
from cluster.world.apiserver import ApiServer
from controller.fleets.placement import Placement
from edgefast import ir
from tests.controller.waiting import until


@pytest.fixture
def place(apiserver: ApiServer) -> Placement:
    """An installation in a namespace of its own."""
    return installation(apiserver)


async def test_a_fleet_is_made_and_applied_once(apiserver: ApiServer, place: Placement) -> None:
    async with infra_bench(apiserver, place) as bench:
        want(bench, place, fleet(place, replicas=2))
        await settled(bench)
        assert bench.applier.applied == len(KINDS)
        for kind in KINDS:
            found = bench.live(kind, place.namespace, NAME)
            assert found is not None
            assert dict(SELECTOR).items() <= found["metadata"]["labels"].items()
        deployment = bench.live("Deployment", place.namespace, NAME)
        assert deployment is not None and deployment["spec"]["replicas"] == 2
        service = bench.live("Service", place.namespace, NAME)
        assert service is not None
        assert service["spec"]["type"] == "LoadBalancer"
        assert service["spec"]["externalTrafficPolicy"] == "Local"
        # What the API server wrote besides is no drift, nor is the same wish again.
        want(bench, place, fleet(place, replicas=2))
        await settled(bench)
        assert bench.applier.applied == len(KINDS)


async def test_every_option_is_valid_to_the_server(apiserver: ApiServer, place: Placement) -> None:
    pod = ir.InfraPod(
        image="example.com/edge:2",
        labels={"tier": "front"},
        annotations={"note": "x"},
        resources={"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"memory": "2Gi"}},
        env=({"name": "A", "value": ""},),
        affinity={"podAntiAffinity": {}},
        tolerations=({"key": "edge", "operator": "Exists"},),
        node_selector={"role": "edge"},
        topology_spread_constraints=(
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
        ),
        priority_class_name="high",
    )
    service = ir.InfraService(
        external_traffic_policy="Cluster",
        load_balancer_class="example.com/lb",
        load_balancer_source_ranges=("10.0.0.0/8",),
        addresses=("192.0.2.7",),
    )
    all_of_it = fleet(
        place,
        pod=pod,
        service=service,
        workers=2,
        hpa=ir.InfraHPA(max_replicas=4, min_replicas=2),
        pdb=("minAvailable", "50%"),
    )
    async with infra_bench(apiserver, place) as bench:
        want(bench, place, all_of_it)
        await settled(bench)
        assert not bench.problems
        # "0.5" comes back as 500m: written otherwise, and yet no drift.
        assert bench.applier.applied == len(KINDS) + 2
        want(bench, place, msgspec.structs.replace(all_of_it, workload="DaemonSet", hpa=None))
        await settled(bench)
        assert not bench.problems
        assert bench.live("DaemonSet", place.namespace, NAME) is not None
        # What was never seen is not deleted yet.
        await until(lambda: bench.live("HorizontalPodAutoscaler", place.namespace, NAME) is None)


async def test_token_mode_is_valid_to_the_server(apiserver: ApiServer, place: Placement) -> None:
    beside = apiserver.namespace("tenant")
    tokens = msgspec.structs.replace(place, gateway_namespace_mode=True)
    async with infra_bench(apiserver, tokens, (beside,)) as bench:
        want(bench, tokens, fleet(place, namespace=beside))
        await settled(bench)
        assert not bench.problems
        assert bench.live("Deployment", beside, NAME) is not None


def is_made_anew(admin: Api, path: str, before: str) -> bool:
    found = admin.find(path)
    return found is not None and found["metadata"]["uid"] != before


async def test_drift_is_repaired(apiserver: ApiServer, place: Placement) -> None:
    async with infra_bench(apiserver, place) as bench:
        want(bench, place, fleet(place, replicas=2))
        await settled(bench)
        admin = apiserver.admin
        path = bench.path("Deployment", place.namespace, NAME)
        changed = {"spec": {"replicas": 7, "template": {"spec": {"serviceAccountName": "other"}}}}
        admin.patch(path, changed, "merge")
        await until(lambda: admin.get(path)["spec"]["replicas"] == 2)
        await until(
            lambda: admin.get(path)["spec"]["template"]["spec"]["serviceAccountName"] == NAME
        )
        label = {"metadata": {"labels": {"gateway.edge.io/controller": None}}}
        for kind in KINDS:  # without the label the watch no longer sees it
            admin.patch(bench.path(kind, place.namespace, NAME), label, "merge")
        await until(
            lambda: all(
                "gateway.edge.io/controller"
                in admin.get(bench.path(kind, place.namespace, NAME))["metadata"]["labels"]
                for kind in KINDS
            )
        )
        for kind in KINDS:
            path = bench.path(kind, place.namespace, NAME)
            before = admin.get(path)["metadata"]["uid"]
            admin.delete(path)
            await until(partial(is_made_anew, admin, path, before), kind)
        assert not bench.problems


async def test_what_others_add_stays(apiserver: ApiServer, place: Placement) -> None:
    async with infra_bench(apiserver, place) as bench:
        want(bench, place, fleet(place))
        await settled(bench)
        path = bench.path("Service", place.namespace, NAME)
        note = {"metadata": {"annotations": {"example.com/theirs": "1"}}}
        apiserver.admin.patch(path, note, "merge")
        # A change of ours goes past theirs.
        more = (ir.InfraPort("http-80", 80, 10080), ir.InfraPort("http-8080", 8080, 8080))
        want(bench, place, fleet(place, ports=more))
        await settled(bench)
        service = apiserver.admin.get(path)
        assert service["metadata"]["annotations"] == {"example.com/theirs": "1"}
        assert [one["port"] for one in service["spec"]["ports"]] == [80, 8080]
        # And a port that is wanted no more is gone; node ports of the others stay what they were.
        node_port = service["spec"]["ports"][0]["nodePort"]
        want(bench, place, fleet(place))
        await settled(bench)
        assert [
            (one["port"], one["nodePort"]) for one in apiserver.admin.get(path)["spec"]["ports"]
        ] == [(80, node_port)]


async def test_somebody_who_never_stops_is_answered_slower(
    apiserver: ApiServer, place: Placement
) -> None:
    async with infra_bench(apiserver, place) as bench:
        want(bench, place, fleet(place, replicas=2))
        await settled(bench)
        path = bench.path("Deployment", place.namespace, NAME)
        changed, repaired = [], []
        for _ in range(5):
            changed.append(time.monotonic())
            apiserver.admin.patch(path, {"spec": {"replicas": 7}}, "merge")
            await until(lambda: apiserver.admin.get(path)["spec"]["replicas"] == 2)
            repaired.append(time.monotonic())
        # Three at once, then after 1, 2, 4 ... seconds: a repair is no sooner than the change that it puts right.
        assert min(repaired[turn] - changed[turn - 1] for turn in (1, 2)) < 2.0
        assert repaired[3] - changed[2] >= 1.0
        assert repaired[4] - changed[3] >= 2.0
