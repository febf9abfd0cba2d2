"""Reach from one translation to the next: only routes that may lose something else are looked at, and all of them are told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate import Settings, Translation, translate
from tests.translate import world

pytestmark = pytest.mark.pure

PLAIN = Settings()
HOSTS = ("*.a.com", "x.a.com", "*.x.a.com", "y.x.a.com")
MATCHES: tuple[dict[str, Any], ...] = (
    {"path": {"value": "/"}},
    {"path": {"value": "/p"}},
    {"path": {"value": "/p"}, "method": "GET"},
    {"path": {"type": "Exact", "value": "/p/q"}},
    {"path": {"type": "RegularExpression", "value": "/p/.*"}},
    {"headers": [{"name": "h", "value": "v"}]},
)


def route(index: int, section: str, hosts: list[str], rules: list[list[dict[str, Any]]]) -> Object:
    refs = [{"name": "web", "port": 80}]
    return world.make(
        f"HTTPRoute default/r{index}",
        {
            "parentRefs": [{"name": "gw", **({"sectionName": section} if section else {})}],
            "hostnames": hosts,
            "rules": [{"matches": one, "backendRefs": refs} for one in rules],
        },
        generation=1,
    )


def conditions(made: Translation, name: str) -> set[str]:
    status = made.statuses.http_routes["default", name]
    return {one.type for parent in status.parents for one in parent.conditions}


def same(one: Translation, other: Translation) -> None:
    assert one.problems == other.problems
    assert list(one.statuses.items()) == list(other.statuses.items())
    assert dict(one.memo.reach.warnings.items()) == dict(other.memo.reach.warnings.items())
    assert one.memo.reach.across == other.memo.reach.across


_ROUTES = st.builds(
    route,
    st.integers(0, 4),
    st.sampled_from(["", "l0", "l1"]),
    st.lists(st.sampled_from(HOSTS), min_size=1, max_size=2, unique=True),
    st.lists(st.lists(st.sampled_from(MATCHES), min_size=1, max_size=2), min_size=1, max_size=3),
)
_GATEWAYS = st.builds(
    lambda names: world.nested_gateway(*names),
    st.lists(
        st.sampled_from(["", "*.a.com", "*.x.a.com", "x.a.com", "y.x.a.com"]),
        min_size=1,
        max_size=3,
        unique=True,
    ),
)
_GONE = st.builds(lambda at: ObjectRef("HTTPRoute", "default", f"r{at}"), st.integers(0, 4))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.one_of(_ROUTES, _ROUTES, _GATEWAYS, _GONE), min_size=1, max_size=2)))
def test_any_history_tells_what_nothing_tells(steps: list[list[Any]]) -> None:
    base = [world.gateway_class(), world.nested_gateway("*.a.com"), world.service("web")]
    snapshot = Snapshot.of(base)
    made = translate(snapshot, PLAIN)
    for edits in steps:
        removed = [one for one in edits if isinstance(one, ObjectRef)]
        snapshot = snapshot.replace([one for one in edits if one not in removed], removed)
        made = translate(snapshot, PLAIN, made)
        same(made, translate(snapshot, PLAIN))


def test_only_those_on_the_host_are_looked_at() -> None:
    """A hundred pairs, each of which has something to tell; a change to one of them asks two."""
    pairs = [
        world.route(index, host=f"h{index // 2}.example.com", path="/") for index in range(200)
    ]
    snapshot = Snapshot.of([world.gateway_class(), world.gateway(), world.service("web"), *pairs])
    before = translate(snapshot, PLAIN)
    assert all("RouteRulesOverlap" in conditions(before, f"r{at}") for at in range(200))
    snapshot = snapshot.replace([world.route(7, host="h3.example.com", path="/other")])
    after = translate(snapshot, PLAIN, before)
    assert after.memo.reach.suspects == {("default", "r6"), ("default", "r7")}
    assert "RouteRulesOverlap" not in conditions(after, "r6")
    old, new = before.statuses.http_routes, after.statuses.http_routes
    changed = {key for key in new if old[key] is not new[key]}
    assert changed == {("default", "r6"), ("default", "r7")}
    same(after, translate(snapshot, PLAIN))


def test_a_host_of_many_without_anything_to_tell_asks_one() -> None:
    routes = [world.route(index, host="h.example.com", path=f"/{index}") for index in range(100)]
    snapshot = Snapshot.of([world.gateway_class(), world.gateway(), world.service("web"), *routes])
    before = translate(snapshot, PLAIN)
    one = world.route(7, host="h.example.com", path="/other")
    after = translate(snapshot.replace([one]), PLAIN, before)
    assert after.memo.reach.suspects == {("default", "r7")}


def merged_class() -> list[Object]:
    """A class whose Gateways are one fleet, so that they share ports."""
    ref = {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "p", "namespace": "default"}
    controller = PLAIN.controller_name
    return [
        world.make("GatewayClass edge", {"controllerName": controller, "parametersRef": ref}),
        world.make("EdgeProxy default/p", {"mergeGateways": True}),
    ]


def test_a_new_owner_of_a_host_is_told() -> None:
    """Nothing changes that the route reads: another Gateway of its fleet has a nearer listener now."""
    near = world.gateway("near", hostname="x.a.com")
    first, other = world.route(0, host="x.a.com"), world.route(1, host="y.a.com")
    snapshot = Snapshot.of(
        [*merged_class(), world.gateway(hostname="*.a.com"), world.service("web"), first, other]
    )
    before = translate(snapshot, PLAIN)
    assert "RouteRulesShadowed" not in conditions(before, "r0")
    snapshot = snapshot.replace([near])
    after = translate(snapshot, PLAIN, before)
    assert after.work.routes == 0 and after.memo.reach.suspects == {("default", "r0")}
    assert "RouteRulesShadowed" in conditions(after, "r0")
    same(after, translate(snapshot, PLAIN))
    snapshot = snapshot.replace(removed=[ObjectRef("Gateway", "default", "near")])
    again = translate(snapshot, PLAIN, after)
    assert "RouteRulesShadowed" not in conditions(again, "r0")
    same(again, before)
