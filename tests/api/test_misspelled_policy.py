"""Objects that are policies but for their group or kind close what they name; objects of other projects do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.calling import call
from edgefast.api.decode.decode import decode_documents
from edgefast.api.edge.policy_target import CLOSED_BY

pytestmark = pytest.mark.pure

GROUP = "gateway.networking.k8s.io"
OURS = "gateway.edge.io/v1alpha1"
X_GROUP = "gateway.networking.x-k8s.io"
EXPERIMENTAL = f"{X_GROUP}/v1alpha1"
TARGET = {"group": GROUP, "kind": "HTTPRoute", "name": "web"}
TARGETS = {"targetRefs": [TARGET]}
SERVICE = {"targetRefs": [{"group": "", "kind": "Service", "name": "web"}]}
BOTH = {"targetRefs": [*TARGETS["targetRefs"], *SERVICE["targetRefs"]]}
ROUTE = [("HTTPRoute", "web")]
#: Every kind that a policy closes, by the name that is written.
ANY = {kind: [(one, "a") for one in kinds] for kind, kinds in CLOSED_BY.items()}
LOST = "lost"
Closed = list[tuple[str, str]] | str | None


def closed_by(api_version: object, kind: object, spec: object) -> tuple[str, Closed]:
    """Return the policy of ours that an object counts as, and what it closes; LOST: all of its namespace."""
    raw = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "p"}, "spec": spec}
    found = decode_documents(json.dumps(raw).encode(), "a.json")
    assert not found.objects and found.problems
    ours = [one for one in found.policies if one.ref.kind in (*CLOSED_BY, "BackendTLSPolicy")]
    ours = [one for one in ours if one.why]
    if not ours:
        return "", None
    assert any(one.severity == "error" for one in found.problems)
    (one,) = ours
    assert (one.ref.namespace, one.ref.name) == ("default", "p")
    if one.lost:
        return one.ref.kind, LOST
    return one.ref.kind, [(target.kind, target.name) for target, _ in one.targets]


@pytest.mark.parametrize(
    ("policy", "spec", "closed", "written"),
    [
        # By its exact kind, whatever its group, or by its targets.
        ("SecurityPolicy", TARGETS, ROUTE, [
            (None, "SecurityPolicy"), ("", "SecurityPolicy"), ("v1", "SecurityPolicy"), ("v1.0", "SecurityPolicy"),
            ("gateway.edge.io", "SecurityPolicy"), ("gateway.edge.io/", "SecurityPolicy"), ("gateway.edge.io/v1", "SecurityPolicy"),
            ("Gateway.Edge.io/v1alpha1", "SecurityPolicy"), (f"{OURS}/v1alpha1", "SecurityPolicy"), (f"{GROUP}/v1", "SecurityPolicy"),
            ("apps/v1", "SecurityPolicy"),
            (OURS, "SecurityPolicies"), (OURS, "securitypolicy"), (OURS, "Guard"), (OURS, None), (OURS, 5), (OURS, []), (OURS, " "),
            (None, "SecurityPolcy"), (None, None), ("gateways.edge.io/v1alpha1", "SecurityPolcy"), (f"{GROUP}/v1", "Security"),
            (EXPERIMENTAL, "Policy"),
        ]),
        ("BackendTrafficPolicy", TARGETS, ROUTE, [("gateways.edge.io/v1alpha1", "BackendTrafficPolicy"), (EXPERIMENTAL, "BackendTrafficPolicy")]),
        ("BackendTrafficPolicy", SERVICE, [("Service", "web")], [(OURS, "BackendTrafficPolicys"), (OURS, ""), (None, "BackendTraffic")]),
        ("BackendTrafficPolicy", BOTH, [*ROUTE, ("Service", "web")], [(OURS, None)]),
        ("XBackendTrafficPolicy", SERVICE, [("Service", "web")], [(f"{X_GROUP}/v1", "XBackendTrafficPolicy"), (EXPERIMENTAL, "XBackendTrafficPolcy"), (EXPERIMENTAL, None)]),
        ("BackendTLSPolicy", SERVICE, [("Service", "web")], [(None, "BackendTLSPolicy"), (f"{GROUP}/v2", "BackendTLSPolicy")]),
        # What it is for cannot be told.
        ("SecurityPolicy", {}, LOST, [(None, "SecurityPolicy"), ("gateway.edge.io/v1", "SecurityPolicy")]),
        ("SecurityPolicy", {"authorization": {}}, LOST, [(OURS, "SecurityPolicies"), (OURS, None)]),
        ("SecurityPolicy", [], LOST, [(OURS, "SecurityPolicies")]),
        ("SecurityPolicy", {"targetRefs": 5}, LOST, [(OURS, None), (None, "SecurityPolcy")]),
        # Another kind, or of another project.
        ("", TARGETS, None, [
            ("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy"), ("gateway.envoyproxy.io/v1alpha1/v1", "SecurityPolicy"),
            ("gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy"), ("gateway.nginx.org/v1alpha1", "SnippetsPolicy"),
            ("security.istio.io/v1", "AuthorizationPolicy"), ("policy/v1", "PodSecurityPolicy"), ("networking.k8s.io/v1", "NetworkPolicy"),
            ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"), ("flagger.app/v1beta1", "Canary"), (EXPERIMENTAL, "XMesh"),
        ]),
        ("", {}, None, [("gateway.edge.io/v1", "Backend"), ("gateway.edge.io/v1", "HTTPRouteFilter"), (OURS, "Backends"), (None, "Deploiment")]),
    ],
)  # fmt: skip
def test_what_an_object_closes(
    policy: str, spec: Any, closed: Closed, written: list[tuple[object, object]]
) -> None:
    for api_version, kind in written:
        assert closed_by(api_version, kind, spec) == (policy, closed), (api_version, kind)


@pytest.mark.parametrize(
    ("closed", "written"),
    [
        ("exact", [
            (None, "HTTPRoute"), (5, "HTTPRoute"), ("", "HTTPRoute"), (f"{GROUP}/v1", "HTTPRoute"), ("gateway.networking.k8s.oi", "HTTPRoute"),
            ("networking.k8s.io", "HTTPRoute"), ("Gateway.Networking.k8s.io ", "HTTPRoute"), (None, "Service"), (GROUP, "Service"), ("core", "Service"),
            (None, "TCPRoute"),
        ]),
        ("any", [
            (GROUP, "HttpRoute"), (GROUP, "httproute"), (GROUP, " HTTPRoute"), (GROUP, "Gatewy"), (GROUP, " "), (GROUP, "0s"), ("v1", "service"),
            ("", "service"), (None, "Foo"), ("networking.k8s.io", "HttpRoute"), ("gateway.networking.k8s.oi", "HttpRoute"), (X_GROUP, "Backends"),
        ]),
        ("", [
            (GROUP, "GatewayClass"), (GROUP, "HTTPRouteFilter"), ("", "ServiceAccount"), ("apps", "Deployment"), ("apps/v1", "Deployment"),
            ("multicluster.x-k8s.io", "ServiceImport"), (X_GROUP, "BackendTrafficPolicy"), ("policy.linkerd.io", "HTTPRoute"),
            ("gateway.envoyproxy.io", "HTTPRoute"), ("gateway.envoyproxy.io/v1alpha1", "Backend"), ("networking.istio.io", "Gateway"),
        ]),
        (LOST, [(None, None), (GROUP, ""), (GROUP, 5), (GROUP, "x" * 5000)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("policy", ["SecurityPolicy", "BackendTrafficPolicy"])
def test_what_a_target_closes(
    policy: str, closed: str, written: list[tuple[object, object]]
) -> None:
    for group, kind in written:
        spec = {"targetRefs": [{"group": group, "kind": kind, "name": "a"}], "timeout": 5}
        named = {"exact": [(kind, "a")], "any": ANY[policy], "": [], LOST: LOST}[closed]
        if closed == "exact" and kind not in CLOSED_BY[policy]:
            named = []
        assert closed_by(OURS, policy, spec) == (policy, named), (group, kind)


@pytest.mark.parametrize(
    "spec",
    [
        {"targetRefs": []},
        {"targetRefs": [TARGET, 5]},
        {"targetRef": TARGET, "targetRefs": 5},
        {"targetRefs": [TARGET | {"sectionName": 5}]},
    ],
)
def test_a_target_that_cannot_be_read_may_be_anything_of_the_namespace(spec: Any) -> None:
    for api_version, kind in ((OURS, "SecurityPolicy"), ("gateway.edge.io/v1", "SecurityPolicy")):
        assert closed_by(api_version, kind, spec) == ("SecurityPolicy", LOST)


def test_of_targets_that_are_given_twice_the_first_are_lost() -> None:
    text = f"apiVersion: {OURS}\nkind: SecurityPolicy\nmetadata: {{name: p}}\nspec:\n"
    text += f"  targetRefs: {json.dumps(TARGETS['targetRefs'])}\n" * 2
    (found,) = decode_documents(text.encode(), "a.yaml").policies
    assert found.lost and found.targets


WEB = f"""
apiVersion: {GROUP}/v1
kind: GatewayClass
metadata: {{name: edge}}
spec: {{controllerName: gateway.edge.io/gatewayclass-controller}}
---
apiVersion: {GROUP}/v1
kind: Gateway
metadata: {{name: gw}}
spec: {{gatewayClassName: edge, listeners: [{{name: http, port: 80, protocol: HTTP}}]}}
---
apiVersion: {GROUP}/v1
kind: HTTPRoute
metadata: {{name: web}}
spec:
  parentRefs: [{{name: gw}}]
  hostnames: [web.example]
  rules: [{{backendRefs: [{{name: web, port: 80}}]}}]
