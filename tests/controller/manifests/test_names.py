"""The default release has the names of spec section 2; every other one has names of its own."""

from __future__ import annotations

import pytest
import yaml

from controller.manifests.certgen import HOOK
from controller.manifests.naming import RELEASE_LIMIT, Release
from controller.manifests.objects import Manifest
from edgefast.api.decode.decode import decode_config

from .installs import DEFAULT, GATEWAY_NAMESPACE, LABELLED, LISTED, OTHER, of, one, provider, render

pytestmark = pytest.mark.pure

SYSTEM = "edge-gateway-system"


def _places(manifests: tuple[Manifest, ...]) -> set[tuple[str, str, str]]:
    return {
        (m["kind"], m["metadata"].get("namespace", ""), m["metadata"]["name"]) for m in manifests
    }


def test_names_of_the_default_release() -> None:
    found = _places(render())
    for wanted in (
        ("Deployment", SYSTEM, "edge-gateway"),
        ("ServiceAccount", SYSTEM, "edge-gateway"),
        ("Service", SYSTEM, "edge-gateway"),
        ("Service", SYSTEM, "edge-gateway-metrics-service"),
        ("ConfigMap", SYSTEM, "edge-gateway-config"),
    ):
        assert wanted in found
    found = _places(render(provider(GATEWAY_NAMESPACE)))
    assert ("ClusterRole", "", "gateway-chart-cluster-infra-manager") in found
    assert ("ClusterRoleBinding", "", "gateway-chart-cluster-infra-manager") in found


def test_services_are_those_of_the_spec() -> None:
    services = of(render(), "Service")
    ports = {
        name: [(port["port"], port["protocol"]) for port in service["spec"]["ports"]]
        for name, service in services.items()
    }
    assert ports == {
        f"{SYSTEM}/edge-gateway": [(18000, "TCP"), (18001, "TCP")],
        f"{SYSTEM}/edge-gateway-metrics-service": [(19001, "TCP")],
    }
    assert {service["spec"]["type"] for service in services.values()} == {"ClusterIP"}


@pytest.mark.parametrize("mode", [provider(), provider(GATEWAY_NAMESPACE), provider(LISTED)])
def test_releases_share_no_name(mode: dict[str, object]) -> None:
    """Not of one namespace, not cluster-wide, whatever the namespaces are called."""
    releases = [
        DEFAULT,
        OTHER,
        Release("edge-gateway", "team-a"),
        Release("sales", "team-a"),
        Release("marketing", SYSTEM),
        Release("marketing", "marketing"),
    ]
    seen: dict[tuple[str, str, str], Release] = {}
    for release in releases:
        for place in _places(render(mode, release=release)):
            assert place not in seen, (place, seen.get(place), release)
            seen[place] = release


def test_everything_of_another_release_is_prefixed() -> None:
    for manifest in render(provider(LISTED, GATEWAY_NAMESPACE), release=OTHER):
        meta = manifest["metadata"]
        inside = meta.get("namespace") == OTHER.namespace and "gateway-chart" not in meta["name"]
        assert meta["name"].startswith("marketing-" if inside else "team-a-marketing-")


@pytest.mark.parametrize("release", [DEFAULT, OTHER, Release("r" * RELEASE_LIMIT, "n" * 63)])
@pytest.mark.parametrize("mode", [provider(LABELLED), provider(LISTED, GATEWAY_NAMESPACE)])
def test_names_and_labels_are_valid(release: Release, mode: dict[str, object]) -> None:
    for manifest in render(mode, release=release):
        meta = manifest["metadata"]
        rbac = manifest["apiVersion"].startswith("rbac.")
        assert len(meta["name"]) <= (253 if rbac else 63), meta["name"]
        assert all(len(value) <= 63 for value in meta["labels"].values())


def test_a_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 32"):
        Release("r" * (RELEASE_LIMIT + 1))


@pytest.mark.parametrize("release", [DEFAULT, OTHER])
def test_references_lead_to_objects(release: Release) -> None:
    """Names that objects mention are names of objects that are rendered."""
    manifests = render(provider(LISTED, GATEWAY_NAMESPACE), "hpa.enabled=true", release=release)
    found = _places(manifests)
    for manifest in manifests:
        namespace = manifest["metadata"].get("namespace", "")
        if manifest["kind"].endswith("Binding"):
            role = manifest["roleRef"]
            assert (role["kind"], namespace, role["name"]) in found
            (subject,) = manifest["subjects"]
            assert (subject["kind"], subject["namespace"], subject["name"]) in found
        if manifest["kind"] in ("Deployment", "Job"):
            pod = manifest["spec"]["template"]["spec"]
            assert ("ServiceAccount", namespace, pod["serviceAccountName"]) in found
            for volume in pod.get("volumes", ()):
                if "configMap" in volume:
                    assert ("ConfigMap", namespace, volume["configMap"]["name"]) in found
        if manifest["kind"] == "HorizontalPodAutoscaler":
            target = manifest["spec"]["scaleTargetRef"]
            assert (target["kind"], namespace, target["name"]) in found


def test_selectors_choose_the_controller_s_pods_alone() -> None:
    manifests = render({"podDisruptionBudget": {"minAvailable": 1}})
    deployment = one(manifests, "Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    job = one(manifests, "Job", "edge-gateway-certgen")["spec"]["template"]["metadata"]["labels"]
    selectors = [
        deployment["selector"]["matchLabels"],
        one(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        *(service["spec"]["selector"] for service in of(manifests, "Service").values()),
    ]
    for selector in selectors:
        assert selector.items() <= labels.items()
        assert not selector.items() <= job.items()


def test_a_wished_label_does_not_take_the_selector_away() -> None:
    wish = {"deployment": {"pod": {"labels": {"control-plane": "mine", "team": "a"}}}}
    template = one(render(wish), "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert (template["control-plane"], template["team"]) == ("edge-gateway", "a")


def test_the_configuration_is_what_was_given_and_is_read_by_the_controller() -> None:
    values = provider(LISTED, GATEWAY_NAMESPACE)
    values["config"]["edgeGateway"]["gateway"] = {"controllerName": "gateway.edge.io/a"}
    text = one(render(values), "ConfigMap", "edge-gateway-config")["data"]["edge-gateway.yaml"]
    config, problems = decode_config(text.encode(), "edge-gateway.yaml")
    assert config is not None and not problems
    assert config.gateway.controller_name == "gateway.edge.io/a"
    assert config.provider.cluster.deploy.type == "GatewayNamespace"
    assert yaml.safe_load(text)["provider"]["orchestrator"] == {**LISTED, **GATEWAY_NAMESPACE}


def test_a_changed_configuration_rolls_the_controller() -> None:
    def checksum(*settings: str) -> str:
        pod = one(render(None, *settings), "Deployment")["spec"]["template"]
        return str(pod["metadata"]["annotations"]["checksum/config"])

    level = "config.edgeGateway.logging.level"
    assert checksum() == checksum(f"{level}=info") != checksum(f"{level}=debug")


def test_hooks_come_before_everything_else() -> None:
    manifests = render()
    hooks = [HOOK in m["metadata"].get("annotations", {}) for m in manifests]
    assert hooks == sorted(hooks, reverse=True) and sum(hooks) == 4
    weights = [
        int(m["metadata"]["annotations"]["helm.sh/hook-weight"])
        for m, is_hook in zip(manifests, hooks, strict=True)
        if is_hook
    ]
    assert weights == sorted(weights)
