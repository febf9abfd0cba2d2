"""Permissions: those of spec section 5 and no others that write fleets; no wildcard; each with its reason, each where it belongs."""

from __future__ import annotations

from typing import Any

import pytest

from controller.manifests.objects import Manifest
from controller.manifests.rbac import GROUPS, INFRA, TOKENS

from .installs import GATEWAY_NAMESPACE, LABELLED, LISTED, OTHER, of, provider, render

pytestmark = pytest.mark.pure

#: The table of spec section 5: (API groups, resources, verbs).
SPEC = [
    ({""}, {"serviceaccounts", "services", "configmaps"}),
    ({"apps"}, {"deployments", "daemonsets"}),
    ({"autoscaling", "policy"}, {"horizontalpodautoscalers", "poddisruptionbudgets"}),
]
VERBS = {"create", "get", "delete", "deletecollection", "patch"}
READING = {"get", "list", "watch"}
SYSTEM = "edge-gateway-system"

Allowed = set[tuple[str, str, str]]  # group, resource, verb


def _allowed(role: Manifest) -> Allowed:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _spec_table() -> Allowed:
    return {
        (group, resource, verb)
        for groups, resources in SPEC
        for group in groups
        for resource in resources
        for verb in VERBS
    }


def _subjects(manifests: tuple[Manifest, ...]) -> dict[str, Any]:
    """Place of a role -> who is bound to it."""
    found = {}
    for name, binding in of(manifests, "RoleBinding", "ClusterRoleBinding").items():
        (subject,) = binding["subjects"]
        found[name] = (subject["kind"], subject["namespace"], subject["name"])
    return found


def test_the_cluster_role_of_gateway_namespace_mode_is_the_table_of_the_spec() -> None:
    manifests = render(provider(GATEWAY_NAMESPACE))
    role = of(manifests, "ClusterRole")["gateway-chart-cluster-infra-manager"]
    allowed = _allowed(role)
    table = _spec_table() | {("authentication.k8s.io", "tokenreviews", "create")}
    assert table <= allowed
    beyond = allowed - table
    assert {verb for _, _, verb in beyond} == {"list", "watch"}
    subject = _subjects(manifests)["gateway-chart-cluster-infra-manager"]
    assert subject == ("ServiceAccount", SYSTEM, "edge-gateway")


def test_controller_namespace_mode_writes_nothing_but_statuses_elsewhere() -> None:
    """The fewest permissions: everything cluster-wide is reading, statuses and events."""
    manifests = render()
    writing = {
        (group, resource, verb)
        for role in of(manifests, "ClusterRole").values()
        for group, resource, verb in _allowed(role)
        if verb not in READING
    }
    assert all(resource.endswith("/status") or resource == "events" for _, resource, _ in writing)
    assert "gateway-chart-cluster-infra-manager" not in of(manifests, "ClusterRole")
    assert set(of(manifests, "Role")) == {
        f"{SYSTEM}/edge-gateway",
        f"{SYSTEM}/edge-gateway-certgen",
    }
    assert _spec_table() <= _allowed(of(manifests, "Role")[f"{SYSTEM}/edge-gateway"])


@pytest.mark.parametrize("mode", [provider(LISTED), provider(LISTED, GATEWAY_NAMESPACE)])
def test_listed_namespaces_have_roles_and_nothing_else_is_read(mode: dict[str, Any]) -> None:
    manifests = render(mode)
    own = "deploy" in mode["config"]["edgeGateway"]["provider"]["orchestrator"]
    roles = of(manifests, "Role")
    for namespace in ("team-a", "team-b", SYSTEM):
        watch = _allowed(roles[f"{namespace}/gateway-chart-watch"])
        assert ("gateway.networking.k8s.io", "httproutes", "watch") in watch
        infra = roles.get(f"{namespace}/gateway-chart-infra-manager")
        assert (infra is not None) == own
        if infra:
            assert _spec_table() <= _allowed(infra)
    everywhere: Allowed = set().union(*map(_allowed, of(manifests, "ClusterRole").values()))
    resources = {resource for _, resource, _ in everywhere}
    assert resources == {
        "gatewayclasses",
        "gatewayclasses/status",
        "namespaces",
        "nodes",
        "customresourcedefinitions",
        "clustertrustbundles",
        "events",
        *(("tokenreviews",) if own else ()),
    }


