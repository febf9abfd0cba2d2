"""What an explanation says of the choice of an endpoint; tests/core/policy/test_chosen.py holds an engine against it."""

from __future__ import annotations

from typing import Any

import pytest

from core.fleets import CLUSTER, PORT, make_fleet, make_host, make_rule
from core.policy.policies import TRAFFIC
from edgefast import ir
from edgefast.explain import Explanation, RequestSpec, Served
from edgefast.explain.explain import explain
from edgefast.explain.outcome import find_outcome
from edgefast.explain.render import render_explanation

pytestmark = pytest.mark.pure


def balancing(one: ir.LoadBalancer, **unit: Any) -> ir.PolicyUnit:
    return ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(load_balancer=one), **unit)


def make_endpoints(port: int) -> tuple[ir.Endpoint, ...]:
    return tuple(
        ir.Endpoint(address=f"127.0.0.{at}", port=port, weight=1 + at % 2 * 4) for at in range(2, 9)
    )


def fleet_of(one: ir.LoadBalancer, endpoints: tuple[ir.Endpoint, ...], **rule: Any) -> ir.Fleet:
    return make_fleet(
        make_host(make_rule(traffic=(TRAFFIC,), **rule)),
        ir.Cluster(name=CLUSTER, endpoints=endpoints),
        balancing(one),
    )


def told_of(fleet: ir.Fleet, *headers: tuple[str, str]) -> Explanation:
    return explain(Served(fleet), RequestSpec(port=PORT, host="a.test", headers=headers))


def test_words() -> None:
    by_user = ir.LoadBalancer(type="hash", hash=ir.HashPolicy(headers=("x-user",)))
    fleet = fleet_of(by_user, make_endpoints(80))
    said = told_of(fleet, ("X-User", "ann"))
    assert said.notes == (f"{TRAFFIC}: endpoints by header x-user",)
    assert said.backends[0].chosen in {f"127.0.0.{at}:80" for at in range(2, 9)}
    text = "\n".join(render_explanation(said))
    assert f"its key finds {said.backends[0].chosen}, while all are healthy" in text
    assert told_of(fleet).backends[0].chosen == ""
    for one, words in (
        (ir.LoadBalancer(), "endpoint with the fewest requests in flight"),
        (ir.LoadBalancer(type="round_robin"), "endpoints in turn"),
        (ir.LoadBalancer(type="random"), "random endpoint"),
        (hashing(source=True), "endpoints by the client's address"),
        (hashing(cookie=ir.HashCookie("c")), "endpoints by cookie c"),
        (hashing(cookie=ir.HashCookie("c", 0)), "endpoints by cookie c, which edgefast sets"),
        (hashing(headers=("a", "b")), "endpoints by headers a, b"),
        (hashing(params=("q",)), "endpoints by parameter q"),
    ):
        assert told_of(fleet_of(one, make_endpoints(80))).notes == (f"{TRAFFIC}: {words}",)


def hashing(**parts: Any) -> ir.LoadBalancer:
    return ir.LoadBalancer(type="hash", hash=ir.HashPolicy(**parts))


def test_what_is_not_known_is_not_told() -> None:
    """Names stand for addresses that nobody here knows; a service may say another key."""
    by_user, user = hashing(headers=("x-user",)), ("x-user", "ann")
    named = (*make_endpoints(80), ir.Endpoint(hostname="b.test", port=80))
    assert told_of(fleet_of(by_user, named), user).backends[0].chosen == ""
    asked = ir.ExtAuth(backends=(ir.AuthBackend(cluster=CLUSTER),))
    fleet = fleet_of(by_user, make_endpoints(80), ext_auth=asked)
    assert told_of(fleet, user).backends[0].chosen == ""
    first = (ir.Endpoint(address="10.0.0.1", port=80, weight=0), make_endpoints(80)[0])
    again = ir.Endpoint(address="10.0.0.1", port=80, weight=1000)
    (part,) = told_of(fleet_of(by_user, (*first, again)), user).backends
    assert part.chosen == "127.0.0.2:80"  # of one address that is there twice the first counts


def test_a_diff_tells_another_choice() -> None:
    """What requests get has changed where endpoints are chosen otherwise; to say what is done anyway changes nothing."""
    ask = RequestSpec(port=PORT, host="a.test", headers=(("x-user", "ann"),))

    def settled(one: ir.LoadBalancer) -> tuple[tuple[str, object], ...]:
        return find_outcome(Served(fleet_of(one, make_endpoints(80))), ask).settings

    by_user = hashing(headers=("x-user",))
    assert settled(by_user) == (("load_balancer", by_user),)
    assert settled(ir.LoadBalancer()) == ()
    assert settled(ir.LoadBalancer(type="random")) != settled(ir.LoadBalancer(type="round_robin"))
