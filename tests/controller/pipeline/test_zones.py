"""Where a fleet's proxies are: from the EndpointSlices of its own Service into its table, and only where zones count."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edgefast import ir
from edgefast.api.kinds import Object
from edgefast.diagnostics.problem import ObjectRef
from edgefast.table.shards import diff
from tests.controller.pipeline.running import many, running_pipeline
from tests.translate import world

pytestmark = pytest.mark.pure

FLEET = "edge-default-gw-3d45476e"
KEY = ("proxies", "fleet")


def pods(**zones: str) -> Object:
    """The slice of the fleet's Service: by pod its zone, with a "!" before it one that is not ready."""
    return world.make(
        f"EndpointSlice edge-gateway-system/{FLEET}-x1",
        labels={"kubernetes.io/service-name": FLEET},
        addressType="IPv4",
        endpoints=[
            {
                "addresses": [f"10.1.0.{at}"],
                "zone": zone.lstrip("!"),
                "conditions": {"ready": not zone.startswith("!")},
                "targetRef": {"kind": "Pod", "name": name, "namespace": "edge-gateway-system"},
            }
            for at, (name, zone) in enumerate(zones.items())
        ],
    )


def policy(zone_aware: dict[str, Any] | None) -> Object:
    balancer: dict[str, Any] = {"type": "LeastRequest"}
    if zone_aware is not None:
        balancer["zoneAware"] = zone_aware
    target = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}
    return world.make(
        "BackendTrafficPolicy default/p", {"targetRefs": [target], "loadBalancer": balancer}
    )


def wishing(name: str) -> Object:
    """A Service that wants endpoints of the client's zone."""
    return world.make(
        f"Service default/{name}", {"ports": [{"port": 80}], "trafficDistribution": "PreferClose"}
    )


async def test_the_table_of_a_fleet_says_where_its_proxies_are() -> None:
    async with running_pipeline(many(5)) as made:
        await made.wait_for(1)
        first = await made.change(pods(p1="a", p2="b", p3="!b"))
        (fleet,) = first.shards
        assert KEY not in first.shards[fleet].resources  # nobody asks
        plain = await made.change(policy(None))
        assert KEY not in plain.shards[fleet].resources
        asked = await made.change(policy({"preferLocal": {}}))
        data = asked.shards[fleet].resources[KEY].data
        assert msgspec.msgpack.decode(data, type=ir.Proxies) == ir.Proxies(
            shares=(("a", 1), ("b", 1)), zones=(("p1", "a"), ("p2", "b"), ("p3", "b"))
        )
        # A pod becomes ready, another one goes: that is all that is sent, and no route is looked at.
        after = await made.change(pods(p1="a", p3="b"))
        delta = diff(asked.shards[fleet], after.shards[fleet])
        assert [(one.type, one.name) for one in delta.put] == [KEY] and not delta.remove
        assert after.translation.work.routes == after.translation.work.policies == 0
        # Endpoints by weight are the same for all proxies, and "no" is no wish.
        for said in ({"weightedZones": [{"zone": "a", "weight": 2}]}, {}):
            gone = await made.change(policy(said))
            assert KEY not in gone.shards[fleet].resources


async def test_what_services_want_counts_as_well() -> None:
    async with running_pipeline(many(2)) as made:
        await made.wait_for(1)
        await made.change(pods(p1="a"))
        wished = await made.change(wishing("web"))
        (fleet,) = wished.shards
        assert KEY in wished.shards[fleet].resources
        back = await made.change(world.service("web"))
        assert KEY not in back.shards[fleet].resources
        # Of a Service that nobody uses nothing follows.
        other = await made.change(wishing("other"))
        assert KEY not in other.shards[fleet].resources


async def test_proxies_of_no_zone_are_told_until_their_nodes_have_labels() -> None:
    def told(outcome: Any) -> list[str]:
        problems = outcome.translation.problems
        return [str(one.object) for one in problems if one.reason == "ZoneNotKnown"]

    async with running_pipeline(many(1)) as made:
        await made.wait_for(1)
        await made.change(policy({"preferLocal": {"force": {}}}))
        assert told(await made.change(pods(p1="a", p2=""))) == ["Gateway default/gw"]
        assert told(await made.change(pods(p1="a", p2="b"))) == []
        named = ObjectRef("EndpointSlice", "edge-gateway-system", f"{FLEET}-x1")
        assert told(await made.change(removed=(named,))) == []  # there are none
