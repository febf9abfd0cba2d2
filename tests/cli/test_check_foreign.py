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
INGRESS = """---
apiVersion: extensions/v1beta1
kind: Ingress
metadata:
  name: shop
  namespace: default
  annotations:
    cert-manager.io/cluster-issuer: letsencrypt
    nginx.ingress.kubernetes.io/rewrite-target: /its/$2
    nginx.ingress.kubernetes.io/auth-url: http://its.example/token
    nginx.ingress.kubernetes.io/server-snippet: |
      set $password hunter2;
spec: {ingressClassName: nginx}
"""
ANNOTATED = """---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: inner
  namespace: default
  annotations:
    nginx.ingress.kubernetes.io/app-root: /its/start
ANNOTATION
spec:
  parentRefs: [{name: edge}]
  rules:
  - matches: [{path: {value: /inner}}]
    backendRefs: [{name: api, port: 80}]
"""


def check(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "all.yaml"
    path.write_text(OURS + text)
    outcome = call("check", "-f", str(path))
    assert outcome.status == 1
    return outcome.out.splitlines()


def test_fields_that_are_set_are_told_one_by_one(tmp_path: Path) -> None:
    fields = (
        "authorization: {rules: []}\n  csrf: {additionalOrigins: []}\n  whatever: 1\n  oidc: null"
    )
    (line,) = [
        one for one in check(tmp_path, POLICY.replace("FIELDS", fields)) if "PolicyIgnored" in one
    ]
    why = (
        "decides access (authorization, csrf, whatever) and is not applied, write a SecurityPolicy"
    )
    assert f"answers 500: SecurityPolicy default/who of gateway.envoyproxy.io {why}" in line
    assert "authorization: use SecurityPolicy spec.authorization" in line
    assert "csrf: no equivalent" in line and "whatever: no equivalent" in line
    assert "oidc" not in line and "targetRefs" not in line


def test_fields_below_one_that_is_here_are_told_where_they_are_not(tmp_path: Path) -> None:
    fields = """authorization: {rules: [{action: Allow, cel: its.expression}, {principal: {clientIPGeoLocations: [{country: FR}]}}]}
  jwt: {providers: [{name: a}, {name: b, recomputeRoute: true}]}"""
    (line,) = [
        one for one in check(tmp_path, POLICY.replace("FIELDS", fields)) if "PolicyIgnored" in one
    ]
    assert "authorization: use SecurityPolicy spec.authorization" in line
    assert "; authorization.rules[].cel: no equivalent: rules support addresses" in line
    assert "; authorization.rules[].principal.clientIPGeoLocations: no equivalent" in line
    assert "; jwt.providers[].recomputeRoute: no equivalent" in line
    assert "backendSettings" not in line and "its.expression" not in line and "FR" not in line


def test_a_filter_that_a_route_names_is_told_with_its_options(tmp_path: Path) -> None:
    lines = check(tmp_path, MIDDLEWARE.replace("NAMED", "inside"))
    (line,) = [one for one in lines if "refers to it and answers 500" in one]
    assert (
        "Middleware default/inside: NotSupported HTTPRoute default/inner spec.rules[0].filters[0]"
        in line
    )
    assert "ipAllowList: use SecurityPolicy spec.authorization" in line
    assert "passTLSClientCert: no equivalent" in line
    assert any("HTTPRoute default/inner" in one and "extensionRef" in one for one in lines)


def test_a_filter_that_no_route_names_is_not(tmp_path: Path) -> None:
    lines = check(tmp_path, MIDDLEWARE.replace("NAMED", "other"))
    assert not [one for one in lines if "names it" in one]


def test_an_ingress_is_told_with_its_annotations(tmp_path: Path) -> None:
    lines = [one for one in check(tmp_path, INGRESS) if "Ingress default/shop" in one]
    (whole,) = [one for one in lines if " kind: " in one]
    assert whole.endswith(
        "edgefast does not serve Ingress of extensions/v1beta1, write apiVersion: networking.k8s.io/v1"
    )
    for short, said, warning in (
        ("auth-url", "use SecurityPolicy spec.extAuth.http", False),
        ("server-snippet", "no equivalent", False),
        ("rewrite-target", "use HTTPRouteFilter", True),
    ):
        (line,) = [
            one
            for one in lines
            if f"metadata.annotations[nginx.ingress.kubernetes.io/{short}]" in one
        ]
        assert f"NotSupported not applied, {said}" in line
        assert line.endswith("see edgefast docs migrating" + " (warning)" * warning)
    line = " ".join(lines)
    for value in ("its", "hunter2", "cert-manager", "letsencrypt"):
        assert value not in line.replace("its place", ""), value


def test_annotations_of_a_route_are_told_at_their_lines(tmp_path: Path) -> None:
    guard = "    nginx.ingress.kubernetes.io/whitelist-source-range: 192.0.2.0/24"
    lines = check(tmp_path, ANNOTATED.replace("ANNOTATION", guard))
    told = [one for one in lines if "PolicyIgnored" in one and "HTTPRoute default/inner" in one]
    root, allowed = sorted(told, key=lambda one: "whitelist" in one)
    assert (
        "metadata.annotations[nginx.ingress.kubernetes.io/app-root]: PolicyIgnored it has" in root
    )
    assert "app-root: use a rule of the path /" in root and root.endswith("(warning)")
    assert "PolicyIgnored decides access and is not applied; requests get 500" in allowed
    assert "(--ignore-foreign-policies); annotations of ingress-nginx are not applied" in allowed
    assert "whitelist-source-range: use SecurityPolicy spec.authorization" in allowed
    assert not allowed.endswith("(warning)") and "192.0.2" not in allowed and "its" not in root
    places = [int(one.split(" ")[0].rpartition(":")[2]) for one in (root, allowed)]
    assert places[1] == places[0] + 1


def test_annotations_that_let_nobody_in_are_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(OURS + ANNOTATED.replace("ANNOTATION\n", ""))
    outcome = call("check", "-f", str(path))
    assert outcome.status == 0 and "app-root" in outcome.out
    assert call("check", "--strict", "-f", str(path)).status == 1
