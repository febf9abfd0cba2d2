"""What is said of zones: by an explanation, of a Service's wish and a policy's word, and by a comparison of two tables."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.fleets import CLUSTER, PORT, make_fleet, make_host, make_listener, make_rule
from core.policy.policies import TRAFFIC
from edgefast import ir
from edgefast.explain import Explanation, Live, RequestSpec, Served
from edgefast.explain.explain import explain
from edgefast.explain.fleet_pair import Pair
from edgefast.explain.outcome import find_outcome
from edgefast.explain.render import render_explanation
from edgefast.explain.zone_diff import compare_zones
from edgefast.explain.zones import describe_zones

pytestmark = pytest.mark.pure

WISH = ir.ZoneAware(min_endpoints=1, force=1)
ENDPOINTS = (
    ir.Endpoint(address="10.0.0.1", port=80, zone="a"),
    ir.Endpoint(address="10.0.0.2", port=80, zone="b"),
    ir.Endpoint(address="10.0.0.3", port=80),
)


def fleet_of(
    balancer: ir.LoadBalancer | None = None, wish: ir.ZoneAware | None = None, **cluster: Any
) -> ir.Fleet:
    made = ir.Cluster(name=CLUSTER, zones=wish, **{"endpoints": ENDPOINTS, **cluster})
    host = make_host(make_rule(traffic=(TRAFFIC,) if balancer else ()))
    unit = ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(load_balancer=balancer))
    return make_fleet(make_listener(), host, made, *((unit,) if balancer else ()))


def told_of(fleet: ir.Fleet) -> Explanation:
    return explain(Served(fleet), RequestSpec(port=PORT, host="a.test"))


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (ir.ZoneAware(percent=0), "of all zones equally"),
        (WISH, "of the proxy's own zone first, all while 1 is healthy there"),
        (
            ir.ZoneAware(force=2, percent=30),
            "of the proxy's own zone first, all while 2 are healthy there, with at least 6 "
            "healthy endpoints, for 30 % of requests",
        ),
        (
            ir.ZoneAware(min_endpoints=0),
            "of the proxy's own zone first, while all zones are equally busy",
        ),
        (ir.ZoneAware(weights=(("a", 3), ("b", 0))), "by zone: a 3, b 0, others 1"),
    ],
)
def test_words(one: ir.ZoneAware, words: str) -> None:
    assert describe_zones(one) == words
    said = told_of(fleet_of(ir.LoadBalancer(type="random", zones=one)))
    assert said.notes == (f"{TRAFFIC}: random endpoint, {words}",)


def test_a_service_is_told_where_no_policy_speaks_of_zones() -> None:
    wish = f"{CLUSTER}: endpoints {describe_zones(WISH)}, as its Service sets"
    assert told_of(fleet_of(None, WISH)).notes == (wish,)
    assert told_of(fleet_of(ir.LoadBalancer(type="random"), WISH)).notes[-1] == wish
    off = ir.LoadBalancer(zones=ir.ZoneAware(percent=0))
    by_key = ir.LoadBalancer(type="hash", hash=ir.HashPolicy(source=True))
    for one in (off, by_key):
        assert wish not in told_of(fleet_of(one, WISH)).notes
    text = "\n".join(render_explanation(told_of(fleet_of())))
    assert "endpoints 10.0.0.1:80 in a, 10.0.0.2:80 in b, 10.0.0.3:80" in text


def test_a_proxy_that_is_asked_says_where_it_is() -> None:
    for fleet in (fleet_of(None, WISH), fleet_of(ir.LoadBalancer(zones=WISH))):
        served = Served(fleet, live=Live({}, zone="a"))
        assert (
            explain(served, RequestSpec(port=PORT, host="a.test")).notes[-1]
            == "this proxy is in zone a"
        )
        served = Served(fleet, live=Live({}))
        said = explain(served, RequestSpec(port=PORT, host="a.test")).notes[-1]
        assert said == "this proxy is in an unknown zone"
    # Where nobody asks, and where zones have weights, it is all the same.
    weights = fleet_of(ir.LoadBalancer(zones=ir.ZoneAware(weights=(("a", 1),))))
    for fleet in (fleet_of(), weights):
        said = explain(
            Served(fleet, live=Live({}, zone="a")), RequestSpec(port=PORT, host="a.test")
        )
        assert not [one for one in said.notes if "this proxy" in one]


def test_a_policy_that_says_something_else_is_another_outcome() -> None:
    asked = RequestSpec(port=PORT, host="a.test")
    one, other = (
        find_outcome(Served(fleet_of(ir.LoadBalancer(zones=zones))), asked)
        for zones in (WISH, ir.ZoneAware())
    )
    assert one.settings != other.settings


def test_tables_are_compared() -> None:
    def changes(before: ir.Fleet, after: ir.Fleet) -> list[str]:
        return [one.text for one in compare_zones(Pair(Served(before), Served(after)))]

    assert changes(fleet_of(None, WISH), fleet_of(None, WISH)) == []
    (wanted,) = changes(fleet_of(), fleet_of(None, WISH))
    assert wanted == f"{CLUSTER}: its Service selects endpoints {describe_zones(WISH)}"
    (unwanted,) = changes(fleet_of(None, WISH), fleet_of())
    assert unwanted == f"{CLUSTER}: its Service selects endpoints as it comes"
    moved = (msgspec.structs.replace(ENDPOINTS[0], zone="b"), *ENDPOINTS[1:])
    (told,) = changes(fleet_of(None, WISH), fleet_of(None, WISH, endpoints=moved))
    assert told == f"{CLUSTER}: endpoints are in other zones"
    assert changes(fleet_of(), fleet_of(endpoints=moved)) == []  # nobody asks
    # Policies' wishes are not in clusters: that somebody has one is seen by the record of the fleet.
    asked = msgspec.structs.replace(fleet_of(), proxies=ir.Proxies())
    assert changes(asked, fleet_of(endpoints=moved)) == [told]
    # Who comes or goes has not moved.
    assert changes(fleet_of(None, WISH), fleet_of(None, WISH, endpoints=ENDPOINTS[:2])) == []
    assert changes(fleet_of(None, WISH, endpoints=ENDPOINTS[1:]), fleet_of(None, WISH)) == []
