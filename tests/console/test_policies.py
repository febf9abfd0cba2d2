"""Policies in the console: at the rule that they hold for, with what was counted; problems at the rules; changes."""

from __future__ import annotations

import msgspec
import pytest

from console.fleets import look_at, make_fleet, make_host, make_rule
from edgefast import ir
from edgefast.api.kinds import EDGE_GROUP
from edgefast.console.changes import _try_requests
from edgefast.console.detail import Section, describe_node
from edgefast.console.live_metrics import Counters, Meter
from edgefast.console.rows import make_row
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.table import compile_fleet

pytestmark = pytest.mark.pure

NAME = "security/default/who#authorization"
RULES = (ir.AccessRule(allow=True, headers=(("x-api-key", ("k-17",)),)),)
WHO = ir.PolicyUnit(name=NAME, authorization=ir.Authorization(RULES))
ASKED = ir.PolicyUnit(
    name="security/default/who#extAuth",
    ext_auth=ir.ExtAuth(backends=(ir.AuthBackend("service/default/auth/80"),), fail_open=True),
)
SIZE = ir.PolicyUnit(name="traffic/default/size", traffic=ir.Traffic(body_size=10))


def make(*units: ir.PolicyUnit, **rule: object) -> ir.Fleet:
    fleet = make_fleet([make_host("a.test", [make_rule(0, **rule)])])
    return msgspec.structs.replace(fleet, policies=units)


GUARDED = make(
    WHO,
    ASKED,
    SIZE,
    policies=(NAME, ASKED.name),
    traffic=(SIZE.name,),
    lost=(("security/default/old#extAuth", "security/default/who#extAuth"),),
)


def sections(fleet: ir.Fleet, meter: Meter | None = None) -> dict[str, Section]:
    state = look_at(fleet, meter=meter)
    (node,) = state.index.routes["default/r0"]
    return {one.title: one for one in describe_node(state, node).sections}


def test_what_backends_say_is_told_of_each() -> None:
    bound = ir.PolicyUnit(name="traffic/default/web", traffic=ir.Traffic(max_requests=5))
    treatment = ir.BackendPolicy((bound.name,), lost=(("traffic/default/new", bound.name),))
    broken = ir.BackendPolicy(("traffic/default/none#closed",), 1)
    shares = tuple(
        ir.BackendRef(cluster=name, treatment=one)
        for name, one in (("service/default/web/80", treatment), ("backend/default/far", broken))
    )
    found = sections(make(bound, backends=shares))
    assert found["Settings of backends"].lines == (
        ("service/default/web/80", "traffic/default/web: parallel requests 5 at most"),
        (
            "service/default/web/80",
            "traffic/default/new has no effect: overridden by traffic/default/web",
        ),
        (
            "backend/default/far",
            "traffic/default/none#closed: answers 500: it was not found in the table",
        ),
    )
    assert "Settings of backends" not in {
        one.title for one in sections(GUARDED).values() if one.lines
    }


def test_units_are_told_at_their_rule() -> None:
    found = sections(GUARDED)
    assert found["Policies"].lines == (
        (NAME, "1 rule, else Deny"),
        (ASKED.name, "asks service/default/auth/80, passes when it fails"),
    )
    assert found["Settings of policies"].lines == (
        ("request body", "10 bytes, traffic/default/size (EdgeProxy: of any size)"),
    )
    assert found["Policies without effect"].lines == (
        ("security/default/old#extAuth", "overridden by security/default/who#extAuth"),
    )
    assert "k-17" not in repr(found)


def test_what_the_edgeproxy_says_stands_beside_settings_of_policies() -> None:
    traffic = ir.Traffic(body_size=10, request_timeout=2000, idle_timeout=0, send_timeout=5)
    unit = ir.PolicyUnit(name=SIZE.name, traffic=traffic)
    fleet = make(unit, traffic=(SIZE.name,))

    def told(http: ir.HttpSettings) -> dict[str, str]:
        listeners = tuple(msgspec.structs.replace(one, http=http) for one in fleet.listeners)
        found = sections(msgspec.structs.replace(fleet, listeners=listeners))
        return dict(found["Settings of policies"].lines)

    low = told(ir.HttpSettings(body_size=5, stream_idle_timeout=7))
    assert (
        low["request body"] == "5 bytes, traffic/default/size, cut by EdgeProxy spec.http.bodySize"
    )
    assert low["idle"] == "without end, traffic/default/size (EdgeProxy: 7 ms)"
    high = told(ir.HttpSettings(body_size=50))
    assert high["request body"] == "10 bytes, traffic/default/size (EdgeProxy: 50 bytes at most)"
    assert "2 s, traffic/default/size (EdgeProxy: 15 s)" in high.values()
    assert "5 ms, traffic/default/size" in high.values()


