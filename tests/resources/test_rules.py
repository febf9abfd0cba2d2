"""The rules as a whole: what they read exists; their CEL is in test_cel.py."""

from __future__ import annotations

import pytest

from edgefast.resources.edge.sessionpersistence import TrafficSession
from edgefast.resources.model.shape import shape_of
from edgefast.resources.rules import (
    backend,
    config,
    edge,
    healthcheck,
    jwt,
    loadbalancer,
    policy,
    policytarget,
    routefilter,
    sessionpersistence,
    traffic,
    zoneaware,
)
from edgefast.resources.rules.rule import Rule
from edgefast.resources.rules.rules import _BOOKS, rules_of

pytestmark = pytest.mark.pure

RULES = [rule for book in _BOOKS for rule in book.rules]
OWN = [
    rule
    for one in (
        edge,
        healthcheck,
        jwt,
        loadbalancer,
        policy,
        policytarget,
        routefilter,
        traffic,
        zoneaware,
        backend,
        config,
    )
    for rule in one.BOOK.rules
]
#: Those of them that are said of the API's own kinds, too.
OWN += [rule for rule in sessionpersistence.BOOK.rules if rule.struct is TrafficSession]


def _name(rule: Rule) -> str:
    return f"{rule.struct.__name__}-{rule.check.__name__}"


@pytest.mark.parametrize("rule", RULES, ids=_name)
def test_rule_reads_fields_that_exist(rule: Rule) -> None:
    assert rule.reads
    assert set(rule.reads) <= {field.attr for field in shape_of(rule.struct).fields}
    assert rule in rules_of(rule.struct)


@pytest.mark.parametrize("rule", RULES, ids=_name)
def test_only_rules_of_our_own_kinds_have_cel(rule: Rule) -> None:
    assert bool(rule.cel) == bool(rule.message) == (rule in OWN)
