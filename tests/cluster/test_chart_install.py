"""An installation at a real API server: by helm, by `edgefast install`, upgraded, changed in mode, removed; and what it may do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.chart_helpers import Hands
from cluster.installer import SYSTEM, Installer, left_fleets
from cluster.test_chart_template import VALUES
from cluster.world.api import ApiError
from cluster.world.apiserver import ApiServer
from cluster.world.crds import wait_served
from cluster.world.waiting import wait_until
from controller.kube.status_author import author_of
from controller.manifests.generate import FOLDER
from controller.manifests.load import load_install
from controller.manifests.monitoring import OPERATOR
from controller.manifests.naming import Release
from controller.manifests.rbac import CLUSTER, GROUPS, INFRA, OWN, TOKENS, WATCH, Group
from controller.manifests.render import render_install

OWN_NAMESPACE = "config.edgeGateway.provider.orchestrator.deploy.type=GatewayNamespace"


@pytest.mark.parametrize("name", VALUES)
def test_the_api_server_takes_every_object(apiserver: ApiServer, name: str) -> None:
    namespace = apiserver.namespace("chart")
    for listed in ("team-a", "team-b"):
        if apiserver.admin.find(f"/api/v1/namespaces/{listed}") is None:
            meta = {"name": listed}
            apiserver.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    values = yaml.safe_dump(VALUES[name]).encode()
    made, problems = load_install(Release("one", namespace), [("values.yaml", values)])
    assert made is not None, problems
    for manifest in render_install(made, crds=False):
        if manifest["apiVersion"] == OPERATOR:
            continue  # kinds of the Prometheus operator, which is not here
        path = apiserver.admin.path_of(manifest, collection=True)
        apiserver.admin.post(f"{path}?dryRun=All&fieldValidation=Strict", manifest)


def test_helm_installs_upgrades_and_uninstalls(installer: Installer) -> None:
    api = installer.apiserver.admin
    common = ("edge-gateway", str(FOLDER), "-n", SYSTEM, "--timeout", "90s")
    with Hands(installer.apiserver, SYSTEM) as hands:
        installer.helm("install", *common)
        assert hands.jobs == 1
        names = installer.release_objects("edge-gateway", SYSTEM)
        assert {
            ("deployments", "edge-gateway"),
            ("services", "edge-gateway"),
            ("services", "edge-gateway-metrics-service"),
            ("configmaps", "edge-gateway-config"),
            ("serviceaccounts", "edge-gateway"),
        } <= names
        assert not [one for one in names if "certgen" in one[1]], "hooks that succeeded are removed"
        assert ("clusterroles", "gateway-chart-cluster-infra-manager") not in names
        installer.helm("upgrade", *common, "--set", OWN_NAMESPACE)
        assert hands.jobs == 2
    role = api.get(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/gateway-chart-cluster-infra-manager"
    )
    assert role["metadata"]["annotations"]["meta.helm.sh/release-name"] == "edge-gateway"
    text = api.get(f"/api/v1/namespaces/{SYSTEM}/configmaps/edge-gateway-config")["data"]
    config = yaml.safe_load(text["edge-gateway.yaml"])
    assert config["provider"]["orchestrator"]["deploy"]["type"] == "GatewayNamespace"
    with Hands(installer.apiserver, SYSTEM):
        assert "managed by helm" in installer.edgefast("install", wrong=True)
        assert "managed by helm" in installer.edgefast("uninstall", wrong=True)
    installer.helm("uninstall", "edge-gateway", "-n", SYSTEM)
    assert not installer.release_objects("edge-gateway", SYSTEM)


def test_two_releases_of_helm_side_by_side(installer: Installer) -> None:
    tenant = installer.apiserver.namespace("tenant")
    with Hands(installer.apiserver, SYSTEM), Hands(installer.apiserver, tenant):
        installer.helm("install", "edge-gateway", str(FOLDER), "-n", SYSTEM, "--set", OWN_NAMESPACE)
        installer.helm("install", "marketing", str(FOLDER), "-n", tenant, "--set", OWN_NAMESPACE)
        installer.helm("install", "edge-gateway", str(FOLDER), "-n", tenant)
    names = installer.release_objects("marketing", tenant)
    assert ("deployments", "marketing-edge-gateway") in names
    assert ("clusterroles", f"{tenant}-marketing-gateway-chart-cluster-infra-manager") in names
    installer.helm("uninstall", "marketing", "-n", tenant)
    installer.helm("uninstall", "edge-gateway", "-n", tenant)
    assert ("deployments", "edge-gateway") in installer.release_objects("edge-gateway", SYSTEM)


def test_edgefast_installs_upgrades_changes_mode_and_uninstalls(
    installer: Installer, tmp_path: Path
) -> None:
    with Hands(installer.apiserver, SYSTEM) as hands:
        said = installer.edgefast("install", "--set", OWN_NAMESPACE)
        assert "ready: GatewayClasses with spec.controllerName gateway.edge.io/" in said
        first = installer.release_objects("edge-gateway", SYSTEM)
        assert ("clusterroles", "gateway-chart-cluster-infra-manager") in first
        assert not [one for one in first if "certgen" in one[1]]
        (tmp_path / "v.yaml").write_text("hpa: {enabled: true}\n")
        installer.edgefast("install", "-f", str(tmp_path / "v.yaml"))
        assert hands.jobs == 2
    second = installer.release_objects("edge-gateway", SYSTEM)
    assert ("clusterroles", "gateway-chart-cluster-infra-manager") not in second
    assert ("horizontalpodautoscalers", "edge-gateway") in second
    foreign = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "mine", "namespace": SYSTEM},
    }
    installer.apiserver.admin.apply(foreign)
    with left_fleets(installer.apiserver) as (served, unanswered):
        gateways = {name: find_gateway(installer.apiserver, name) for name in ("served", "kept")}
        for path in gateways.values():
            say_programmed(installer.apiserver, path)
        said = installer.edgefast("uninstall")
        told = {name: installer.apiserver.admin.get(at)["status"] for name, at in gateways.items()}
        for one in told.values():
            by_type = {each["type"]: each for each in one["conditions"]}
            assert by_type["Programmed"]["status"] == "Unknown"
            assert "its controller has been uninstalled" in by_type["Programmed"]["message"]
        assert [one["value"] for one in told["served"]["addresses"]] == ["192.0.2.1"]
        assert not told["kept"].get("addresses")
        assert "removed: " in said
        assert (
            f"1 fleets still serve their last table, and no controller removes them: {served}"
            in said
        )
        services = f"/api/v1/namespaces/{SYSTEM}/services"
        left = [one["metadata"]["name"] for one in installer.apiserver.admin.items(services)]
        assert served.partition("/")[2] in left
        assert unanswered.partition("/")[2] not in left
    assert not installer.release_objects("edge-gateway", SYSTEM)
    assert installer.apiserver.admin.find(f"/api/v1/namespaces/{SYSTEM}/configmaps/mine")
    kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/edgeproxies.gateway.edge.io"
    assert installer.apiserver.admin.find(kinds), "kinds stay: objects would go with them"


def find_gateway(apiserver: ApiServer, name: str) -> str:
    """Return the path of the one Gateway of a name."""
    every = apiserver.admin.items("/apis/gateway.networking.k8s.io/v1/gateways")
    (space,) = {
        one["metadata"]["namespace"]
        for one in every
        if one["spec"]["gatewayClassName"].endswith(f"-{name}")
    }
    return f"/apis/gateway.networking.k8s.io/v1/namespaces/{space}/gateways/{name}"


def say_programmed(apiserver: ApiServer, path: str) -> None:
    """Write a status as the controller of the installation does."""
    conditions = [
        {
            "type": one,
            "status": "True",
            "reason": one,
            "message": "fine",
            "lastTransitionTime": "2025-01-01T00:00:00Z",
        }
        for one in ("Accepted", "Programmed")
    ]
    addresses = [{"type": "IPAddress", "value": "192.0.2.1"}]
    body = {"status": {"conditions": conditions, "addresses": addresses}}
    apiserver.admin.request(
        "PATCH",
        f"{path}/status",
        json.dumps(body).encode(),
        content_type="application/merge-patch+json",
        query={"fieldManager": author_of(f"{SYSTEM}.edge-gateway")},
    )


def test_a_job_that_fails_stops_the_installation(installer: Installer) -> None:
    with Hands(installer.apiserver, SYSTEM, fail_jobs=True):
        said = installer.edgefast("install", wrong=True)
    assert "the Job edge-gateway-certgen failed" in said
    assert ("deployments", "edge-gateway") not in installer.release_objects("edge-gateway", SYSTEM)


def test_monitoring_is_installed_where_its_kinds_are(installer: Installer) -> None:
    """Dashboards are ConfigMaps; a PrometheusRule takes the operator, and an installation without it says so."""
    with Hands(installer.apiserver, SYSTEM):
        installer.edgefast("install", "--set", "monitoring.dashboards.enabled=true")
        dashboards = {
            ("configmaps", f"edge-gateway-dashboard-{name}")
            for name in ("traffic", "limits", "control-plane")
        }
        assert dashboards <= installer.release_objects("edge-gateway", SYSTEM)
        said = installer.edgefast("install", "--set", "monitoring.rules.enabled=true", wrong=True)
        assert (
            "PrometheusRule edge-gateway: the Prometheus operator is not installed in this cluster"
            in said
        )
        with operator_kinds(installer.apiserver):
            every = [f"monitoring.{one}.enabled=true" for one in ("rules", "podMonitor")]
            installer.edgefast("install", "--set", ",".join(every))
            names = installer.release_objects("edge-gateway", SYSTEM)
            assert not dashboards & names, "what is not wanted any more is removed"
            rules = f"/apis/{OPERATOR}/namespaces/{SYSTEM}/prometheusrules/edge-gateway"
            assert installer.apiserver.admin.get(rules)["spec"]["groups"]
            installer.edgefast("install")
            assert installer.apiserver.admin.find(rules) is None


@contextmanager
def operator_kinds(apiserver: ApiServer) -> Iterator[None]:
    """Kinds of the Prometheus operator for a while, with any content."""
    paths = []
    for kind in ("PrometheusRule", "PodMonitor", "ServiceMonitor"):
        group, version = OPERATOR.split("/")
        plural = f"{kind.lower()}s"
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        spec: dict[str, Any] = {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        }
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": spec,
        }
        apiserver.admin.apply(crd)
        paths.append(apiserver.admin.path_of(crd))
    try:
        # Established is not yet served, nor in the list of kinds that installations look at.
        wait_served(apiserver.admin, [path.rpartition("/")[2] for path in paths])
        wait_until(lambda: len(apiserver.admin.get(f"/apis/{OPERATOR}")["resources"]) == len(paths))
        yield
    finally:
        for path in paths:
            apiserver.admin.delete(path)
            apiserver.admin.wait_gone(path)


def test_who_may_not_install_is_told(installer: Installer) -> None:
    namespace = installer.apiserver.namespace("nobody")
    config = installer.apiserver.kubeconfig_for(f"{namespace}/nobody")
    said = installer.edgefast("install", "-n", namespace, wrong=True, config=config)
    assert "edgefast install: 403 Forbidden" in said


# --- what the controller may do


def _may(apiserver: ApiServer, account: str, namespace: str, what: dict[str, str]) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {
            "user": f"system:serviceaccount:{account.replace('/', ':')}",
            "resourceAttributes": {"namespace": namespace, **what},
        },
    }
    return bool(apiserver.admin.create(review)["status"]["allowed"])


def _was_requested(group: Group) -> Iterator[dict[str, str]]:
    for grant in group.grants:
        for name in grant.groups:
            for full in grant.resources:
                resource, _, part = full.partition("/")
                for verb in grant.verbs:
                    asked = {"group": name, "resource": resource, "verb": verb}
                    if part:
                        asked["subresource"] = part
                    for named in (*grant.names, *(f"edge-gateway{s}" for s in grant.own_names)):
                        asked["name"] = named
                    yield asked


@pytest.mark.parametrize(
    ("mode", "inside", "elsewhere", "nowhere"),
    [
        ("defaults", (WATCH, OWN, INFRA, CLUSTER), (WATCH, CLUSTER), (TOKENS,)),
        ("gateway-namespace", (WATCH, OWN, INFRA, TOKENS), (WATCH, INFRA), ()),
        ("listed", (WATCH, OWN, INFRA, CLUSTER), (CLUSTER,), (TOKENS,)),
        ("listed-gateway-namespace", (WATCH, OWN, INFRA, TOKENS), (TOKENS, CLUSTER), ()),
        ("labelled-gateway-namespace", (WATCH, OWN, INFRA, TOKENS), (WATCH, INFRA), ()),
    ],
)
def test_what_the_account_may_do_and_where(
    apiserver: ApiServer,
    mode: str,
    inside: tuple[Group, ...],
    elsewhere: tuple[Group, ...],
    nowhere: tuple[Group, ...],
) -> None:
    """`inside` the controller's namespace, `elsewhere` in one that is not listed."""
    namespace, other = apiserver.namespace("own"), apiserver.namespace("other")
    values = yaml.safe_dump(VALUES[mode]).encode()
    made, problems = load_install(Release("edge-gateway", namespace), [("values.yaml", values)])
    assert made is not None, problems
    roles = [one for one in render_install(made, crds=False) if "rbac" in one["apiVersion"]]
    for listed in {one["metadata"].get("namespace", namespace) for one in roles}:
        if apiserver.admin.find(f"/api/v1/namespaces/{listed}") is None:
            meta = {"name": listed}
            apiserver.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    apiserver.admin.apply(*roles)
    account = f"{namespace}/edge-gateway"
    lease = {"group": "coordination.k8s.io", "resource": "leases", "verb": "create"}
    # The authorizer learns of bindings through watches of its own, one by one.
    for asked in [one for group in inside for one in _was_requested(group)]:
        wait_until(partial(_may, apiserver, account, namespace, asked))
    for group in elsewhere:
        for asked in _was_requested(group):
            assert _may(apiserver, account, other, asked), (group.name, asked)
    for group in nowhere:
        for asked in _was_requested(group):
            assert not _may(apiserver, account, namespace, asked), (group.name, asked)
    granted = {json.dumps(asked) for group in elsewhere for asked in _was_requested(group)}
    for group in GROUPS:
        for asked in _was_requested(group):
            if json.dumps(asked) not in granted and "name" not in asked:
                allowed = _may(apiserver, account, other, asked)
                assert allowed == (
                    group in (CLUSTER, TOKENS) and asked["verb"] in _cluster_wide(mode, group)
                ), (group.name, asked)
    assert not _may(apiserver, account, other, lease)
    for asked in (
        {"group": "", "resource": "secrets", "verb": "create"},
        {"group": "", "resource": "pods", "subresource": "exec", "verb": "create"},
        {"group": "rbac.authorization.k8s.io", "resource": "roles", "verb": "create"},
        {"group": "gateway.networking.k8s.io", "resource": "httproutes", "verb": "patch"},
        {"group": "", "resource": "serviceaccounts", "subresource": "token", "verb": "create"},
    ):
        assert not _may(apiserver, account, other, asked), asked


def _cluster_wide(mode: str, group: Group) -> set[str]:
    if group is TOKENS and "gateway-namespace" not in mode:
        return set()
    return {verb for grant in group.grants for verb in grant.verbs}


def test_an_account_of_another_release_may_nothing_here(apiserver: ApiServer) -> None:
    first, second = apiserver.namespace("first"), apiserver.namespace("second")
    for namespace in (first, second):
        made, _ = load_install(Release("edge-gateway", namespace))
        assert made is not None
        apiserver.admin.apply(
            *(one for one in render_install(made, crds=False) if "rbac" in one["apiVersion"])
        )
    secrets = {"group": "", "resource": "secrets", "verb": "patch"}
    wait_until(lambda: _may(apiserver, f"{first}/edge-gateway", first, secrets))
    assert not _may(apiserver, f"{first}/edge-gateway", second, secrets)
    assert not _may(apiserver, f"{first}/default", first, secrets)
    with pytest.raises(ApiError):
        apiserver.accounts.api_for(f"{second}/edge-gateway").get(f"/api/v1/namespaces/{first}/pods")
