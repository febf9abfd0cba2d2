"""`edgefast check` of policies and filters of other projects: which of the fields that they set are here, and under which kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import call

pytestmark = pytest.mark.pure

OURS = (Path(__file__).parents[2] / "examples/quickstart.yaml").read_text()
POLICY = """---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: who, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: quickstart}]
  FIELDS
"""
MIDDLEWARE = """---
apiVersion: traefik.io/v1alpha1
kind: Middleware
metadata: {name: inside, namespace: default}
spec: {ipAllowList: {sourceRange: [10.0.0.0/8]}, passTLSClientCert: {pem: true}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: inner, namespace: default}
spec:
  parentRefs: [{name: edge}]
  rules:
  - matches: [{path: {value: /inner}}]
    filters:
    - {type: ExtensionRef, extensionRef: {group: traefik.io, kind: Middleware, name: NAMED}}
    backendRefs: [{name: api, port: 80}]
"""


def check(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "all.yaml"
    path.write_text(OURS + text)
    outcome = call("check", "-f", str(path))
    assert outcome.status == 1
    return outcome.out.splitlines()


def test_fields_that_are_set_are_told_one_by_one(tmp_path: Path) -> None:
    fields = "authorization: {rules: []}\n  oidc: {clientID: a}\n  whatever: 1\n  csrf: null"
    (line,) = [
        one for one in check(tmp_path, POLICY.replace("FIELDS", fields)) if "PolicyIgnored" in one
    ]
    assert "is served WITHOUT SecurityPolicy default/who, policies of gateway.envoyproxy.io" in line
    assert "authorization is here SecurityPolicy spec.authorization" in line
    assert "oidc is not here yet" in line and "whatever is not here" in line
    assert "csrf" not in line and "targetRefs" not in line


def test_fields_below_one_that_is_here_are_told_where_they_are_not(tmp_path: Path) -> None:
    fields = """authorization: {rules: [{action: Allow, cel: its.expression}, {principal: {clientIPGeoLocations: [{country: FR}]}}]}
  jwt: {providers: [{name: a}, {name: b, recomputeRoute: true}]}"""
    (line,) = [
        one for one in check(tmp_path, POLICY.replace("FIELDS", fields)) if "PolicyIgnored" in one
    ]
    assert "authorization is here SecurityPolicy spec.authorization" in line
    assert "; authorization.rules[].cel is not here: rules are of addresses" in line
    assert "; authorization.rules[].principal.clientIPGeoLocations is not here" in line
    assert "; jwt.providers[].recomputeRoute is not here" in line
    assert "backendSettings" not in line and "its.expression" not in line and "FR" not in line


def test_a_filter_that_a_route_names_is_told_with_its_options(tmp_path: Path) -> None:
    lines = check(tmp_path, MIDDLEWARE.replace("NAMED", "inside"))
    (line,) = [one for one in lines if "names it and answers 500" in one]
    assert (
        "Middleware default/inside: NotSupported HTTPRoute default/inner spec.rules[0].filters[0]"
        in line
    )
    assert "ipAllowList is here SecurityPolicy spec.authorization" in line
    assert "passTLSClientCert is not here yet" in line
    assert any("HTTPRoute default/inner" in one and "extensionRef" in one for one in lines)


def test_a_filter_that_no_route_names_is_not(tmp_path: Path) -> None:
    lines = check(tmp_path, MIDDLEWARE.replace("NAMED", "other"))
    assert not [one for one in lines if "names it" in one]
