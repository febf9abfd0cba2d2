"""Pods of an installation meet the restricted Pod Security Standard, and what is asked for is what is rendered."""

from __future__ import annotations

from typing import Any

import pytest

from controller.manifests.objects import VERSION
from controller.manifests.workload import PORTS

from .installs import DEFAULT, OTHER, of, one, render

pytestmark = pytest.mark.pure


def _pods(*settings: str) -> dict[str, dict[str, Any]]:
    workloads = of(render(None, *settings), "Deployment", "Job")
    return {name: one["spec"]["template"]["spec"] for name, one in workloads.items()}


def test_every_pod_is_restricted() -> None:
    """Kubernetes "Pod Security Standards", profile Restricted."""
    pods = _pods()
    assert len(pods) == 2
    for pod in pods.values():
        security = pod["securityContext"]
        assert security["runAsNonRoot"] is True and security["runAsUser"] == 65532
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        allowed = {"name", "configMap", "secret", "emptyDir", "projected"}
        assert all(set(volume) <= allowed for volume in pod.get("volumes", ()))
        for container in pod["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert own["readOnlyRootFilesystem"] is True
            assert all(mount["readOnly"] for mount in container.get("volumeMounts", ()))
            assert all("hostPort" not in port for port in container.get("ports", ()))
            assert container["resources"]["requests"] and container["resources"]["limits"]["memory"]


def test_the_certificate_is_mounted_at_certs_and_the_authority_s_key_nowhere() -> None:
    for release in (DEFAULT, OTHER):
        pod = one(render(release=release), "Deployment", release.base)["spec"]["template"]["spec"]
        secrets = {v["name"]: v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v}
        assert secrets == {"certs": release.base}
        (container,) = pod["containers"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts["certs"] == "/certs"
        assert release.authority not in str(pod)


def test_admin_is_no_port_of_the_pod() -> None:
    (container,) = _pods()["edge-gateway-system/edge-gateway"]["containers"]
    assert {port["containerPort"] for port in container["ports"]} == set(PORTS.values())
    assert 19000 not in PORTS.values()


def test_probes_ask_ports_that_are_there() -> None:
    (container,) = _pods()["edge-gateway-system/edge-gateway"]["containers"]
    names = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe, path in (
        ("startupProbe", "/healthz"),
        ("livenessProbe", "/healthz"),
        ("readinessProbe", "/readyz"),
    ):
        asked = container[probe]["httpGet"]
        assert (asked["path"], names[asked["port"]]) == (path, 8081)


def test_where_pods_may_run() -> None:
    values = {
        "deployment": {
            "priorityClassName": "system-cluster-critical",
            "imagePullSecrets": [{"name": "registry"}],
            "pod": {
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "edge", "operator": "Exists"}],
                "affinity": {"nodeAffinity": {}},
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                    {"maxSkew": 2, "topologyKey": "host", "labelSelector": {"matchLabels": {}}},
                ],
            },
        }
    }
    manifests = render(values)
    pod = one(manifests, "Deployment")["spec"]["template"]["spec"]
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert pod["affinity"] == {"nodeAffinity": {}}
    ours, theirs = pod["topologySpreadConstraints"]
    assert ours["labelSelector"]["matchLabels"]["control-plane"] == "edge-gateway"
    assert theirs["labelSelector"] == {"matchLabels": {}}
    job = one(manifests, "Job", "edge-gateway-certgen")["spec"]["template"]["spec"]
    for name in ("nodeSelector", "tolerations", "imagePullSecrets"):
        assert job[name] == pod[name]
    assert "topologySpreadConstraints" not in job and "affinity" not in job


@pytest.mark.parametrize(
    ("settings", "image"),
    [
        ((), f"edgefast:{VERSION}"),
        (("proxy.image.tag=v2",), "edgefast:v2"),
        (("proxy.image.repository=r.example:5000/a/b",), f"r.example:5000/a/b:{VERSION}"),
        ((f"proxy.image.tag=@sha256:{'0' * 64}",), f"edgefast:{VERSION}@sha256:{'0' * 64}"),
        ((f"proxy.image.digest=sha256:{'1' * 64}",), f"edgefast:{VERSION}@sha256:{'1' * 64}"),
        (
            (f"proxy.image.tag=v2@sha256:{'0' * 64}", f"proxy.image.digest=sha256:{'1' * 64}"),
            f"edgefast:v2@sha256:{'1' * 64}",
        ),
    ],
)
def test_images(settings: tuple[str, ...], image: str) -> None:
    (container,) = one(render(None, *settings), "Deployment")["spec"]["template"]["spec"][
        "containers"
    ]
    assert f"--proxy-image={image}" in container["args"]


def test_replicas_are_the_autoscaler_s_when_there_is_one() -> None:
    plain = render(None, "deployment.replicas=3")
    assert one(plain, "Deployment")["spec"]["replicas"] == 3
    assert not of(plain, "HorizontalPodAutoscaler")
    scaled = render(None, "deployment.replicas=3", "hpa.enabled=true")
    assert "replicas" not in one(scaled, "Deployment")["spec"]
    spec = one(scaled, "HorizontalPodAutoscaler")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 5)
