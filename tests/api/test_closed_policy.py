"""What a policy with an error closes: what its readable targets name. Objects of other projects close nothing here."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from edgefast.api.decode.decode import decode_documents
from edgefast.api.edge.policy_target import TARGETS_OF
from edgefast.api.edge.securitypolicy import SecurityPolicy

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
ANY = {kind: [(one, "a") for one in kinds] for kind, kinds in TARGETS_OF.items()}
LOST = "all of the namespace"
Closed = list[tuple[str, str]] | str | None


def closed_by(api_version: object, kind: object, spec: object) -> tuple[str, Closed]:
    """Return the policy of ours that an object counts as, and what it closes."""
    raw = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "p"}, "spec": spec}
    found = decode_documents(json.dumps(raw).encode(), "a.json")
    assert not found.objects and found.problems
    tls = [one for one in found.policies if one.ref.kind == "BackendTLSPolicy"]
    held: list[Any] = [one.closed.obj for one in found.refused if one.closed]
    if not held and not tls:
        return "", None
    assert any(one.severity == "error" for one in found.problems)
    if tls:
        return "BackendTLSPolicy", [(one.kind, one.name) for one, _ in tls[0].targets]
    (one,) = held
    assert (one.metadata.namespace, one.metadata.name, one.closed is None) == (
        "default",
        "p",
        False,
    )
    lost = any(aim.path == ("spec",) for aim in one.aimed)
    named = [(aim.kind, aim.name) for aim in one.aimed]
    return type(one).__name__, LOST if lost else named


@pytest.mark.parametrize(
    ("policy", "spec", "closed", "written"),
    [
        # The exact kind, in a group of ours or none, in another version or with a slip that the message names.
        ("SecurityPolicy", TARGETS, ROUTE, [
            (None, "SecurityPolicy"), ("", "SecurityPolicy"), ("v1", "SecurityPolicy"), ("gateway.edge.io", "SecurityPolicy"),
            ("gateway.edge.io/", "SecurityPolicy"), ("gateway.edge.io/v1", "SecurityPolicy"), ("Gateway.Edge.io/v1alpha1", "SecurityPolicy"),
            (f"{OURS}/v1alpha1", "SecurityPolicy"), (f"{GROUP}/v1", "SecurityPolicy"), ("apps/v1", "SecurityPolicy"),
            ("gateways.edge.io/v1alpha1", "SecurityPolicy"), (OURS, "SecurityPolicies"), (OURS, "securitypolicy"),
        ]),
        # An unknown kind in a group of ours or none: its targets tell.
        ("SecurityPolicy", TARGETS, ROUTE, [
            (OURS, "Guard"), (OURS, None), (OURS, 5), (OURS, []), (OURS, {}), (OURS, " "), (None, "SecurityPolcy"), (None, None), (f"{GROUP}/v1", "Security"),
            (EXPERIMENTAL, "Policy"), ("gateway.edge.io", "Guard"),
        ]),
        ("BackendTrafficPolicy", SERVICE, [("Service", "web")], [
            (OURS, ""), (None, "BackendTraffic"), (EXPERIMENTAL, "XBackendTrafficPolcy"), (EXPERIMENTAL, None),
        ]),
        ("BackendTrafficPolicy", BOTH, [*ROUTE, ("Service", "web")], [(OURS, None), (OURS, "BackendTrafficPolicys")]),
        ("BackendTrafficPolicy", TARGETS, ROUTE, [("gateways.edge.io/v1alpha1", "BackendTrafficPolicy"), (EXPERIMENTAL, "BackendTrafficPolicy")]),
        ("XBackendTrafficPolicy", SERVICE, [("Service", "web")], [(f"{X_GROUP}/v1", "XBackendTrafficPolicy")]),
        ("BackendTLSPolicy", SERVICE, [("Service", "web")], [(None, "BackendTLSPolicy"), (f"{GROUP}/v2", "BackendTLSPolicy"), (f"{GROUP}/v1", "BackendTLSPolcy")]),
        ("BackendTrafficPolicy", {"targetRefs": [{"group": X_GROUP, "kind": "Backend", "name": "a"}]}, [("Backend", "a"), ("XBackend", "a")], [
            (OURS, "BackendTrafficPolicy"),
        ]),
        # No target is readable.
        ("SecurityPolicy", {}, LOST, [(None, "SecurityPolicy"), ("gateway.edge.io/v1", "SecurityPolicy")]),
        ("SecurityPolicy", [], LOST, [(OURS, "SecurityPolicies")]),
        ("SecurityPolicy", {"authorization": {}}, LOST, [(OURS, "SecurityPolicies")]),
        ("SecurityPolicy", {"targetRefs": 5}, LOST, [(OURS, None), (None, "SecurityPolcy")]),
        ("SecurityPolicy", {"targetRefs": []}, LOST, [(OURS, "SecurityPolicy")]),
        ("SecurityPolicy", {"targetRefs": [TARGET, 5]}, LOST, [(OURS, "SecurityPolicy"), ("gateway.edge.io/v1", "SecurityPolicy")]),
        ("SecurityPolicy", {"targetRef": TARGET, "targetRefs": 5}, LOST, [(OURS, "SecurityPolicy")]),
        ("SecurityPolicy", {"targetRefs": [TARGET | {"sectionName": 5}]}, LOST, [(OURS, "SecurityPolicy")]),
        # Another kind, or of another project: it is reported.
        ("", TARGETS, None, [
            ("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy"), ("gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy"),
            ("gateways.edge.io/v1alpha1", "SecurityPolcy"), ("v1", "SecurityPolcy"), ("gateway.nginx.org/v1alpha1", "SnippetsPolicy"),
            ("security.istio.io/v1", "AuthorizationPolicy"), ("policy/v1", "PodSecurityPolicy"), ("networking.k8s.io/v1", "NetworkPolicy"),
            ("flagger.app/v1beta1", "Canary"), (EXPERIMENTAL, "XMesh"),
        ]),
        ("", {}, None, [("gateway.edge.io/v1", "Backend"), (OURS, "Backends"), (None, "Deploiment"), (OURS, None), (OURS, "Guard")]),
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
        # The exact kind, whatever the group.
        ("exact", [
            (None, "HTTPRoute"), (5, "HTTPRoute"), ("", "HTTPRoute"), (f"{GROUP}/v1", "HTTPRoute"), ("gateway.networking.k8s.oi", "HTTPRoute"),
            ("policy.linkerd.io", "HTTPRoute"), (None, "Service"), (GROUP, "Service"), ("core", "Service"), (None, "TCPRoute"),
        ]),
        # An unknown kind: every kind of that name.
        ("any", [
            (GROUP, "HttpRoute"), (GROUP, " HTTPRoute"), (GROUP, "Gatewy"), (GROUP, " "), ("v1", "service"), (None, "Foo"), (X_GROUP, "Backends"),
            ("apps", "Deployment"), ("gateway.networking.k8s.oi", "HttpRoute"), (GROUP, "x" * 5000),
        ]),
        # A known kind that takes no policies.
        ("", [(GROUP, "GatewayClass"), (GROUP, "HTTPRouteFilter"), ("", "ServiceAccount")]),
        (LOST, [(None, None), (GROUP, ""), (GROUP, 5)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("policy", ["SecurityPolicy", "BackendTrafficPolicy"])
def test_what_a_target_closes(
    policy: str, closed: str, written: list[tuple[object, object]]
) -> None:
    for group, kind in written:
        spec = {"targetRefs": [{"group": group, "kind": kind, "name": "a"}], "timeout": 5}
        named = {"exact": [(kind, "a")], "any": ANY[policy], "": [], LOST: LOST}[closed]
        if closed == "exact" and kind not in TARGETS_OF[policy]:
            named = []
        assert closed_by(OURS, policy, spec) == (policy, named), (group, kind)


def test_of_targets_that_are_given_twice_the_first_are_lost() -> None:
    text = f"apiVersion: {OURS}\nkind: SecurityPolicy\nmetadata: {{name: p}}\nspec:\n"
    text += f"  targetRefs: {json.dumps(TARGETS['targetRefs'])}\n" * 2
    (found,) = decode_documents(text.encode(), "a.yaml").refused
    assert found.closed is not None and isinstance(found.closed.obj, SecurityPolicy)
    assert {len(one.path) for one in found.closed.obj.aimed} == {1, 3}


# --- in what is no document: a list, a List in a List, items that are no list


def bare(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"targetRefs": [TARGET | {"name": name}]}}


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
        (functools.reduce(lambda inner, _: [inner], range(50), whole("a")), ["a"]),
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