def test_filters_of_a_listener_are_told_at_it() -> None:
    name = "listener/default/edge/http#filters.requests[0]"
    fleet = make(ir.PolicyUnit(name=name, ext_auth=ASKED.ext_auth))
    front = msgspec.structs.replace(fleet.listeners[0], filters=(name, f"{name}1"))
    meter = Meter((1.0,))
    label = b"listener/default/edge/http\tfilters.requests[0]"
    meter.take(0.0, Counters(policies={label: (10, 0, 0, 0)}))
    meter.take(2.0, Counters(policies={label: (20, 4, 0, 0)}))
    state = look_at(msgspec.structs.replace(fleet, listeners=(front,)), meter=meter)
    (rule,) = state.index.routes["default/r0"]
    node = rule.parent.parent
    found = {one.title: one for one in describe_node(state, node).sections}
    (first, told), (_, missing) = found["Filters before routing"].lines
    assert first == "filters.requests[0]" and "service/default/auth/80" in told
    assert "5/s let in" in told and "2/s refused" in told
    assert missing == "not found in the table: answers 500"


def test_what_was_counted() -> None:
    meter = Meter((1.0,))
    label = b"security/default/who\tauthorization"
    meter.take(0.0, Counters(policies={label: (10, 0, 0, 0)}))
    meter.take(10.0, Counters(policies={label: (30, 5, 0, 0)}))
    assert sections(GUARDED, meter)["Policies"].lines[0] == (
        NAME,
        "1 rule, else Deny (2/s let in, 0.5/s refused)",
    )


def test_a_unit_that_is_broken_or_missing() -> None:
    broken = ir.PolicyUnit(name=NAME, status=500, reason="no such Service")
    assert sections(make(broken, policies=(NAME,)))["Policies"].lines == (
        (NAME, "answers 500: no such Service"),
    )
    fleet = make(policies=(NAME,), traffic=(SIZE.name,))
    assert sections(fleet)["Policies"].lines == ((NAME, "not found in the table: answers 500"),)
    assert (
        sections(fleet)["Settings of policies"].lines[0][1] == "not found in the table: answers 500"
    )


def test_a_rule_is_tagged_and_found_by_its_policies() -> None:
    state = look_at(GUARDED)
    (node,) = state.index.routes["default/r0"]
    assert "3 policies" in make_row(state, node).tags
    assert state.index.search("security/default/who#extauth") == [node]
    state = look_at(make(policies=(NAME,)))
    (node,) = state.index.routes["default/r0"]
    assert "policy broken" in make_row(state, node).tags


def test_problems_of_a_policy_are_told_at_its_rules() -> None:
    ref = ObjectRef("SecurityPolicy", "default", "who", EDGE_GROUP)
    state = look_at(GUARDED, [Problem(ref, "spec.extAuth", "Invalid", "x")])
    (node,) = state.index.routes["default/r0"]
    assert state.marks.errors[node.id] == 1


def test_a_change_of_what_a_policy_says_is_tried() -> None:
    other = msgspec.structs.replace(WHO, authorization=ir.Authorization((), allow=True))
    old, new = make(WHO, policies=(NAME,)), make(other, policies=(NAME,))
    sides = [dict(compile_fleet(one).resources) for one in (old, new)]
    found, tried, _ = _try_requests(old, new, *sides)
    assert tried and any("instead of 403" in one.text for one in found)
    assert found[0].kind == "opened" and found[0].opens


@pytest.mark.parametrize(
    ("traffic", "rows"),
    [
        (
            ir.Traffic(load_balancer=ir.LoadBalancer(type="round_robin", slow_start=30_000)),
            {"endpoints": "turn"},
        ),
        (
            ir.Traffic(
                load_balancer=ir.LoadBalancer(
                    type="hash", hash=ir.HashPolicy(headers=("x-user", "x-room"))
                )
            ),
            {"endpoints": "x-user"},
        ),
        (
            ir.Traffic(max_endpoint_connections=3, max_connections=9, max_connection_requests=100),
            {
                "connections of an endpoint": "3 at most",
                "connections": "9 at most",
                "requests of a connection": "100 at most",
            },
        ),
        (
            ir.Traffic(max_connection_requests=0, max_endpoint_connections=0),
            {"requests of a connection": "any number", "connections of an endpoint": "0 at most"},
        ),
        (
            ir.Traffic(outlier=ir.OutlierDetection(server=0, failures=85, local=0), panic=30),
            {
                "failing endpoints": "85 percent of the answers in 3 s that fail",
                "panic": "30 percent",
            },
        ),
    ],
)
def test_how_endpoints_are_chosen_and_bounded(traffic: ir.Traffic, rows: dict[str, str]) -> None:
    unit = ir.PolicyUnit(name=SIZE.name, traffic=traffic)
    told = dict(sections(make(unit, traffic=(SIZE.name,)))["Settings of policies"].lines)
    assert told.keys() == rows.keys()
    for label, text in rows.items():
        assert text in told[label]
        assert SIZE.name in told[label]
