"""Access: the content of a Secret in problems of an Ingress."""

from __future__ import annotations

import base64

import pytest

from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.translate import Settings, translate
from edgefast.translate.settings import IngressSettings

pytestmark = pytest.mark.pure

INGRESS = """apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: a
  annotations: {nginx.ingress.kubernetes.io/auth-type: basic, nginx.ingress.kubernetes.io/auth-secret: users}
spec:
  ingressClassName: nginx
  rules:
  - host: a.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
"""


def test_problems_never_contain_an_entry_without_a_user() -> None:
    data = base64.b64encode(b"# users\na-token\nann:{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk=\n").decode()
    secret = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: users}}\ndata: {{auth: {data}}}\n"
    objects = decode_documents(f"{INGRESS}---\n{secret}".encode(), "a.yaml").objects
    settings = Settings(ingress=IngressSettings(classes=("nginx",)))
    lines = [one.line() for one in translate(Snapshot.of(objects), settings).problems]
    assert not [one for one in lines if "a-token" in one]
    assert any("entry 1 has no colon after its user; it is ignored" in one for one in lines)
