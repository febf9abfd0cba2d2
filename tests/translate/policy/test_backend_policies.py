"""How clusters are treated by rules (ir.Cluster.treatments): a check that comes or goes is an edit of its policy alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.ir import CHECKS_MOST
from edgefast.translate import Translation, Work, translate
from edgefast.translate.fleet.backend_policies import TREATMENTS_MOST
from tests.translate import world
from tests.translate.policy.naive import At
from tests.translate.policy.test_edge_policies import PLAIN, changed, step

pytestmark = pytest.mark.pure

GATEWAY: At = ("Gateway", "gw", "")
TCP = {"active": {"type": "TCP", "tcp": {}}}


def traffic(name: str, *targets: At, check: Any = None, created: str = "", **spec: Any) -> Object:
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
            "metadata": {
                "name": name,
                "namespace": "default",
                **({"creationTimestamp": created} if created else {}),
            },
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


# --- more checks of a backend than are made ---------------------------------------------------------------------------------------------


def every(seconds: int) -> Any:
    """A check that is another one for each number."""
    return {"active": {"type": "TCP", "tcp": {}, "interval": f"{seconds}s"}}


def aged(at: int, **parts: Any) -> Object:
    """A policy with a check of its own, the younger the smaller its number."""
    created = f"2026-01-{28 - at:02}T00:00:00Z"
    return traffic(f"p{at:03}", routed(at), created=created, **{"check": every(at + 1), **parts})


def made_checks(made: Translation) -> list[str]:
    """The units whose check the first cluster has, in the order in which an engine finds them (prober.pyx, checks_of)."""
    (fleet,) = made.ir.fleets
    units = {one.name: one for one in fleet.policies}
    found: dict[Any, str] = {}
    for _, ways in fleet.clusters[0].treatments:
        for unit in ways:
            said = units[unit].traffic
            if said is not None and said.check is not None:
                found.setdefault(said.check, unit)
                break
    return [one.rpartition("/")[2] for one in found.values()][:CHECKS_MOST]


def programmed(made: Translation, name: str) -> tuple[str, str]:
    (entry,) = made.statuses.backend_traffic_policies["default", name].ancestors
    (one,) = (one for one in entry.conditions if one.type == "Programmed")
    return one.status, one.reason


def told(made: Translation) -> list[str]:
    return [
        one.object.name
        for one in made.problems
        if one.object and "its health check is not used" in one.message
    ]


def test_as_many_checks_as_are_made_are_nothing_to_tell() -> None:
    made = translate(world.many(9).replace([aged(at) for at in range(CHECKS_MOST)]), PLAIN)
    assert set(made_checks(made)) == {f"p{at:03}" for at in range(CHECKS_MOST)}
    assert told(made) == []
    ways = treatments(made)["service/default/web/80"]
    assert ways == tuple(sorted(ways))


def test_of_more_checks_those_of_the_oldest_policies_are_made_and_the_others_say_so() -> None:
    many = world.many(12)
    before = translate(many.replace([aged(at) for at in range(CHECKS_MOST)]), PLAIN)
    after = step(many.replace([aged(at) for at in range(CHECKS_MOST + 2)]), before)
    assert made_checks(after) == [f"p{at:03}" for at in range(CHECKS_MOST + 1, 1, -1)]
    assert told(after) == ["p000", "p001"]
    assert programmed(after, "p000") == programmed(after, "p001") == ("False", "NotSupported")
    assert programmed(after, "p002") == ("True", "Programmed")
    # An override comes before all others, however young it is.
    above = traffic(
        "above", GATEWAY, mergeType="Override", check=every(99), created="2026-09-01T00:00:00Z"
    )
    alone = step(many.replace([*(aged(at) for at in range(8)), above]), after)
    assert made_checks(alone) == ["above"] and told(alone) == []  # it holds for all of them
    back = step(many.replace([aged(at) for at in range(CHECKS_MOST + 2)]), alone)
    assert told(back) == ["p000", "p001"]
    # One that goes makes room, and so does one that says what another one says.
    fewer = step(many.replace([aged(at) for at in range(CHECKS_MOST + 1)]), back)
    assert told(fewer) == ["p000"]
    alike = step(
        many.replace([*(aged(at) for at in range(CHECKS_MOST)), aged(6, check=every(3))]), fewer
    )
    assert told(alike) == [] and programmed(alike, "p000") == ("True", "Programmed")
    apart = step(many.replace([aged(at) for at in range(CHECKS_MOST + 1)]), alike)
    assert told(apart) == ["p000"]
    none = step(many, apart)
    assert told(none) == [] and none.memo.judged.unmade.places == {}


def test_of_very_many_ways_only_those_with_a_check_that_is_made_are_named() -> None:
    more = range(TREATMENTS_MOST + 1)
    many = world.many(TREATMENTS_MOST + 1)
    plain = own_policies(more[8:])
    made = translate(many.replace([*plain, *(aged(at) for at in range(8))]), PLAIN)
    assert treatments(made)["service/default/web/80"] == tuple(
        (0, (f"traffic/default/p{at:03}",)) for at in range(7, 1, -1)
    )
    assert told(made) == ["p000", "p001"]
    step(many.replace([*own_policies(more[7:]), *(aged(at) for at in range(7))]), made)
