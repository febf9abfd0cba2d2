"""Example requests of an authorization: they lie on both sides of each of its conditions, and few of them are made."""

from __future__ import annotations

import random

import pytest

from edgefast import ir
from edgefast.explain.access import evaluate_access
from edgefast.explain.authz_examples import make_authz_examples
from edgefast.explain.example_request import ExampleRequest
from edgefast.table import Request
from tests.explain.random_tables import Tables

pytestmark = pytest.mark.pure

ANY = ir.Match("prefix", "")


def entrants(*rules: ir.AccessRule, match: ir.Match = ANY) -> list[ExampleRequest]:
    return list(make_authz_examples(match, (ir.Authorization(rules), None)))


def verdicts(*rules: ir.AccessRule) -> set[bool]:
    access = ir.Authorization(rules)
    return {
        evaluate_access(
            access,
            Request(one.method, one.target.partition("?")[0], headers=one.headers),
            one.source or "127.0.0.1",
        ).allow
        for one in entrants(*rules)
    }


@pytest.mark.parametrize(
    "rule",
    [
        ir.AccessRule(allow=True, sources=("10.0.0.0/8",)),
        ir.AccessRule(allow=True, sources=("2001:db8::/32", "192.0.2.1/32")),
        ir.AccessRule(allow=True, headers=(("x-plan", ("gold",)),)),
        ir.AccessRule(allow=True, methods=("PUT",)),
        ir.AccessRule(allow=True, paths=(("exact", "/a"),)),
        ir.AccessRule(allow=True, paths=(("regex", "/v[0-9]+/x"),)),
        ir.AccessRule(
            allow=True,
            sources=("10.0.0.0/8",),
            methods=("POST",),
            headers=(("x-plan", ("gold",)),),
            paths=(("prefix", "/a"),),
        ),
    ],
)
def test_some_get_in_and_some_do_not(rule: ir.AccessRule) -> None:
    assert verdicts(rule) == {True, False}


def test_the_ends_of_a_range_and_what_is_beside_them() -> None:
    found = {one.source for one in entrants(ir.AccessRule(allow=True, sources=("10.0.0.0/8",)))}
    assert {"10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"} <= found
    whole = {one.source for one in entrants(ir.AccessRule(allow=True, sources=("0.0.0.0/0",)))}
    assert {"0.0.0.0", "255.255.255.255"} <= whole


def test_they_are_for_the_match() -> None:
    match = ir.Match("prefix", "/shop", method="GET", headers=(ir.ValueMatch("x-a", "1"),))
    rule = ir.AccessRule(allow=True, paths=(("prefix", "/shop/a"),), headers=(("x-a", ("2",)),))
    for one in entrants(rule, match=match):
        assert one.method == "GET" and ("x-a", "1") in one.headers
        assert one.target.startswith("/shop")
    assert entrants(ir.AccessRule(allow=True, methods=("PUT",)), match=match) == []


def test_what_one_side_has_alone_comes_first_and_all_are_bounded() -> None:
    old = tuple(ir.AccessRule(allow=True, sources=(f"10.{n}.0.0/16",)) for n in range(64))
    new = (*old[:63], ir.AccessRule(allow=True, sources=("192.0.2.0/24",)))
    found = list(make_authz_examples(ANY, (ir.Authorization(old), ir.Authorization(new))))
    assert len(found) == 60
    assert {"192.0.2.0", "10.63.0.0"} <= {one.source for one in found[:16]}


def test_most_changes_of_one_rule_are_seen() -> None:
    """Of random authorizations a rule is taken away: examples show it, unless no request would."""
    seen = tried = 0
    for seed in range(200):
        tables = Tables(seed, 1)
        rules = tuple(tables._access() for _ in range(3))
        old, new = ir.Authorization(rules), ir.Authorization(rules[1:])
        requests = [
            (Request(one.method, one.target, headers=one.headers), one.source or "127.0.0.1")
            for one in make_authz_examples(ANY, (old, new))
        ]
        chance = random.Random(seed)
        others = [
            (Request(one.method, one.target.partition("?")[0], headers=one.headers), source)
            for one in tables.asks(100)
            for source in [chance.choice(["127.0.0.1", "10.0.0.1", "192.0.2.1", "198.51.100.1"])]
        ]
        if _differ(old, new, others):
            tried += 1
            seen += _differ(old, new, requests)
    assert tried > 40 and seen > 0.9 * tried, (seen, tried)


def _differ(old: ir.Authorization, new: ir.Authorization, asked: list[tuple[Request, str]]) -> bool:
    return any(
        evaluate_access(old, request, client).allow != evaluate_access(new, request, client).allow
        for request, client in asked
    )
