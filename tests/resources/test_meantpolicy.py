"""Objects that are all but policies: what they are for stays closed, and what is another project's is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.calling import call
from edgefast.resources.decode.decode import decode_documents
from edgefast.resources.foreign.foreignpolicy import ForeignPolicy
from edgefast.resources.foreign.meanttarget import meant_kind

pytestmark = pytest.mark.pure

GROUP = "gateway.networking.k8s.io"
OURS = "gateway.edge.io/v1alpha1"
TARGETS = {"targetRefs": [{"group": GROUP, "kind": "HTTPRoute", "name": "web"}]}
SERVICE = {"targetRefs": [{"group": "", "kind": "Service", "name": "web"}]}
X_GROUP = "gateway.networking.x-k8s.io"
EXPERIMENTAL = f"{X_GROUP}/v1alpha1"


def policies(
    api_version: str | None, kind: str | None, spec: Any, beside: str = ""
) -> tuple[tuple[ForeignPolicy, ...], list[str]]:
    raw = {"metadata": {"name": "p"}, "spec": spec}
    raw |= {} if api_version is None else {"apiVersion": api_version}
    raw |= {} if kind is None else {"kind": kind}
    found = decode_documents(json.dumps(raw).encode(), "a.json")
    assert not found.objects
    return found.policies, [one.severity for one in found.problems]


@pytest.mark.parametrize(
    ("api_version", "kind", "meant"),
    [
        (OURS, "SecurityPolicies", "SecurityPolicy"),
        (OURS, "securitypolicy", "SecurityPolicy"),
        (OURS, "Security-Policy", "SecurityPolicy"),
        (OURS, "SecurityPolcy", "SecurityPolicy"),
        (OURS, "BackendTrafficPolicys", "BackendTrafficPolicy"),
        (OURS, "Guard", "SecurityPolicy"),  # of our group only policies have targets
        (OURS, None, "SecurityPolicy"),
        (None, "SecurityPolicy", "SecurityPolicy"),
        (None, "SecurityPolcy", "SecurityPolicy"),
        ("", "SecurityPolicy", "SecurityPolicy"),
        ("v1", "SecurityPolicy", "SecurityPolicy"),
        ("gateway.edge.io", "SecurityPolicy", "SecurityPolicy"),
        ("gateway.edge.io/v1", "SecurityPolicy", "SecurityPolicy"),
        ("Gateway.Edge.io/v1alpha1", "SecurityPolicy", "SecurityPolicy"),
        ("gateway.edge.io/v1alpha1/v1alpha1", "SecurityPolicy", "SecurityPolicy"),
        ("gateway.edge.io/", "SecurityPolicy", "SecurityPolicy"),
        ("gateways.edge.io/v1alpha1", "BackendTrafficPolicy", "BackendTrafficPolicy"),
        (f"{GROUP}/v1", "SecurityPolicy", "SecurityPolicy"),
        (f"{GROUP}/v1", "BackendTlsPolicy", "BackendTLSPolicy"),
        ("gateway.networking.x-k8s.io/v1", "XBackendTrafficPolicy", "XBackendTrafficPolicy"),
        ("gateway.networking.x-k8s.io/v1alpha1", "XBackendTrafficPolcy", "XBackendTrafficPolicy"),
    ],
)
def test_what_looks_like_a_policy_closes_what_it_is_for(
    api_version: str | None, kind: str | None, meant: str
) -> None:
    targets = SERVICE if meant.startswith("X") else TARGETS
    (found,), severities = policies(api_version, kind, targets)
    assert (found.ref.kind, found.ref.namespace, found.ref.name) == (meant, "default", "p")
    assert [one.name for one, _ in found.targets] == ["web"] and not found.lost
    assert "error" in severities


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy"),
        ("gateway.envoyproxy.io/v1alpha1/v1", "SecurityPolicy"),
        ("gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy"),
        ("gateway.nginx.org/v1alpha1", "SnippetsPolicy"),
        ("security.istio.io/v1", "AuthorizationPolicy"),
        ("policy/v1", "PodSecurityPolicy"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("gateway.networking.x-k8s.io/v1alpha1", "XMesh"),
        ("gateway.networking.x-k8s.io/v1alpha2", "BackendTrafficPolicy"),
        ("gateway.edge.io/v1", "Backend"),
        ("gateway.edge.io/v1", "HTTPRouteFilter"),
    ],
)
def test_what_is_another_kind_closes_nothing(api_version: str, kind: str) -> None:
    closing = ("SecurityPolicy", "BackendTrafficPolicy")
    for spec in ({}, TARGETS if "edge.io" not in api_version else {}):
        found, _ = policies(api_version, kind, spec)
        assert not [one for one in found if one.lost]
        assert not [one for one in found if one.ref.group == "gateway.edge.io" and one.ref.kind in closing]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "lost"),
    [
        ({}, True),
        (None, True),
        ({"targetRefs": []}, True),
        ({"targetRefs": [{"kind": 5}]}, True),
        ({"targetRefs": [*TARGETS["targetRefs"], 5]}, True),
        ({"targetRef": TARGETS["targetRefs"][0], "targetRefs": 5}, True),
        ({"targetRefs": [{"group": GROUP, "kind": "TCPRoute", "name": "t"}]}, False),
        ({"targetRef": TARGETS["targetRefs"][0]}, False),
        ({"targetRefs": [{"group": GROUP, "kind": " ", "name": "web"}]}, True),
    ],
)
def test_a_target_that_cannot_be_read_may_be_anything(spec: Any, lost: bool) -> None:
    (found,), _ = policies(OURS, "SecurityPolicies", spec)
    assert found.lost is lost
    (found,), _ = policies("gateway.edge.io/v1", "SecurityPolicy", spec)
    assert found.lost is lost


@pytest.mark.parametrize("kind", [None, "", " ", "0s", 5, True, [], {}])
def test_what_has_no_kind_is_told_by_its_targets(kind: Any) -> None:
    both = {"targetRefs": [*TARGETS["targetRefs"], *SERVICE["targetRefs"]]}
    for api_version, spec, meant in (
        (OURS, TARGETS, "SecurityPolicy"),
        (OURS, SERVICE, "BackendTrafficPolicy"),
        (OURS, both, "BackendTrafficPolicy"),
        (OURS, {"targetRefs": 5}, "SecurityPolicy"),
        (EXPERIMENTAL, SERVICE, "XBackendTrafficPolicy"),
    ):
        if api_version == EXPERIMENTAL and kind == "0s":
            continue  # a kind of that group, which has others
        raw = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "p"}, "spec": spec}
        (found,) = decode_documents(json.dumps(raw).encode(), "a.json").policies
        assert found.ref.kind == meant
        assert found.lost or len(found.targets) == len(spec["targetRefs"])
    raw = {"apiVersion": EXPERIMENTAL, "kind": kind, "metadata": {"name": "p"}, "spec": TARGETS}
    told = decode_documents(json.dumps(raw).encode(), "a.json").policies
    assert all(one.ref.kind == kind for one in told)


@pytest.mark.parametrize(
    ("group", "kind", "meant"),
    [
        (None, "HTTPRoute", "HTTPRoute"),
        (5, "HTTPRoute", "HTTPRoute"),
        ("", "HTTPRoute", "HTTPRoute"),
        (f"{GROUP}/v1", "HTTPRoute", "HTTPRoute"),
        ("gateway.networking.k8s.oi", "HTTPRoute", "HTTPRoute"),
        ("networking.k8s.io", "HTTPRoute", "HTTPRoute"),
        ("Gateway.Networking.k8s.io ", "HTTPRoute", "HTTPRoute"),
        (GROUP, "HttpRoute", "HTTPRoute"),
        (GROUP, "httproute", "HTTPRoute"),
        (GROUP, "HTTPRout", "HTTPRoute"),
        (GROUP, " HTTPRoute", "HTTPRoute"),
        (GROUP, "Gatewy", "Gateway"),
        (GROUP, "GRPC-Route", "GRPCRoute"),
        (None, "Service", "Service"),
        (GROUP, "Service", "Service"),
        ("v1", "service", "Service"),
        ("core", "Service", "Service"),
        ("gateway.edge.oi", "Backend", "Backend"),
        # Kinds of the experimental group have an X before them.
        (X_GROUP, "Backend", "XBackend"),
        (f"{X_GROUP}/v1alpha1", "backend", "XBackend"),
        (X_GROUP, "Backends", "XBackend"),
        (X_GROUP, "XBackends", "XBackend"),
        (X_GROUP, "x-backend", "XBackend"),
        (None, None, None),
        (GROUP, " ", None),
        (GROUP, "0s", None),
        (GROUP, "x" * 5000, None),
        # What is well-formed and of others is theirs.
        (GROUP, "HTTPRouteFilter", ""),
        (GROUP, "GatewayClass", ""),
        (GROUP, "Mesh", ""),
        ("", "ServiceAccount", ""),
        ("apps", "Deployment", ""),
        ("apps/v1", "Deployment", ""),
        ("multicluster.x-k8s.io", "ServiceImport", ""),
        (X_GROUP, "XListenerSet", ""),
        (X_GROUP, "BackendTrafficPolicy", ""),
        ("policy.linkerd.io", "HTTPRoute", ""),
        ("gateway.envoyproxy.io", "HTTPRoute", ""),
        ("gateway.envoyproxy.io/v1alpha1", "Backend", ""),
        ("networking.istio.io", "Gateway", ""),
    ],
)
def test_a_target_that_is_all_but_right_is_what_was_meant(
    group: Any, kind: Any, meant: str | None
) -> None:
    assert meant_kind(group, kind) == meant
    one = {"group": group, "kind": kind, "name": "a"}
    raw = {"apiVersion": OURS, "kind": "BackendTrafficPolicy", "metadata": {"name": "p"}}
    raw["spec"] = {"targetRefs": [*TARGETS["targetRefs"], one], "timeout": 5}
    (found,) = decode_documents(json.dumps(raw).encode(), "a.json").policies
    named = [target.kind for target, _ in found.targets if target.name == "a"]
    assert (named, found.lost) == ([meant] if meant else [], meant is None)


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
        ({"apiVersion": OURS, "kind": "securitypolicy", "spec": {}}, ["web", "other"], []),
        ({"kind": "SecurityPolicy", "spec": TARGETS}, ["web"], ["other"]),
        (
            {
                "apiVersion": OURS,
                "kind": "SecurityPolicy",
                "spec": {
                    "targetRefs": [{"group": None, "kind": "HttpRoute", "name": "web"}],
                    "authorization": {},
                },
            },
            ["web"],
            ["other"],
        ),
        ({"apiVersion": OURS, "kind": [], "spec": TARGETS}, ["web"], ["other"]),
        ({"apiVersion": OURS, "kind": "", "spec": SERVICE}, ["web", "other"], []),
    ],
)
def test_check_fails_and_explain_says_500(
    policy: dict[str, Any], shut: list[str], open_: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(WEB + json.dumps(policy | {"metadata": {"name": "p"}}) + "\n")
    done = call("check", "-f", str(file))
    assert done.status == 1 and "get 500" in done.out + done.err
    for name in (*shut, *open_):
        said = call("explain", "-f", str(file), "GET", f"http://{name}.example/").out
        assert ("500 Internal Server Error" in said) is (name in shut), said
        assert ("policy_invalid" in said) is (name in shut)
