"""Changes of the workload that must not cost proxies: replicas handed to an autoscaler, one kind after the other."""

from __future__ import annotations

import pytest

from cluster.infra_bench import NAME, InfraBench, fleet, infra_bench, installation, settled, want
from cluster.world.apiserver import ApiServer
from controller.fleets.placement import Manifest, Placement
from edgefast import ir
from tests.controller.waiting import until


@pytest.fixture
def place(apiserver: ApiServer) -> Placement:
    """An installation in a namespace of its own."""
    return installation(apiserver)


async def test_replicas_pass_to_the_autoscaler_and_back(
    apiserver: ApiServer, place: Placement
) -> None:
    def replicas(bench: InfraBench) -> int:
        found = bench.live("Deployment", place.namespace, NAME)
        assert found is not None
        return int(found["spec"]["replicas"])

    async with infra_bench(apiserver, place) as bench:
        want(bench, place, fleet(place, replicas=5))
        await settled(bench)
        hpa = ir.InfraHPA(max_replicas=9)
        want(bench, place, fleet(place, hpa=hpa))
        await settled(bench)
        assert replicas(bench) == 5  # not the default of one
        path = bench.path("Deployment", place.namespace, NAME)
        apiserver.admin.patch(f"{path}/scale", {"spec": {"replicas": 8}}, "merge")
        want(bench, place, fleet(place, hpa=hpa, workers=3))
        await settled(bench)
        assert replicas(bench) == 8
        want(bench, place, fleet(place, replicas=4))
        await settled(bench)
        assert replicas(bench) == 4
        # What was never seen is not deleted yet.
        await until(lambda: bench.live("HorizontalPodAutoscaler", place.namespace, NAME) is None)


async def test_a_workload_serves_until_its_successor_does(
    apiserver: ApiServer, place: Placement
) -> None:
    async with infra_bench(apiserver, place) as bench:
        want(bench, place, fleet(place))
        await settled(bench)
        daemons = fleet(place, workload="DaemonSet")
        want(bench, place, daemons)
        await until(lambda: bench.live("DaemonSet", place.namespace, NAME) is not None)
        await settled(bench)
        assert bench.live("Deployment", place.namespace, NAME) is not None
        _report(bench, place, "DaemonSet", desiredNumberScheduled=2, numberReady=1)
        await settled(bench)
        assert bench.live("Deployment", place.namespace, NAME) is not None
        _report(bench, place, "DaemonSet", desiredNumberScheduled=2, numberReady=2)
        await until(lambda: bench.live("Deployment", place.namespace, NAME) is None)


def _report(bench: InfraBench, place: Placement, kind: str, **numbers: int) -> None:
    """Say what the workload's controller would say."""
    path = bench.path(kind, place.namespace, NAME)
    generation = bench.server.admin.get(path)["metadata"]["generation"]
    status = {
        "observedGeneration": generation,
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
    }
    body: Manifest = {"status": {**status, **numbers}}
    bench.server.admin.patch(f"{path}/status", body, "merge")
