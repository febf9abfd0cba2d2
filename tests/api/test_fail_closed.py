"""What is read of a route, Gateway or ListenerSet with a mistake: never an exception, never more than is allowed; tests/translate asks what becomes of it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast.api.decode.decode import decode_api_object, decode_documents
from edgefast.api.decode.fail_closed.gateway import close_gateway, close_listener_set
from edgefast.api.decode.fail_closed.route import close_route
from edgefast.api.limits import MAX_CLOSED_PARTS
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

pytestmark = pytest.mark.pure

WHY = Violation(("spec",), "Invalid", "not text")
META = {"name": "r", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
MATCH = {
    "path": {"type": "Exact", "value": "/a/b"},
    "headers": [{"name": "x", "value": "1"}],
    "queryParams": [{"name": "q", "value": "1"}],
    "method": "GET",
}
LISTENER = {"name": "a", "port": 443, "protocol": "HTTPS", "hostname": "a.example"}
PARENT = {"name": "edge", "sectionName": "http"}
SOUND: dict[str, dict[str, Any]] = {
    "HTTPRoute": {
        "parentRefs": [PARENT],
        "hostnames": ["a.example"],
        "rules": [{"matches": [MATCH]}],
    },
    "Gateway": {
        "gatewayClassName": "edge",
        "listeners": [LISTENER, {"name": "b", "port": 80, "protocol": "HTTP"}],
        "allowedListeners": {"namespaces": {"from": "All"}},
        "infrastructure": {"labels": {"a": "b"}},
        "addresses": [{"value": "10.0.0.1"}],
    },
    "ListenerSet": {
        "parentRef": {"name": "g"},
        "listeners": [LISTENER, {"name": "b", "port": 80, "protocol": "HTTP"}],
    },
}
READERS: dict[str, Any] = {
    "HTTPRoute": close_route,
    "Gateway": close_gateway,
    "ListenerSet": close_listener_set,
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


PLACES = [
    (kind, place)
    for kind, spec in SOUND.items()
    for place in _places({"metadata": META, "spec": spec})
    if place
]


def read(kind: str, spec: Any, *repeated: tuple[str, ...]) -> Any:
    return read_whole(kind, {"metadata": META, "spec": spec}, *repeated)


def read_whole(kind: str, raw: dict[str, Any], *repeated: tuple[str, ...]) -> Any:
    ref = ObjectRef(kind, "default", "r", "gateway.networking.k8s.io")
    found = READERS[kind](raw, ref, WHY, repeated)
    assert found.closed is not None
    return found


@given(st.sampled_from(PLACES), ANYTHING)
@settings(max_examples=500, deadline=None)
def test_whatever_is_written(at: tuple[str, tuple[Any, ...]], value: object) -> None:
    kind, place = at
    raw = copy.deepcopy({"metadata": META, "spec": SOUND[kind]})
    holder: Any = raw
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    spec = read_whole(kind, raw).spec
    whole = place == ("spec",)
    if kind == "HTTPRoute":
        assert spec.rules and all(rule.matches for rule in spec.rules)
        for match in (match for rule in spec.rules for match in rule.matches):
            if match.path.type != "RegularExpression":
                assert len(match.path.value) <= 1024
        # What is readable is not lost because of an error elsewhere.
        if "hostnames" not in place and not whole:
            assert spec.hostnames == ("a.example",)
        if not {"parentRefs", "hostnames"}.intersection(place) and not whole:
            assert [one.name for one in spec.parent_refs] == ["edge"]
        return
    if "listeners" not in place and not whole:
        assert [one.hostname for one in spec.listeners] == ["a.example", None]
    # A listener is never made one for all hosts.
    if place[:3] == ("spec", "listeners", 0) and value not in (None, ""):
        assert all(one.hostname is not None or one.name == "b" for one in spec.listeners[:1])


def test_a_sound_one_is_read_as_it_is() -> None:
    route = read("HTTPRoute", SOUND["HTTPRoute"])
    (match,) = route.spec.rules[0].matches
    assert (match.path.type, match.path.value, match.method) == ("Exact", "/a/b", "GET")
    told = [(one.name, one.value) for one in (*match.headers, *match.query_params)]
    assert told == [("x", "1"), ("q", "1")]
    assert route.spec.parent_refs[0].section_name == "http" and not route.closed.widened
    assert route.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    for kind in ("Gateway", "ListenerSet"):
        found = read(kind, SOUND[kind])
        listeners = found.spec.listeners
        assert not found.closed.lost
        assert [(one.name, one.port, one.protocol, one.hostname) for one in listeners] == [
            ("a", 443, "HTTPS", "a.example"),
            ("b", 80, "HTTP", None),
        ]
    # What decides about the fleet stays where it is sound.
    spec = read("Gateway", SOUND["Gateway"]).spec
    assert (spec.gateway_class_name, spec.infrastructure.labels) == ("edge", {"a": "b"})
    assert spec.addresses[0].value == "10.0.0.1"
    assert spec.allowed_listeners.namespaces.from_ == "All"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ({"value": "/a", "typ": "Exact"}, "/a"),
        # With fields of the right types it is read as an API server's: translation finds what it can mean.
        ({"value": "/a/b/../c"}, "/a/b/../c"),
        ({"value": "login"}, "login"),
        ({"type": "Glob", "value": "/a*"}, "/a*"),
        # Else it takes every path, before all prefixes.
        ({"value": "/" + "a" * 2000}, "/.*"),
        ({"value": "/a", "strange": "Exact"}, "/.*"),
        ({"value": ["/a"]}, "/.*"),
        ({"type": 5, "value": "/a"}, "/.*"),
        ("/a", "/.*"),
        (["/a"], "/.*"),
    ],
)
def test_what_is_left_of_a_path(path: object, found: str) -> None:
    route = read("HTTPRoute", {"rules": [{"matches": [{"path": path}]}]})
    assert route.spec.rules[0].matches[0].path.value == found
    assert route.closed.widened == {(0, 0)}


@pytest.mark.parametrize(
    ("more", "repeated"),
    [({"domains": ["a.example"]}, ()), ({}, [("spec", "hostnames")]), ({}, [("spec",)])],
)
def test_where_hostnames_may_be_lost_there_is_no_place(
    more: dict[str, Any], repeated: list[tuple[str, ...]]
) -> None:
    spec = {"parentRefs": [{"name": "edge"}], "rules": [{}], **more}
    assert read("HTTPRoute", spec, *repeated).spec.parent_refs == ()
    assert read("HTTPRoute", {**spec, "hostnames": ["a.example"]}).spec.parent_refs


@pytest.mark.parametrize("field", ["kind", "group", "namespace"])
def test_a_parent_that_is_somewhere_else_is_no_parent_here(field: str) -> None:
    parents = [{"name": "edge", field: 7}, {"name": "other", "sectionName": 7}]
    found = read("HTTPRoute", {"parentRefs": parents}).spec.parent_refs
    assert [one.name for one in found] == ["other"]


def test_what_is_more_than_is_read_takes_every_path_and_is_lost() -> None:
    matches = [{"path": {"value": f"/{number}"}} for number in range(MAX_CLOSED_PARTS + 5)]
    for rules in (
        [{"matches": matches}],
        [{"matches": [one]} for one in matches],
        [{"matches": matches[:600]}, {"matches": matches[600:]}, {}],
    ):
        route = read("HTTPRoute", {"rules": rules})
        found = [one.path.value for rule in route.spec.rules for one in rule.matches]
        assert len(found) <= MAX_CLOSED_PARTS + 2
        assert "/.*" in found and route.closed.widened
    hosts = [f"h{number}.example" for number in range(MAX_CLOSED_PARTS + 5)]
    many = [{**LISTENER, "hostname": hosts} for _ in range(5)]
    for listeners in (many, [LISTENER] * (MAX_CLOSED_PARTS + 5)):
        gateway = read("Gateway", {"listeners": listeners})
        assert len(gateway.spec.listeners) == MAX_CLOSED_PARTS and gateway.closed.lost


@pytest.mark.parametrize("kind", ["Gateway", "ListenerSet"])
def test_no_document_says_that_it_is_closed(kind: str) -> None:
    spec = {"listeners": SOUND[kind]["listeners"]}
    spec |= {"gatewayClassName": "edge"} if kind == "Gateway" else {"parentRef": {"name": "g"}}
    meta = {"name": "g", "namespace": "ns"}
    raw = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}  # fmt: skip
    raw["closed"] = {"path": "spec", "reason": "Invalid"}
    made: Any = decode_api_object(raw, kind)
    assert made.closed is None
    decoded = decode_documents(json.dumps(raw).encode(), "g.json")
    assert decoded.objects == () and decoded.problems