---
apiVersion: {GROUP}/v1
kind: HTTPRoute
metadata: {{name: other}}
spec:
  parentRefs: [{{name: gw}}]
  hostnames: [other.example]
  rules: [{{backendRefs: [{{name: web, port: 80}}]}}]
---
apiVersion: v1
kind: Service
metadata: {{name: web}}
spec: {{ports: [{{port: 80}}]}}
---
"""


@pytest.mark.parametrize(
    ("policy", "shut", "open_"),
    [
        ({"apiVersion": OURS, "kind": "securitypolicy", "spec": TARGETS}, ["web"], ["other"]),
        ({"kind": "SecurityPolicy", "spec": {}}, ["web", "other"], []),
        (
            {
                "apiVersion": OURS,
                "kind": "SecurityPolicy",
                "spec": {"targetRefs": [TARGET | {"kind": "HttpRoute"}], "authorization": {}},
            },
            ["web"],
            ["other"],
        ),
    ],
)
def test_check_fails_and_explain_says_500(
    policy: dict[str, Any], shut: list[str], open_: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(WEB + json.dumps(policy | {"metadata": {"name": "p"}}) + "\n")
    done = call("check", "-f", str(file))
    assert done.status == 1 and "get 500" in done.out + done.err
    assert "TargetNotFound" not in done.out  # kinds that the reference does not name
    for name in (*shut, *open_):
        said = call("explain", "-f", str(file), "GET", f"http://{name}.example/").out
        assert ("500 Internal Server Error" in said) is (name in shut), said
        assert ("policy_invalid" in said) is (name in shut)
