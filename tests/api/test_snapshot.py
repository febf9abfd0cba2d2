"""Snapshots: an index that shares what did not change."""

from __future__ import annotations

import pytest

from edgefast.api.decode.decode import decode_documents
from edgefast.api.kinds import KINDS
from edgefast.api.loaded import Loaded, render_path, split_path
from edgefast.api.snapshot import _TABLES, Snapshot, check_duplicates
from edgefast.diagnostics.problem import ObjectRef, Source

pytestmark = pytest.mark.pure

TEXT = """\
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-2, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.2]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: a}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ca}
"""


def _load(text: str) -> tuple[Loaded, ...]:
    decoded = decode_documents(text.encode(), "a.yaml")
    assert decoded.problems == ()
    return decoded.objects


def test_tables_are_those_of_the_kinds() -> None:
    assert set(_TABLES) == {kind for _, kind in KINDS}
    assert set(_TABLES.values()) <= set(Snapshot.__struct_fields__)


def test_index() -> None:
    snapshot = Snapshot.of(_load(TEXT))
    assert snapshot.services["shop", "web"].spec.ports[0].port == 80
    names = [one.metadata.name for one in snapshot.slices_by_service.get(("shop", "web"), ())]
    assert names == ["web-1", "web-2"]
    assert snapshot.slices_by_service.get(("shop", "other"), ()) == ()
    assert snapshot.get(ObjectRef("Service", "shop", "web")) is snapshot.services["shop", "web"]
    assert snapshot.get(ObjectRef("Service", "shop", "no")) is None
    assert snapshot.get(ObjectRef("Pod", "shop", "web")) is None


def test_namespaces_are_there_without_being_defined() -> None:
    snapshot = Snapshot.of(_load(TEXT))
    assert set(snapshot.namespaces) == {("", "shop"), ("", "default")}
    assert snapshot.namespaces["", "default"].metadata.labels == {
        "kubernetes.io/metadata.name": "default"
    }
    assert snapshot.namespaces["", "shop"].metadata.labels == {
        "team": "a",
        "kubernetes.io/metadata.name": "shop",
    }
    after = snapshot.replace(removed=[ObjectRef("Namespace", "", "shop")])
    assert after.namespaces["", "shop"].metadata.labels == {"kubernetes.io/metadata.name": "shop"}
    assert after.services is snapshot.services


def test_order_of_files_does_not_matter_to_namespaces() -> None:
    loaded = _load(TEXT)
    assert Snapshot.of(loaded).namespaces == Snapshot.of(reversed(loaded)).namespaces


def test_replace_shares_the_rest() -> None:
    before = Snapshot.of(_load(TEXT))
    changed = _load(TEXT.replace("port: 80", "port: 81"))
    after = before.replace(changed=changed)
    assert after.services["shop", "web"] is changed[0].obj
    assert before.services["shop", "web"].spec.ports[0].port == 80
    assert after.endpoint_slices is before.endpoint_slices
    assert after.slices_by_service is before.slices_by_service
    assert after.namespaces is before.namespaces
    assert before.replace() is before
    assert before.replace(removed=[ObjectRef("Service", "shop", "none")]) is before


def test_equal_objects_keep_their_identity() -> None:
    before = Snapshot.of(_load(TEXT))
    after = Snapshot.of(_load("# moved down\n" + TEXT), previous=before)
    for table in _TABLES.values():
        for key, obj in getattr(before, table).items():
            if table != "namespaces":
                assert getattr(after, table)[key] is obj
    assert after.namespaces == before.namespaces
    ref = ObjectRef("Service", "shop", "web")
    assert after.source_of(ref, "spec.ports[0].port") == Source("a.yaml", 5)


def test_slices_follow_their_label_and_their_end() -> None:
    before = Snapshot.of(_load(TEXT))
    moved = before.replace(changed=_load(TEXT.replace("service-name: web", "service-name: new", 1)))
    assert [one.metadata.name for one in moved.slices_by_service.get(("shop", "web"), ())] == [
        "web-1"
    ]
    assert [one.metadata.name for one in moved.slices_by_service.get(("shop", "new"), ())] == [
        "web-2"
    ]
    gone = moved.replace(removed=[ObjectRef("EndpointSlice", "shop", "web-2")])
    assert gone.slices_by_service.get(("shop", "new"), ()) == ()
    assert ("shop", "new") not in gone.slices_by_service


def test_sources() -> None:
    snapshot = Snapshot.of(_load(TEXT))
    ref = ObjectRef("EndpointSlice", "shop", "web-2", "discovery.k8s.io")
    assert snapshot.source_of(ref) == Source("a.yaml", 6)
    assert snapshot.source_of(ref, "endpoints[0].addresses[0]") == Source("a.yaml", 10)
    assert snapshot.source_of(ObjectRef("Secret", "a", "b")) is None
    bare = snapshot.replace(changed=[snapshot.services["shop", "web"]])
    assert bare.source_of(ObjectRef("Service", "shop", "web")) is None
    assert bare.services["shop", "web"] is snapshot.services["shop", "web"]


def test_duplicates_are_reported_and_the_first_wins() -> None:
    loaded = _load(TEXT + "---\n" + TEXT.replace("port: 80", "port: 81").partition("---")[0])
    (problem,) = check_duplicates(loaded)
    assert problem.line() == (
        'a.yaml:27 Service shop/web metadata.name: Duplicate "web" (first defined at a.yaml:1)'
    )
    assert Snapshot.of(loaded).services["shop", "web"].spec.ports[0].port == 80
    assert check_duplicates(_load(TEXT)) == ()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("spec.rules[0].matches[12].path", ("spec", "rules", 0, "matches", 12, "path")),
        ("metadata.labels[a.b/c]", ("metadata", "labels", "a.b/c")),
        ("", ()),
    ],
)
def test_paths(text: str, path: tuple[str | int, ...]) -> None:
    assert split_path(text) == path
    assert render_path(path) == text
