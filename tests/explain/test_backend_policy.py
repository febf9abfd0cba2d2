"""What is said of backends: one table of leaves, from which explain, diff and the console tell it."""

from __future__ import annotations

import pytest

from edgefast import ir
from edgefast.explain.backend import BACKEND_FIELDS, LEAVES
from edgefast.explain.backend_policy import (
    list_backend_policies,
    settle_backend_policy,
    settle_rule,
    units_at_backends,
)
from edgefast.explain.traffic import COUNTS, FIELDS

pytestmark = pytest.mark.pure

#: Leaves that are settled before a request has a backend, or are about its answer to the client.
OF_REQUESTS = {
    *("body_size", "request_timeout", "idle_timeout"),
    *("fault", "override", "compression", "bandwidth", "session"),
}


def unit(name: str, **said: int) -> ir.PolicyUnit:
    return ir.PolicyUnit(name=name, traffic=ir.Traffic(**said))


def test_every_leaf_is_told() -> None:
    leaves = {one.field for one in LEAVES}
    assert not leaves & {*BACKEND_FIELDS}
    assert {*ir.Traffic.__struct_fields__} == leaves | {*BACKEND_FIELDS} | OF_REQUESTS
    assert {*BACKEND_FIELDS} == {*FIELDS, *COUNTS} - OF_REQUESTS


@pytest.mark.parametrize(("most", "said"), [(3, "3 at most"), (0, "any number")])
def test_requests_of_a_connection_are_told_at_a_backend(most: int, said: str) -> None:
    units = [unit("u", max_connection_requests=most)]
    assert settle_backend_policy(units, 0)["max_connection_requests"].value == most
    told = list_backend_policies(units, ir.BackendPolicy(traffic=("u",)))
    assert list(told) == [f"u: requests of a connection {said}"]


def test_of_a_rule_whose_backends_have_their_own_nothing_is_told_of_backends() -> None:
    units = [unit("u", max_connections=5, body_size=7)]
    own = ir.BackendRef(cluster="a", treatment=ir.BackendPolicy())
    away = ir.BackendRef(cluster="b", weight=0)
    rule = ir.Rule(route="ns/r", index=0, traffic=("u",), backends=(own, away))
    assert settle_rule(rule, units, None).keys() == {"body_size"}
    assert not units_at_backends(rule, units)
    both = ir.Rule(
        route="ns/r", index=0, traffic=("u",), backends=(own, ir.BackendRef(cluster="b"))
    )
    assert settle_rule(both, units, None).keys() == {"body_size", "max_connections"}
    assert units_at_backends(both, units) == units
