"""Merging equals a naive evaluator that walks the levels of a rule plainly, over random hierarchies."""

from __future__ import annotations

from random import Random

import pytest

from edgefast.api.kinds import ref_of
from edgefast.api.model.route_name import key_of, kind_of, plain_key
from edgefast.api.snapshot import Snapshot
from edgefast.translate import Settings, Translation, translate
from edgefast.translate.deps.policy_summary import Family, Level, Merge, PolicySummary, Unit
from edgefast.translate.policy.merge import Effective, merge_levels
from tests.translate.policy.hierarchy import (
    CLUSTERS,
    LISTENERS,
    RULES,
    base,
    policy_object,
    random_policies,
)
from tests.translate.policy.naive import Plain, evaluate

pytestmark = pytest.mark.pure


def check(made: Translation, policies: list[Plain]) -> tuple[int, int]:
    """Hold every rule of every host, and its shares, against the naive evaluator; return how many there were, and how many shares differ."""
    rules = treated = 0
    fleet = made.ir.fleets[0]
    named: set[str] = set()
    for host in fleet.virtual_hosts:
        for rule in host.rules:
            key = key_of(rule.route)
            _, name = plain_key(key)
            at, section = (kind_of(key), name, ""), RULES[rule.index]
            path = [*LISTENERS[host.listener], at, *([(*at[:2], section)] if section else [])]
            told = evaluate(policies, path)
            assert (list(rule.policies), list(rule.traffic), rule.ceilings) == (
                told.policies,
                told.traffic,
                told.ceilings,
            ), (host.listener, rule, policies)
            assert dict(rule.lost) == told.lost, (host.listener, rule, policies)
            named |= {*rule.policies, *rule.traffic}
            for share in rule.backends:
                below = evaluate(policies, [*path, *CLUSTERS[share.cluster]])
                closed = [one for one in below.policies if one.endswith("#closed")]
                closed = [one for one in closed if one not in told.policies]
                said = share.treatment or rule
                treated += share.treatment is not None
                assert (list(said.traffic), said.ceilings) == (
                    closed + below.traffic,
                    len(closed) + below.ceilings,
                ), (host.listener, share, policies)
                lost = {} if share.treatment is None else dict(share.treatment.lost)
                assert lost.items() <= below.lost.items(), (host.listener, share, policies)
                assert below.lost.items() - told.lost.items() == lost.items(), (share, policies)
                named |= {*said.traffic}
            rules += 1
    assert [one.name for one in fleet.policies] == sorted(named)
    asked = {
        share.cluster for one in fleet.policies if one.ext_auth for share in one.ext_auth.backends
    }
    assert {one.name for one in fleet.clusters} - asked <= CLUSTERS.keys()
    assert asked <= {one.name for one in fleet.clusters}
    return rules, treated


@pytest.mark.parametrize(
    ("seed", "count"),
    [(1, 1_000), pytest.param(2, 12_500, marks=[pytest.mark.heavy, pytest.mark.timeout(1800)])],
)
def test_rules_are_what_a_naive_evaluator_says(seed: int, count: int) -> None:
    check_many(seed, count)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3, 10))
def test_a_hundred_thousand_hierarchies(seed: int) -> None:
    """With the one before; `.ci/run` leaves these out, which take a quarter of an hour of two CPUs."""
    check_many(seed, 12_500)


def check_many(seed: int, count: int) -> None:
    random, objects = Random(seed), base()
    snapshot, made, rules, treated = Snapshot.of(objects), None, 0, 0
    there: list[Plain] = []
    for _ in range(count):
        policies = random_policies(random)
        gone = [policy_object(one) for one in there]
        refs = [ref_of(one) for one in gone]
        snapshot = snapshot.replace([policy_object(one) for one in policies], refs)
        made = translate(snapshot, Settings(), made)
        rules, treated = (
            one + other for one, other in zip((rules, treated), check(made, policies), strict=True)
        )
        there = policies
    assert rules == count * 18
    assert treated > rules / 10


# --- by hand: what the words of the design say ----------------------------------------------------------------------


def shape(
    name: str, *units: Unit, merge: Merge = "Inherit", age: int = 1, family: Family = "security"
) -> PolicySummary:
    return PolicySummary((age, f"ns/{name}"), family, units, merge)


