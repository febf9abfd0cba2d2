"""How clusters are treated by rules (ir.Cluster.treatments): a check that comes or goes is an edit of its policy alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from edgefast.resources.kinds import Object
from edgefast.resources.snapshot import Snapshot
from edgefast.translate import Translation, Work, translate
from edgefast.translate.fleet.treatments import TREATMENTS_MOST
from tests.translate import world
from tests.translate.policy.naive import At
from tests.translate.policy.test_own import PLAIN, changed, step

pytestmark = pytest.mark.pure

GATEWAY: At = ("Gateway", "gw", "")
TCP = {"active": {"type": "TCP", "tcp": {}}}


def traffic(name: str, *targets: At, check: Any = None, **spec: Any) -> Object:
    """A policy of backends with a check or without."""
    aims = [
        {
            "group": "" if kind == "Service" else "gateway.networking.k8s.io",
            "kind": kind,
            "name": target,
        }
        for kind, target, _ in targets
    ]
    said = {"circuitBreaker": {"maxConnections": 7}, **spec}
    if check is not None:
        said["healthCheck"] = check
    return world.make(
        {
            "apiVersion": "gateway.edge.io/v1alpha1",
            "kind": "BackendTrafficPolicy",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"targetRefs": aims, **said},
        }
    )


def treatments(made: Translation) -> dict[str, tuple[tuple[int, tuple[str, ...]], ...]]:
    (fleet,) = made.ir.fleets
    return {one.name: one.treatments for one in fleet.clusters if one.treatments}


def routed(at: int) -> At:
    return ("HTTPRoute", f"r{at}", "")


def own_policies(routes: Iterable[int], **parts: Any) -> list[Object]:
    return [traffic(f"p{at:03}", routed(at), **parts) for at in routes]


@pytest.mark.parametrize("merge", ["Inherit", "Override"])
def test_a_check_that_comes_or_goes_sends_one_resource(merge: str) -> None:
    many = world.many(60, 60)
    before = translate(many.replace([traffic("t", GATEWAY, mergeType=merge)]), PLAIN)
    at = many.replace([traffic("t", GATEWAY, mergeType=merge, check=TCP)])
    came = step(at, before)
    assert came.work == Work(routes=0, virtual_hosts=0, clusters=0, policies=1)
    assert changed(before, came) == {("policy", "traffic/default/t")}
    gone = step(many.replace([traffic("t", GATEWAY, mergeType=merge)]), came)
    assert gone.work == Work(routes=0, virtual_hosts=0, clusters=0, policies=1)
    assert changed(came, gone) == {("policy", "traffic/default/t")}


def test_every_way_in_which_rules_treat_a_cluster_is_there_once() -> None:
    own = traffic("own", routed(1), routed(2))
    over = traffic("over", GATEWAY, mergeType="Override")
    made = translate(world.many(20).replace([own, over]), PLAIN)
    assert treatments(made) == {
        "service/default/web/80": (
            (1, ("traffic/default/over",)),
            (1, ("traffic/default/over", "traffic/default/own")),
        )
    }


def test_what_is_treated_in_very_many_ways_names_those_with_checks_alone() -> None:
    """Or else each of ten thousand policies of routes to one Service would send the names of all of them."""
    few, more = range(TREATMENTS_MOST), range(TREATMENTS_MOST + 1)
    many = world.many(TREATMENTS_MOST + 1)
    first = translate(many.replace(own_policies(few)), PLAIN)
    assert len(treatments(first)["service/default/web/80"]) == TREATMENTS_MOST
    crowded = step(many.replace(own_policies(more)), first)
    assert treatments(crowded) == {}
    checked = own_policies([5], check=TCP)
    came = step(many.replace([*own_policies(more), *checked]), crowded)
    assert treatments(came) == {"service/default/web/80": ((0, ("traffic/default/p005",)),)}
    assert changed(crowded, came) == {
        ("policy", "traffic/default/p005"),
        ("cluster", "service/default/web/80"),
    }
    above = traffic("above", GATEWAY, mergeType="Override", check=TCP)
    assert step(many.replace([*own_policies(more), above]), came)
    fewer = step(many.replace([*own_policies(few), *checked]), came)
    assert len(treatments(fewer)["service/default/web/80"]) == TREATMENTS_MOST


def test_of_very_many_ways_an_override_stays_one() -> None:
    many: Snapshot = world.many(TREATMENTS_MOST + 1)
    above = traffic("above", GATEWAY, mergeType="Override", check=TCP)
    made = translate(many.replace([*own_policies(range(TREATMENTS_MOST + 1)), above]), PLAIN)
    assert treatments(made) == {"service/default/web/80": ((1, ("traffic/default/above",)),)}