@pytest.mark.parametrize("mode", [provider(), provider(LISTED), provider(LABELLED)])
def test_x_backends_and_pods_are_read_where_they_are_allowed(mode: dict[str, Any]) -> None:
    wanted = {
        ("", "pods", "list"),
        ("", "pods", "watch"),
        ("gateway.networking.x-k8s.io", "xbackends/status", "patch"),
        *(("gateway.networking.x-k8s.io", "xbackends", verb) for verb in READING),
    }

    def granted(*settings: str) -> dict[str, Allowed]:
        roles = of(render(mode, *settings), "Role", "ClusterRole")
        return {name: _allowed(role) & wanted for name, role in roles.items()}

    assert not any(granted().values())
    assert not any(granted("config.edgeGateway.extensionApis.enableBackend=true").values())
    on = granted("config.edgeGateway.extensionApis.enableXBackend=true")
    assert {name.rpartition("-")[2] for name, found in on.items() if found} == {"watch"}
    assert all(found in (set(), wanted) for found in on.values())


def test_a_selector_needs_the_cluster_wide_role() -> None:
    manifests = render(provider(LABELLED, GATEWAY_NAMESPACE))
    assert "gateway-chart-cluster-infra-manager" in of(manifests, "ClusterRole")
    assert "gateway-chart-watch" in of(manifests, "ClusterRole")


def test_secrets_are_written_in_the_controller_s_namespace_only() -> None:
    for mode in (
        provider(),
        provider(GATEWAY_NAMESPACE),
        provider(LISTED, GATEWAY_NAMESPACE),
        provider(LABELLED),
    ):
        for name, role in of(render(mode), "Role", "ClusterRole").items():
            verbs = {verb for _, resource, verb in _allowed(role) if resource == "secrets"}
            if verbs - READING:
                assert name in (f"{SYSTEM}/edge-gateway", f"{SYSTEM}/edge-gateway-certgen")


def test_gateway_namespace_mode_reads_and_changes_three_secrets_by_name() -> None:
    role = of(render(provider(GATEWAY_NAMESPACE)), "Role")[f"{SYSTEM}/edge-gateway"]
    rules = [rule for rule in role["rules"] if "secrets" in rule["resources"]]
    named = [rule["resourceNames"] for rule in rules if rule["verbs"] != ["create"]]
    assert named == [["edge-gateway", "edge-gateway-ca", "edge-gateway-tickets"]]


@pytest.mark.parametrize(
    "mode", [provider(), provider(GATEWAY_NAMESPACE), provider(LISTED, GATEWAY_NAMESPACE)]
)
def test_only_our_own_accounts_are_bound(mode: dict[str, Any]) -> None:
    for manifests, base, namespace in (
        (render(mode), "edge-gateway", SYSTEM),
        (render(mode, release=OTHER), "marketing-edge-gateway", "team-a"),
    ):
        for name, subject in _subjects(manifests).items():
            account = f"{base}-certgen" if name.endswith("-certgen") else base
            assert subject == ("ServiceAccount", namespace, account)


def test_no_wildcard_no_escalation_and_a_reason_for_each() -> None:
    for group in GROUPS:
        for grant in group.grants:
            parts = (*grant.groups, *grant.resources, *grant.verbs)
            assert "*" not in parts
            assert not {"bind", "escalate", "impersonate"} & set(parts)
            assert not {"pods/exec", "serviceaccounts/token"} & set(parts)
            assert grant.why.endswith(".") and len(grant.why) > 8


def test_infra_and_tokens_are_what_the_spec_lists() -> None:
    grants = {
        (group, resource, verb)
        for grant in (*INFRA.grants, *TOKENS.grants)
        for group in grant.groups
        for resource in grant.resources
        for verb in grant.verbs
        if verb not in ("list", "watch")
    }
    assert grants == _spec_table() | {("authentication.k8s.io", "tokenreviews", "create")}