def merge(*levels: Level) -> Effective:
    return merge_levels(levels)


def test_nothing_is_nothing() -> None:
    assert merge() == Effective()
    assert merge((shape("empty"),)) == Effective()


def test_the_most_specific_has_a_feature_whole_and_leaves_the_others() -> None:
    made = merge((shape("gw", "authorization", "extAuth"),), (shape("route", "extAuth"),))
    assert made.policies == ("security/ns/gw#authorization", "security/ns/route#extAuth")
    assert made.lost == (("security/ns/gw#extAuth", "security/ns/route#extAuth"),)


def test_overrides_of_authorization_are_conjoined_with_the_most_specific_default() -> None:
    made = merge(
        (shape("gw", "authorization", merge="Override"),),
        (shape("listener", "authorization", merge="Override"),),
        (shape("route", "authorization"),),
        (shape("rule", "authorization"),),
    )
    assert made.policies == tuple(
        f"security/ns/{one}#authorization" for one in ("gw", "listener", "rule")
    )
    assert made.lost == (("security/ns/route#authorization", "security/ns/rule#authorization"),)


def test_a_default_above_an_override_holds_with_it() -> None:
    made = merge((shape("gw", "authorization"),), (shape("l", "authorization", merge="Override"),))
    assert made.policies == ("security/ns/l#authorization", "security/ns/gw#authorization")


def test_the_highest_override_is_asked_alone() -> None:
    made = merge(
        (shape("gw", "extAuth", merge="Override"),),
        (shape("l", "extAuth", merge="Override"),),
        (shape("route", "extAuth"),),
    )
    assert made.policies == ("security/ns/gw#extAuth",)
    assert dict(made.lost).keys() == {"security/ns/l#extAuth", "security/ns/route#extAuth"}


def test_replace_drops_defaults_and_nothing_that_is_closed_and_no_override() -> None:
    made = merge(
        (shape("gw", "authorization", "extAuth"), shape("broken", "closed", age=2)),
        (shape("l", "authorization", merge="Override"),),
        (shape("route", merge="Replace"),),
    )
    assert made.policies == ("security/ns/broken#closed", "security/ns/l#authorization")
    assert dict(made.lost) == dict.fromkeys(
        ("security/ns/gw#authorization", "security/ns/gw#extAuth"), "security/ns/route"
    )


def test_replace_of_one_kind_is_none_of_the_other() -> None:
    made = merge(
        (shape("gw", "authorization"), shape("gw", "traffic", family="traffic")),
        (shape("route", "traffic", merge="Replace", family="traffic"),),
    )
    assert made.policies == ("security/ns/gw#authorization",)
    assert made.traffic == ("traffic/ns/route",)


def test_the_older_says_whether_anything_is_replaced() -> None:
    young = shape("young", "extAuth", merge="Replace", age=2)
    made = merge((shape("gw", "authorization"),), (shape("old"), young))
    assert made.policies == ("security/ns/gw#authorization", "security/ns/young#extAuth")


def test_what_is_closed_stands_before_all_and_beats_nobody() -> None:
    made = merge(
        (shape("gw", "authorization"),), (shape("a", "closed"), shape("b", "closed", age=2))
    )
    assert made.policies == (
        "security/ns/a#closed",
        "security/ns/b#closed",
        "security/ns/gw#authorization",
    )
    assert made.lost == ()


def test_ceilings_come_first_highest_first_then_the_most_specific() -> None:
    levels = [
        (shape(name, "traffic", merge=word, family="traffic"),)
        for name, word in (("a", "Override"), ("b", "Inherit"), ("c", "Override"), ("d", "Inherit"))
    ]
    made = merge(*levels)
    assert made.traffic == tuple(f"traffic/ns/{one}" for one in "acdb")
    assert made.ceilings == 2


def test_a_policy_on_several_levels_holds_where_it_holds() -> None:
    one = shape("p", "authorization", "extAuth")
    made = merge((one,), (one,))
    assert made.policies == ("security/ns/p#authorization", "security/ns/p#extAuth")
    assert made.lost == ()
