"""Rule order: the annotation that gives the rules of an HTTPRoute their turns among all rules of a hostname.

In: an HTTPRoute. Out: one number for each rule, or what is wrong with the annotation. The smaller number is tried first, among
regular expressions of any length and among equal paths. Rules with a number come before rules without one. An HTTPRoute that
serves an Ingress has the numbers in its origin.
Must never: use a part of an invalid annotation; the rules then answer 500.
"""

from __future__ import annotations

import re

import msgspec

from edgefast.api.gateway.grpcroute import Route
from edgefast.api.gateway.httproute import HTTPRoute

__all__ = ["MAX_ORDER", "RULE_ORDER", "RuleOrder", "read_order"]

#: Annotation of an HTTPRoute: numbers with commas, one for each rule.
RULE_ORDER = "gateway.edge.io/rule-order"
#: Largest number: more than the rules of all routes of a hostname.
MAX_ORDER = 9_999_999

_NUMBERS = re.compile(r"[0-9]{1,7}( ?, ?[0-9]{1,7})*")


class RuleOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of a route's rules, () without any; `wrong`: why the annotation is invalid, "" if it is not."""

    turns: tuple[int, ...] = ()
    wrong: str = ""


_NONE = RuleOrder()


def read_order(route: Route) -> RuleOrder:
    """Return the turns of the rules of a route."""
    if not isinstance(route, HTTPRoute):
        return _NONE
    if route.origin is not None:
        return RuleOrder(turns=tuple(one.rank for one in route.origin.rules))
    text = route.metadata.annotations.get(RULE_ORDER)
    if text is None:
        return _NONE
    rules = len(route.spec.rules)
    if not _NUMBERS.fullmatch(text):
        message = f"must be numbers from 0 to {MAX_ORDER} with commas, one for each rule"
        return RuleOrder(wrong=f"{message}; the route answers 500")
    turns = tuple(int(one) for one in text.split(","))
    if len(turns) != rules:
        given = "1 number" if len(turns) == 1 else f"{len(turns)} numbers"
        return RuleOrder(wrong=f"{given} for {rules} rules; the route answers 500")
    return RuleOrder(turns=turns)
