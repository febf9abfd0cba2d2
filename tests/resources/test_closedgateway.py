"""What is read of a Gateway or ListenerSet with a mistake: never an exception, never more than is there; tests/translate asks what becomes of it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast.problem import ObjectRef
from edgefast.resources.decode.closedgateway import close_gateway, close_listener_set
from edgefast.resources.decode.decode import decode_api_object, decode_documents
from edgefast.resources.limits import MAX_CLOSED_PARTS
from edgefast.resources.rules.rule import Violation
from tests.resources.test_closed import ANYTHING, _places

pytestmark = pytest.mark.pure

WHY = Violation(("spec",), "Invalid", "not text")
LISTENER = {"name": "a", "port": 443, "protocol": "HTTPS", "hostname": "a.example"}
SOUND: dict[str, Any] = {
    "metadata": {"name": "g", "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "gatewayClassName": "edge",
        "parentRef": {"name": "g"},
        "listeners": [LISTENER, {"name": "b", "port": 80, "protocol": "HTTP"}],
        "allowedListeners": {"namespaces": {"from": "All"}},
        "infrastructure": {"labels": {"a": "b"}},
        "addresses": [{"value": "10.0.0.1"}],
    },
}
READERS = {"Gateway": close_gateway, "ListenerSet": close_listener_set}


def _ref(kind: str) -> ObjectRef:
    return ObjectRef(kind, "ns", "g", "gateway.networking.k8s.io")


@pytest.mark.parametrize("kind", READERS)
def test_a_sound_one_is_read_as_it_is(kind: str) -> None:
    found = READERS[kind](SOUND, _ref(kind), WHY)
    assert found.closed is not None and not found.closed.lost
    assert [(one.name, one.port, one.protocol, one.hostname) for one in found.spec.listeners] == [
        ("a", 443, "HTTPS", "a.example"),
        ("b", 80, "HTTP", None),
    ]
    assert found.metadata.creation_timestamp == "2026-01-01T00:00:00Z"


def test_what_decides_about_the_fleet_stays_where_it_is_sound() -> None:
    found = close_gateway(SOUND, _ref("Gateway"), WHY).spec
    assert found.gateway_class_name == "edge" and found.infrastructure is not None
    assert found.infrastructure.labels == {"a": "b"} and found.addresses[0].value == "10.0.0.1"
    assert found.allowed_listeners is not None
    assert found.allowed_listeners.namespaces.from_ == "All"


@pytest.mark.parametrize("kind", READERS)
@given(st.sampled_from([place for place in _places(SOUND) if place]), ANYTHING)
@settings(max_examples=200, deadline=None)
def test_whatever_is_written(kind: str, place: tuple[Any, ...], value: object) -> None:
    raw = copy.deepcopy(SOUND)
    holder: Any = raw
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    found = READERS[kind](raw, _ref(kind), WHY)
    assert found.closed is not None
    # What still stands there is not lost because of a mistake elsewhere.
    if "listeners" not in place and place != ("spec",):
        assert [one.hostname for one in found.spec.listeners] == ["a.example", None]
    # A listener is never made one for all hosts.
    if place[:3] == ("spec", "listeners", 0) and value not in (None, ""):
        first = found.spec.listeners[:1]
        assert all(one.hostname is not None or one.name == "b" for one in first)


def test_no_more_is_read_than_is_allowed() -> None:
    hosts = [f"h{number}.example" for number in range(MAX_CLOSED_PARTS + 5)]
    many = [{**LISTENER, "hostname": hosts} for _ in range(5)]
    for listeners in (many, [LISTENER] * (MAX_CLOSED_PARTS + 5)):
        found = close_gateway({"spec": {"listeners": listeners}}, _ref("Gateway"), WHY)
        assert len(found.spec.listeners) == MAX_CLOSED_PARTS
        assert found.closed is not None and found.closed.lost


@pytest.mark.parametrize("kind", READERS)
def test_no_document_says_that_it_is_closed(kind: str) -> None:
    note = {"path": "spec", "reason": "Invalid"}
    spec = {key: SOUND["spec"][key] for key in ("listeners",)}
    spec |= {"gatewayClassName": "edge"} if kind == "Gateway" else {"parentRef": {"name": "g"}}
    raw = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": spec,
        "closed": note,
    }
    made: Any = decode_api_object(raw, kind)
    assert made.closed is None
    decoded = decode_documents(json.dumps(raw).encode(), "g.json")
    assert decoded.objects == () and decoded.problems
