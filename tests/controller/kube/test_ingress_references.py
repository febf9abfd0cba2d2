"""What Ingresses of served classes refer to: found for changed ones alone, as if from scratch."""

from __future__ import annotations

import pytest

from controller.kube.ingress_references import IngressReferences
from edgefast.api.decode.decode import decode_documents
from edgefast.api.ingress.ingress import Ingress
from edgefast.api.kinds import ref_of
from edgefast.api.snapshot import Snapshot
from edgefast.translate.settings import IngressSettings, Settings

pytestmark = pytest.mark.pure

SETTINGS = Settings(
    standalone=False,
    ingress=IngressSettings(
        enabled=True, classes=("ours",), config_map="edge/globals", certificate="edge/default"
    ),
)
ALWAYS = {("ConfigMap", "edge", "globals"), ("Secret", "edge", "default")}


def ingress(name: str, class_name: str = "ours", secret: str = "cert", **notes: str) -> Ingress:
    annotations = {
        f"nginx.ingress.kubernetes.io/{k.replace('_', '-')}": v for k, v in notes.items()
    }
    text = (
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\n"
        f"metadata: {{name: {name}, namespace: app, annotations: {annotations}}}\n"
        f"spec: {{ingressClassName: {class_name}, tls: [{{secretName: {secret}}}], rules: [{{host: a.test}}]}}\n"
    )
    (found,) = decode_documents(text.encode(), "a.yaml").objects
    assert isinstance(found.obj, Ingress)
    return found.obj


def test_objects_of_its_own_namespace() -> None:
    found = ingress("a", auth_secret="app/users", custom_headers="headers")
    far = ingress("b", secret="other", auth_secret="elsewhere/users", custom_headers="elsewhere/h")
    theirs = ingress("c", "theirs", "secret")
    snapshot = Snapshot.of([found, far, theirs])
    assert IngressReferences().find(snapshot, SETTINGS) == ALWAYS | {
        ("Secret", "app", "cert"),
        ("Secret", "app", "users"),
        ("ConfigMap", "app", "headers"),
        ("Secret", "app", "other"),
    }
    assert not IngressReferences().find(snapshot, Settings(standalone=False))


def test_a_step_finds_what_a_search_from_scratch_finds() -> None:
    seen = IngressReferences()
    first = Snapshot.of([ingress("a"), ingress("b")])
    before = seen.find(first, SETTINGS)
    assert seen.find(first, SETTINGS) is before
    steps = [
        first.replace([ingress("a", secret="new")]),
        first.replace([ingress("a", "theirs")]),
        first.replace([], [ref_of(ingress("a")), ref_of(ingress("b"))]),
        first,
    ]
    for snapshot in steps:
        assert seen.find(snapshot, SETTINGS) == IngressReferences().find(snapshot, SETTINGS)
