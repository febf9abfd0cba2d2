"""The rules as a whole: what they read exists; their CEL is in test_cel.py."""

from __future__ import annotations

import pytest

from api.validation_cases import OWN, name_rule
from edgefast.api.model.shape import shape_of
from edgefast.api.validation.rule import Rule
from edgefast.api.validation.rules import _BOOKS, rules_of

pytestmark = pytest.mark.pure

RULES = [rule for book in _BOOKS for rule in book.rules]


@pytest.mark.parametrize("rule", RULES, ids=name_rule)
def test_rule_reads_fields_that_exist(rule: Rule) -> None:
    assert rule.reads
    assert set(rule.reads) <= {field.attr for field in shape_of(rule.struct).fields}
    assert rule in rules_of(rule.struct)


@pytest.mark.parametrize("rule", RULES, ids=name_rule)
def test_only_rules_of_our_own_kinds_have_cel(rule: Rule) -> None:
    assert bool(rule.cel) == bool(rule.message) == (rule in OWN)


def test_no_rule_of_our_own_kinds_is_left_out() -> None:
    assert [rule for rule in OWN if rule not in RULES] == []
