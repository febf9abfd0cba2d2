"""Sharing: what is equal is one object, what differs is left alone."""

from __future__ import annotations

import msgspec
import pytest

from controller.kube.intern import KEPT, STATUSES, Intern
from edgefast.api.core.service import Service
from edgefast.api.decode.decode import decode_api_object
from edgefast.api.gateway.httproute import HTTPRoute

pytestmark = pytest.mark.pure


def decode(name: str, parent: str = "gw", annotations: dict[str, str] | None = None) -> HTTPRoute:
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
        "backendRefs": [{"group": "", "kind": "Service", "name": name, "port": 80, "weight": 1}],
    }
    spec = {"parentRefs": [{"name": parent}], "hostnames": [f"{name}.example"], "rules": [rule]}
    metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
    document = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "spec": spec}
    found = decode_api_object(msgspec.json.encode({**document, "metadata": metadata}), "HTTPRoute")
    assert isinstance(found, HTTPRoute)
    return found


def test_what_is_equal_is_one_object_and_what_differs_is_not() -> None:
    sharing = Intern()
    objects = [decode("a"), decode("b"), decode("c", parent="other")]
    for one in objects:
        sharing.share(one)
    a, b, c = objects
    assert objects == [decode("a"), decode("b"), decode("c", parent="other")]
    assert a.spec.parent_refs is b.spec.parent_refs
    assert a.spec.rules[0].matches is c.spec.rules[0].matches
    assert a.metadata.namespace is b.metadata.namespace
    assert a.metadata.labels is b.metadata.labels is b.metadata.annotations
    assert a.spec.parent_refs != c.spec.parent_refs
    assert a.spec.rules != b.spec.rules


def test_parts_with_room_for_mappings_are_shared_too() -> None:
    sharing = Intern()
    found = []
    for name in ("a", "b"):
        meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        spec = {"type": "ClusterIP", "ports": [{"name": "http", "port": 8080, "targetPort": 3000}]}
        document = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
        one = decode_api_object(msgspec.json.encode(document), "Service")
        assert isinstance(one, Service)
        sharing.share(one)
        found.append(one)
    a, b = found
    assert a.spec is b.spec
    assert (a.metadata.name, b.metadata.name) == ("a", "b")


def test_mappings_stay_each_object_s_own() -> None:
    sharing = Intern()
    one, two = (decode("a", annotations={"note": "mine"}) for _ in range(2))
    sharing.share(one)
    sharing.share(two)
    assert one == two
    assert one.metadata.annotations is not two.metadata.annotations


def test_it_forgets_before_it_grows() -> None:
    sharing = Intern()
    for number in range(KEPT):
        sharing.share(decode(f"r{number}"))
        assert len(sharing._parts) <= KEPT
    a, b = decode("a"), decode("b")
    sharing.share(a)
    sharing.share(b)
    assert a.spec.parent_refs is b.spec.parent_refs


def test_equal_statuses_are_one_and_few_are_remembered() -> None:
    sharing = Intern()
    one, two = bytes(bytearray(b"{status}")), bytes(bytearray(b"{status}"))
    assert one is not two
    assert sharing.share_bytes(one) is sharing.share_bytes(two)
    for number in range(2 * STATUSES):
        assert sharing.share_bytes(b"%d" % number) == b"%d" % number
        assert len(sharing._statuses) <= STATUSES
