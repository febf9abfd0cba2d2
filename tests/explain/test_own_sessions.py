"""What keeps clients of an XBackend, and whose word that is: explain and diff."""

from __future__ import annotations

import pytest

from edgefast import ir
from edgefast.explain.session_persistence import describe_sessions, find_own_session, find_session

pytestmark = pytest.mark.pure

OWN = ir.SessionPersistence(name="sid")
ROUTE = ir.SessionPersistence(name="of-the-route")
POLICY = ir.PolicyUnit(
    name="traffic/ns/p", traffic=ir.Traffic(session=ir.SessionPersistence(name="of-the-policy"))
)
PODS = ir.BackendRef(cluster="xbackend/shop/carts/h2", session=OWN)
PLAIN = ir.BackendRef(cluster="service/shop/web/80")


def told(rule: ir.Rule, *units: ir.PolicyUnit) -> list[str]:
    return list(describe_sessions(rule, units, find_session(rule, units)))


def test_each_backend_by_its_own_word() -> None:
    rule = ir.Rule(route="shop/web", index=0, backends=(PODS, PLAIN), session=ROUTE)
    assert told(rule) == [
        "the route: clients stay with their endpoint by cookie of-the-route",
        "XBackend shop/carts: clients stay with their endpoint by cookie sid",
    ]


def test_what_nobody_follows_is_not_told() -> None:
    rule = ir.Rule(route="shop/web", index=0, backends=(PODS,), session=ROUTE)
    assert told(rule) == ["XBackend shop/carts: clients stay with their endpoint by cookie sid"]
    default = ir.Rule(route="shop/web", index=0, backends=(PODS,), traffic=(POLICY.name,))
    assert told(default, POLICY) == told(rule)


def test_an_override_comes_before() -> None:
    rule = ir.Rule(route="shop/web", index=0, backends=(PODS,), traffic=(POLICY.name,), ceilings=1)
    assert find_own_session(PODS, rule, (POLICY,)) is None
    assert told(rule, POLICY) == [
        "traffic/ns/p: clients stay with their endpoint by cookie of-the-policy"
    ]
