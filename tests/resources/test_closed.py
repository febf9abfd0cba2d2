"""What is read of a route with a mistake: never an exception, never more than is allowed; tests/translate asks what becomes of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast.problem import ObjectRef
from edgefast.resources.decode.closed import close_route
from edgefast.resources.limits import MAX_CLOSED_PARTS
from edgefast.resources.rules.httproute import check_literal
from edgefast.resources.rules.rule import Violation

pytestmark = pytest.mark.pure

REF = ObjectRef("HTTPRoute", "default", "r", "gateway.networking.k8s.io")
WHY = Violation(("spec",), "Invalid", "not text")
SOUND: dict[str, Any] = {
    "metadata": {"name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "parentRefs": [{"name": "edge", "sectionName": "http"}],
        "hostnames": ["a.example"],
        "rules": [
            {
                "matches": [
                    {
                        "path": {"type": "Exact", "value": "/a/b"},
                        "headers": [{"name": "x", "value": "1"}],
                        "queryParams": [{"name": "q", "value": "1"}],
                        "method": "GET",
                    }
                ]
            }
        ],
    },
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "value", "type", "path", "matches", "rules"]) | st.text(),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def _places(raw: object, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    )
    return [at, *(place for key, one in inner for place in _places(one, (*at, key)))]


PLACES = [place for place in _places(SOUND) if place]


@given(st.sampled_from(PLACES), ANYTHING)
@settings(max_examples=300, deadline=None)
def test_whatever_is_written(place: tuple[Any, ...], value: object) -> None:
    raw = copy.deepcopy(SOUND)
    holder: Any = raw
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    route = close_route(raw, REF, WHY)
    assert route.closed is not None
    assert route.spec.rules and all(rule.matches for rule in route.spec.rules)
    for rule in route.spec.rules:
        for match in rule.matches:
            if match.path.type != "RegularExpression":
                assert match.path.value == "/" or not check_literal(match.path.value)
    # What still stands there is not lost because of a mistake elsewhere.
    if "hostnames" not in place and place != ("spec",):
        assert route.spec.hostnames == ("a.example",)
    if "parentRefs" not in place and "hostnames" not in place and place != ("spec",):
        assert [one.name for one in route.spec.parent_refs] == ["edge"]


def test_a_sound_one_is_read_as_it_is() -> None:
    route = close_route(SOUND, REF, WHY)
    (match,) = route.spec.rules[0].matches
    assert (match.path.type, match.path.value, match.method) == ("Exact", "/a/b", "GET")
    assert [(one.name, one.value) for one in (*match.headers, *match.query_params)] == [
        ("x", "1"),
        ("q", "1"),
    ]
    assert route.spec.parent_refs[0].section_name == "http"
    assert route.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    assert route.closed is not None and not route.closed.widened


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("/a/b/../c", "/a/b"),
        ("/a//b", "/a/"),
        ("/a/b c/d", "/a"),
        ("/%zz", "/"),
        ("//", "/"),
        ("", "/"),
        ("/" + "a/" * 600, "/" + "a/" * 510 + "a"),
        ("/" + "a" * 2000, "/"),
    ],
)
def test_of_a_path_its_sound_beginning_is_left(written: str, read: str) -> None:
    raw = {"spec": {"rules": [{"matches": [{"path": {"value": written}}]}]}}
    route = close_route(raw, REF, WHY)
    assert route.spec.rules[0].matches[0].path.value == read
    assert route.closed is not None and route.closed.widened == {(0, 0)}


@pytest.mark.parametrize(
    ("more", "repeated"),
    [({"domains": ["a.example"]}, ()), ({}, [("spec", "hostnames")]), ({}, [("spec",)])],
)
def test_where_hostnames_may_be_lost_there_is_no_place(
    more: dict[str, Any], repeated: list[tuple[str, ...]]
) -> None:
    spec = {"parentRefs": [{"name": "edge"}], "rules": [{}], **more}
    assert close_route({"spec": spec}, REF, WHY, repeated).spec.parent_refs == ()
    spec["hostnames"] = ["a.example"]
    assert close_route({"spec": spec}, REF, WHY).spec.parent_refs


@pytest.mark.parametrize("field", ["kind", "group", "namespace"])
def test_a_parent_that_is_somewhere_else_is_no_parent_here(field: str) -> None:
    parents = [{"name": "edge", field: 7}, {"name": "other", "sectionName": 7}]
    route = close_route({"spec": {"parentRefs": parents}}, REF, WHY)
    assert [one.name for one in route.spec.parent_refs] == ["other"]


def test_what_is_more_than_is_read_takes_every_path() -> None:
    matches = [{"path": {"value": f"/{number}"}} for number in range(MAX_CLOSED_PARTS + 5)]
    for rules in (
        [{"matches": matches}],
        [{"matches": [one]} for one in matches],
        [{"matches": matches[:600]}, {"matches": matches[600:]}, {}],
    ):
        route = close_route({"spec": {"rules": rules}}, REF, WHY)
        found = [one.path.value for rule in route.spec.rules for one in rule.matches]
        assert len(found) <= MAX_CLOSED_PARTS + 2
        assert "/" in found
        assert route.closed is not None and route.closed.widened
