"""What the applier may touch: what it made; foreign names, other installations and other leaders it leaves alone."""

from __future__ import annotations

import msgspec
import pytest

from cluster.infra_bench import (
    KINDS,
    NAME,
    SELECTOR,
    fleet,
    infra_bench,
    installation,
    key,
    settled,
    want,
)
from cluster.world.apiserver import ApiServer
from controller.fleets.metadata import adopt
from controller.fleets.placement import Placement
from controller.fleets.render import render_fleet
from edgefast import ir
from tests.controller.waiting import until
from tests.support.manifest import manifest


@pytest.fixture
def place(apiserver: ApiServer) -> Placement:
    """An installation in a namespace of its own."""
    return installation(apiserver)


async def test_a_fleet_goes_with_its_gateway_and_nothing_else_does(
    apiserver: ApiServer, place: Placement
) -> None:
    admin = apiserver.admin
    other = "edge-default-other-12345678"
    async with infra_bench(apiserver, place) as bench:
        want(bench, place, fleet(place), fleet(place, name=other))
        await settled(bench)
        # Somebody's copy of one of ours, label included, and something with our label alone.
        copy = admin.get(bench.path("ConfigMap", place.namespace, NAME))
        meta = {
            "name": "copied",
            "namespace": place.namespace,
            "labels": copy["metadata"]["labels"],
        }
        admin.create({**copy, "metadata": meta})
        bench.applier.want({key(place): render_fleet(fleet(place), place)}, keep=())
        await settled(bench)
        await until(lambda: bench.live("Deployment", place.namespace, other) is None)
        await until(lambda: all(not bench.live(kind, place.namespace, other) for kind in KINDS))
        assert all(bench.live(kind, place.namespace, NAME) for kind in KINDS)
        assert bench.live("ConfigMap", place.namespace, "copied") is not None

        # A fleet that is kept is neither applied nor deleted.
        bench.applier.want({}, keep={key(place)})
        await settled(bench)
        assert all(bench.live(kind, place.namespace, NAME) for kind in KINDS)
        bench.applier.want({})
        await until(lambda: all(not bench.live(kind, place.namespace, NAME) for kind in KINDS))
        await settled(bench)
        assert bench.live("ConfigMap", place.namespace, "copied") is not None


async def test_a_client_s_secret_goes_with_its_fleet(
    apiserver: ApiServer, place: Placement
) -> None:
    """Its owner is the fleet's ServiceAccount: what may delete no Secrets leaves it to the garbage collector."""
    infra = fleet(place, owner=("GatewayClass", "eg", "5d9b1c3e"))
    meta = {"name": f"{NAME}-xds", "namespace": place.namespace}
    secret = adopt({"apiVersion": "v1", "kind": "Secret", "metadata": meta}, infra, place)
    async with infra_bench(apiserver, place) as bench:

        def owners() -> list[tuple[str, str]]:
            live = bench.live("Secret", place.namespace, f"{NAME}-xds") or {"metadata": {}}
            return [
                (one["kind"], one["uid"]) for one in live["metadata"].get("ownerReferences", ())
            ]

        def account() -> list[tuple[str, str]]:
            live = bench.live("ServiceAccount", place.namespace, NAME)
            return [("ServiceAccount", live["metadata"]["uid"])] if live else []

        bench.applier.want({key(place): (secret, *render_fleet(infra, place))})
        await settled(bench)
        first = account()
        assert first and owners() == first
        applied = bench.applier.applied
        bench.applier.want({key(place): (secret, *render_fleet(infra, place))})
        await settled(bench)
        assert bench.applier.applied == applied
        # A ServiceAccount that is made anew is another owner.
        apiserver.admin.delete(bench.path("ServiceAccount", place.namespace, NAME))
        await until(lambda: account() not in ([], first) and owners() == account())


async def test_a_name_that_somebody_else_has_is_not_taken(
    apiserver: ApiServer, place: Placement
) -> None:
    theirs = manifest(
        f"Service {place.namespace}/{NAME}", {"ports": [{"port": 9}]}, labels=dict(SELECTOR)
    )
    apiserver.admin.create(theirs)
    async with infra_bench(apiserver, place) as bench:
        want(bench, place, fleet(place))
        await until(lambda: bool(bench.problems))
        text = bench.applier.failure(key(place))
        assert text.startswith(f"Service {place.namespace}/{NAME}: 409 Foreign: it exists and was")
        assert bench.state(NAME).failure == text
        found = bench.live("Service", place.namespace, NAME)
        assert found is not None and [one["port"] for one in found["spec"]["ports"]] == [9]
        # The others are made all the same; once the name is free, so is this one, and the problem is over.
        assert bench.live("Deployment", place.namespace, NAME) is not None
        apiserver.admin.delete(bench.path("Service", place.namespace, NAME))
        await settled(bench)
        assert bench.problems[-1] == (key(place), "")
        assert bench.state(NAME).failure == ""
        found = bench.live("Service", place.namespace, NAME)
        assert found is not None and [one["port"] for one in found["spec"]["ports"]] == [80]


async def test_another_installation_is_left_alone(apiserver: ApiServer, place: Placement) -> None:
    second = msgspec.structs.replace(place, name="tenant-edge-gateway")
    async with infra_bench(apiserver, place) as bench:
        want(bench, place, fleet(place))
        await settled(bench)
    async with infra_bench(apiserver, second) as bench:
        bench.applier.want({})
        await settled(bench)
        assert bench.applier.deleted == 0
        want(bench, second, fleet(place))
        await until(lambda: bool(bench.problems))
        assert f"it belongs to the controller {place.identity}" in bench.problems[0][1]
        found = bench.live("Service", place.namespace, NAME)
        assert found is not None
        assert found["metadata"]["labels"]["gateway.edge.io/controller"] == place.identity


async def test_a_refused_manifest_is_told_and_tried_again(
    apiserver: ApiServer, place: Placement
) -> None:
    bad = ir.InfraPod(affinity={"nodeAffinity": "nonsense"})
    async with infra_bench(apiserver, place) as bench:
        want(bench, place, fleet(place, pod=bad))
        await until(lambda: bool(bench.problems))
        text = bench.applier.failure(key(place))
        assert text.startswith(f"Deployment {place.namespace}/{NAME}: ")
        assert bench.live("Service", place.namespace, NAME) is not None
        refused = bench.applier.refused
        await until(lambda: bench.applier.refused > refused + 1)
        assert len(bench.problems) == 1  # told once
        want(bench, place, fleet(place))
        await settled(bench)
        assert bench.problems[1:] == [(key(place), "")]
        assert bench.live("Deployment", place.namespace, NAME) is not None


async def test_only_the_leader_writes(apiserver: ApiServer, place: Placement) -> None:
    async with infra_bench(apiserver, place) as bench:
        bench.leading = False
        want(bench, place, fleet(place))
        await until(lambda: bench.inventory.synced)
        assert bench.live("Service", place.namespace, NAME) is None
        bench.leading = True
        bench.applier.wake()
        await settled(bench)
        assert bench.live("Service", place.namespace, NAME) is not None
        bench.leading = False
        bench.applier.wake()
        apiserver.admin.delete(bench.path("Service", place.namespace, NAME))
        await until(lambda: not bench.applier.settled)
        assert bench.live("Service", place.namespace, NAME) is None
        applied = bench.applier.applied
        bench.leading = True
        bench.applier.wake()
        await settled(bench)
        # Whoever led meanwhile may have changed anything, so all is applied anew.
        assert bench.applier.applied == applied + len(KINDS)
