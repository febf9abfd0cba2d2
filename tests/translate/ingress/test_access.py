"""Access: the content of a Secret in problems of an Ingress."""

from __future__ import annotations

import base64

import pytest

from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.translate import Settings, translate
from edgefast.translate.settings import IngressSettings
from tests.translate.ingress.answers import HERE, translate_documents

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


def test_a_check_goes_to_the_service_behind_the_path_of_its_url() -> None:
    text = (HERE / "cases" / "auth-url-host.in.yaml").read_text().partition("\n---\n")[2]
    made = translate_documents(text)[0].memo.expansion.snapshot
    found = set[tuple[str, str, str, str, str]]()
    for policy in made.security_policies.values():
        http = None if policy.spec.ext_auth is None else policy.spec.ext_auth.http
        if http is None:
            continue
        ref = http.backend_ref
        assert ref is not None
        path = http.path_override or http.path_template or ""
        name = f"{ref.namespace or policy.metadata.namespace}/{ref.name.partition('-')[0]}"
        targets = ",".join(
            sorted(
                {
                    host
                    for one in policy.spec.target_refs
                    for host in made.http_routes["default", one.name].spec.hostnames
                }
            )
        )
        found.add((targets, ref.kind, name, path, http.hostname or ""))
    assert sorted(found) == [
        ("alias.test,main.test", "Service", "default/oauth2", "/oauth2/auth", ""),
        ("app.test", "Service", "auth/oauth2", "/oauth2/auth", "app.test"),
        ("far.test", "Backend", "default/auth.Ingress", "/oauth2/auth", "elsewhere.test"),
        ("fixed.test", "Service", "default/oauth2", "/oauth2/auth?x={method}", "login-here.test"),
        (
            "foreign.test",
            "Backend",
            "default/auth.Ingress",
            "/oauth2/auth?x={method}",
            "login.test",
        ),
        ("guarded-far.test", "Backend", "default/auth.Ingress", "/oauth2/auth", "private.test"),
        ("rewritten.test", "Service", "default/oauth2", "/v1/auth", ""),
        ("three.test", "Backend", "default/outside.Ingress", "/oauth2/auth", "three.test"),
        ("two.test", "Service", "auth/oauth2", "/oauth2/auth", "two.test"),
    ]
    grants = {
        (one.spec.from_[0].namespace, one.metadata.namespace, each.kind, each.name)
        for one in made.reference_grants.values()
        if one.spec.from_[0].kind == "SecurityPolicy"
        for each in one.spec.to
    }
    assert grants == {("default", "auth", "Service", "oauth2")}
