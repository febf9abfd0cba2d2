"""A route has a limited number of regular expressions: rules above it answer 500, and open nothing."""

from __future__ import annotations

from typing import Any

import pytest

from edgefast.api.model.regex import check_regex
from edgefast.api.snapshot import Snapshot
from edgefast.api.validation import regexes
from edgefast.api.validation.regexes import count_regexes, find_excess
from edgefast.translate import Settings, Translation, translate
from tests.support.manifest import manifest
from tests.translate import world

pytestmark = pytest.mark.pure

_REGEX = "RegularExpression"


def http(*rules: dict[str, Any]) -> Any:
    ref = [{"name": "web", "port": 80}]
    raw = manifest(
        "HTTPRoute default/r",
        {
            "parentRefs": [{"name": "gw"}],
            "hostnames": ["a.example"],
            "rules": [{"backendRefs": ref, **rule} for rule in rules],
        },
    )
    return world.make(raw)


def paths(*values: str) -> dict[str, Any]:
    return {"matches": [{"path": {"type": _REGEX, "value": value}} for value in values]}


def served(route: Any) -> Translation:
    objects = (
        world.gateway_class(),
        world.gateway(),
        world.service("web"),
        world.endpoints("web", "10.0.0.1"),
        route,
    )
    return translate(Snapshot.of(objects), Settings())


def test_regexes_are_counted_wherever_a_match_has_them() -> None:
    header = {"name": "x", "type": _REGEX, "value": "a+"}
    plain = {"name": "y", "value": "a"}
    match = {"path": {"type": _REGEX, "value": "/.*"}, "headers": [header, plain]}
    route = http({"matches": [{**match, "queryParams": [header]}, {"headers": [plain]}]})
    assert count_regexes(route) == 3
    assert count_regexes(world.service("web")) == 0 and not find_excess(route)


def test_rules_above_the_limit_answer_500_for_what_they_begin_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(regexes, "REGEXES_PER_ROUTE", 2)
    header = {"name": "x", "type": _REGEX, "value": "(not compiled"}
    route = http(
        paths("/a/.*", "/b/.*"),
        {"matches": [{"path": {"value": "/plain"}}]},
        {"matches": [{**paths("/c/(not compiled")["matches"][0], "headers": [header]}]},
    )
    assert find_excess(route) == {2}
    made = served(route)
    (problem,) = [one for one in made.problems if one.severity == "error"]
    assert (problem.path, problem.reason) == ("spec.rules[2].matches", "TooMany")
    assert "PathPrefix" in problem.message
    hosts = [host for fleet in made.ir.fleets for host in fleet.virtual_hosts]
    told = {match.path: rule.status for rule, match in rules_of(hosts)}
    assert told == {"/a/.*": 0, "/b/.*": 0, "/plain": 0, "/c/.*": 500}
    (closed,) = [match for rule, match in rules_of(hosts) if rule.status]
    assert [(one.name, one.value, one.regex) for one in closed.headers] == [("x", "(?s).*", True)]


def rules_of(hosts: list[Any]) -> list[tuple[Any, Any]]:
    return [(host.rules[one.rule], one.match) for host in hosts for one in host.entries]


def test_a_pattern_that_needs_too_much_is_refused() -> None:
    assert not check_regex("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(/.*)?")
    assert not check_regex(".{1,500}")
    assert "too large" in check_regex(r"((\pL|\pN){1,30}/){1,30}")
