"""A match that takes more than was written: before its equals of its own namespace, with others by age."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translate.test_refused_match import OLD, _ask, _prefix, _route

pytestmark = pytest.mark.pure

NEW = "2026-01-01T00:00:00Z"
NEWER = "2026-06-01T00:00:00Z"
LOST = [{"matches": [{"path": {"value": "/shop/../admin"}}]}]  # closes every path


def _of(namespace: str, name: str, rules: list[dict[str, Any]], age: str) -> dict[str, Any]:
    made = _route(name, rules, age)
    made["metadata"]["namespace"] = namespace
    made["spec"]["parentRefs"][0]["namespace"] = "default"
    return made


def _listen(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.translate import test_refused_match

    spec = test_refused_match.OBJECTS[1]["spec"]
    open_ = {**spec["listeners"][0], "allowedRoutes": {"namespaces": {"from": "All"}}}
    monkeypatch.setitem(spec, "listeners", [open_])


@pytest.mark.parametrize(
    ("theirs", "answer"), [(OLD, "theirs"), (NEWER, "500")], ids=["older", "younger"]
)
def test_of_other_namespaces_the_older_one_is_first(
    monkeypatch: pytest.MonkeyPatch, theirs: str, answer: str
) -> None:
    _listen(monkeypatch)
    routes = [_of("theirs", "theirs", _prefix("/"), theirs), _of("mine", "mine", LOST, NEW)]
    assert _ask(routes, "GET a/admin") == answer


def test_of_its_own_namespace_it_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    _listen(monkeypatch)
    routes = [_of("mine", "old", _prefix("/"), OLD), _of("mine", "mine", LOST, NEW)]
    assert _ask(routes, "GET a/admin") == "500"
    # Also where it comes to stand before a younger one of others.
    between = _of("theirs", "theirs", _prefix("/"), NEWER)
    assert _ask([*routes, between], "GET a/admin") == "500"


def test_an_older_one_of_others_between_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its requests as before: those that the oldest one leaves."""
    _listen(monkeypatch)
    old = [{"matches": [{"path": {"value": "/"}, "headers": [{"name": "x-a", "value": "1"}]}]}]
    theirs = [{"matches": [{"path": {"value": "/"}, "headers": [{"name": "x-b", "value": "1"}]}]}]
    refused = [{"name": "x-c", "type": "RegularExpression", "value": "(?!x)"}]
    mine = [{"matches": [{"path": {"value": "/"}, "headers": refused}]}]
    routes = [
        _of("mine", "old", old, "2019-01-01T00:00:00Z"),
        _of("theirs", "theirs", theirs, OLD),
        _of("mine", "mine", mine, NEW),
    ]
    assert _ask(routes, "GET a/ x-b:1 x-c:1") == "theirs"
    assert _ask(routes, "GET a/ x-a:1 x-b:1") == "old"
    assert _ask(routes, "GET a/ x-c:1") == "500"
    # Without them in between it is first.
    assert _ask([routes[0], routes[2]], "GET a/ x-a:1 x-c:1") == "500"


def test_several_that_are_refused_stay_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is there; the same routes give the same order, however they come."""
    _listen(monkeypatch)
    routes = [_of("mine", f"r{at}", LOST, f"2026-01-0{at}T00:00:00Z") for at in (1, 2, 3)]
    routes.append(_of("mine", "plain", _prefix("/"), "2026-01-02T12:00:00Z"))
    for order in (routes, routes[::-1]):
        assert _ask(order, "GET a/x") == "500"
