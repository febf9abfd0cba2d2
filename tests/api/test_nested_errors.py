"""Policies in what is no document: a list, a List in a List, items that are no list. They are not read, and what they are for stays closed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edgefast.api.decode.decode import decode_documents

pytestmark = pytest.mark.pure

GROUP = "gateway.networking.k8s.io"
OURS = "gateway.edge.io/v1alpha1"


def bare(name: str, kind: str = "HTTPRoute") -> dict[str, Any]:
    target = {"group": GROUP, "kind": kind, "name": name}
    return {"metadata": {"name": name}, "spec": {"targetRefs": [target], "authorization": {}}}


def whole(name: str) -> dict[str, Any]:
    return {"apiVersion": OURS, "kind": "SecurityPolicy", **bare(name)}


def typed(items: Any) -> dict[str, Any]:
    return {"apiVersion": OURS, "kind": "SecurityPolicyList", "items": items}


def listed(*items: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ([whole("a"), whole("b")], ["a", "b"]),
        ([[whole("a")]], ["a"]),
        ([listed(whole("a"))], ["a"]),
        (typed(bare("a")), ["a"]),
        (listed(typed([bare("a"), bare("b")])), ["a", "b"]),
        (listed(typed(bare("a"))), ["a"]),
        (listed(listed(whole("a")), whole("b")), ["a"]),
        ({"apiVersion": "v1", "kind": "List", "items": whole("a")}, ["a"]),
        ([{"apiVersion": "v1", "kind": "Service", **bare("a")}], []),
        ([{"apiVersion": "example.com/v1", "kind": "PolicyList", "items": [whole("a")]}], []),
    ],
)
def test_what_a_buried_policy_is_for_is_known(document: Any, names: list[str]) -> None:
    found = decode_documents(json.dumps(document).encode(), "a.json")
    closing: list[Any] = [one.closed.obj for one in found.refused if one.closed]
    assert [one.metadata.name for one in closing] == names
    for one in closing:
        assert [target.name for target in one.aimed] == [one.metadata.name]
    assert bool(names) <= any(one.severity == "error" for one in found.problems)


def test_as_deep_as_documents_are() -> None:
    document: Any = whole("a")
    for _ in range(50):
        document = [document]
    (found,) = decode_documents(json.dumps(document).encode(), "a.json").refused
    assert found.ref.name == "a" and found.closed is not None
