"""`helm template` and `edgefast install --dry-run` are one: the same objects for every set of values; what one refuses, so does the other."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.tools.missing import built
from cluster.tools.versions import HELM_HOME
from cluster.world.helm import homes
from controller.manifests.generate import FOLDER
from controller.manifests.load import load_install, merge
from controller.manifests.naming import Release
from controller.manifests.objects import Manifest
from controller.manifests.render import render_install

Values = dict[str, Any]
Objects = dict[tuple[str, str, str], Manifest]


def _provider(name: str = "orchestrator", **settings: Any) -> Values:
    return {"config": {"edgeGateway": {"provider": {name: settings}}}}


_NAME = "app.kubernetes.io/name"
_OWN = {"type": "GatewayNamespace"}
_LISTED = {"type": "Namespaces", "namespaces": ["team-b", "team-a", "team-b"]}
_LABELLED = {
    "type": "NamespaceSelector",
    "namespaceSelector": {"matchLabels": {"edge": "yes", "a.example/b": "1"}},
}
_SENTINEL = {"master": 'ä<"m">\\ \u2028&', "addresses": ["a.example:1"]}
_REDIS = {"type": "Redis", "redis": {"sentinel": _SENTINEL}}
_POD = {
    "annotations": {"a": "true", "checksum/config": "mine"},
    "labels": {"team": "a", "control-plane": "mine"},
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    ],
    "topologySpreadConstraints": [
        {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
        {
            "maxSkew": 1,
            "topologyKey": "host",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"a": "b"}},
        },
    ],
}

VALUES: dict[str, Values] = {
    "defaults": {},
    "gateway-namespace": _provider(deploy=_OWN),
    "kubernetes": _provider("kubernetes", deploy=_OWN),
    "listed": _provider(watch=_LISTED),
    "listed-gateway-namespace": _provider(watch=_LISTED, deploy=_OWN),
    "labelled": _provider(watch=_LABELLED),
    "labelled-gateway-namespace": _provider(watch=_LABELLED, deploy=_OWN),
    "controller-namespace": _provider(deploy={"type": "ControllerNamespace"}),
    "no-provider": {"config": {"edgeGateway": {"provider": None}}},
    "empty-configuration": {
        "config": {"edgeGateway": {"gateway": None, "provider": None, "logging": None}}
    },
    "configuration": {
        "config": {
            "edgeGateway": {
                "apiVersion": "config.gateway.edge.io/v1alpha1",
                "kind": "EdgeGateway",
                "gateway": {"controllerName": "gateway.edge.io/a&b"},
                "rateLimit": {"backend": _REDIS, "timeout": "5ms", "failClosed": True},
                "leaderElection": {"leaseDuration": "20s"},
                "admin": {"address": {"port": 19100}},
            }
        }
    },
    "pod": {
        "deployment": {
            "replicas": 3,
            "annotations": {"a": "1"},
            "priorityClassName": "system-cluster-critical",
            "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
            "pod": _POD,
            "edgeGateway": {
                "image": {"repository": "r.example:5000/a/b", "tag": f"1.2@sha256:{'a' * 64}"},
                "imagePullPolicy": "Always",
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
                ],
                "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": None},
            },
        }
    },
    "no-spreading": {
        "deployment": {
            "pod": {"topologySpreadConstraints": []},
            "edgeGateway": {"resources": {"limits": {"cpu": "2"}}},
        }
    },
    "proxy": {
        "proxy": {
            "image": {"repository": "r.example/p", "tag": f"@sha256:{'b' * 64}"},
            "imagePullPolicy": "Never",
            "imagePullSecrets": [{"name": "three"}],
        },
        "kubernetesClusterDomain": "k8s.example",
    },
    "digests": {
        "deployment": {
            "edgeGateway": {"image": {"tag": "2", "digest": f"sha256:{'c' * 64}"}},
        },
        "proxy": {
            "image": {"tag": f"2@sha256:{'d' * 64}", "digest": f"sha256:{'e' * 64}"},
        },
    },
    "services": {
        "service": {"annotations": {"a": "b"}},
        "metricsService": {"annotations": {"prometheus.io/scrape": "true"}},
        "serviceAccount": {"annotations": {"role": "arn:x"}},
    },
    "budget-least": {"podDisruptionBudget": {"minAvailable": 1}},
    "budget-most": {"podDisruptionBudget": {"maxUnavailable": "50%"}},
    "budget-zero": {"podDisruptionBudget": {"maxUnavailable": 0}},
    "autoscaler": {"hpa": {"enabled": True, "minReplicas": 1, "maxReplicas": 3}},
    "autoscaler-metrics": {
        "hpa": {
            "enabled": True,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "memory",
                        "target": {"type": "AverageValue", "averageValue": "1Gi"},
                    },
                }
            ],
        }
    },
    "network-policy": {"networkPolicy": {"enabled": True}},
    "network-policy-gateway-namespace": merge(
        _provider(deploy=_OWN),
        {
            "networkPolicy": {
                "enabled": True,
                "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
            }
        },
    ),
    "monitoring": {
        "monitoring": {
            "dashboards": {"enabled": True},
            "rules": {"enabled": True},
            "serviceMonitor": {"enabled": True},
            "podMonitor": {"enabled": True},
        }
    },
    "monitoring-gateway-namespace": merge(
        _provider(deploy=_OWN),
        {
            "monitoring": {
                "dashboards": {
                    "enabled": True,
                    "label": "grafana.example/dashboard",
                    "labelValue": "yes",
                    "annotations": {"grafana_folder": "Edge & more"},
                },
                "rules": {"enabled": True, "labels": {"release": "p", _NAME: "mine"}},
                "serviceMonitor": {"enabled": True, "interval": "15s", "labels": {"a": "1"}},
                "podMonitor": {"enabled": True, "interval": "1d1h", "labels": {"a": "true"}},
            }
        },
    ),
    "certgen": {
        "certgen": {
            "overwrite": True,
            "annotations": {"sidecar.istio.io/inject": "false", "helm.sh/hook-weight": "9"},
            "resources": {"requests": {"cpu": "1m"}},
            "ttlSecondsAfterFinished": 0,
        }
    },
    "global": {"global": {"of": "a parent chart"}},
}
RELEASES = {
    "default": Release(),
    "own-namespace": Release("edge-gateway", "team-a"),
    "tenant": Release("marketing", "team-a"),
}

REFUSED: dict[str, tuple[Values, str]] = {
    "unknown": ({"replicas": 2}, "replicas"),
    "unknown-inside": ({"deployment": {"pod": {"label": {}}}}, "label"),
    "no-default-left": ({"deployment": {"replicas": None}}, "replicas"),
    "type": ({"hpa": {"enabled": "yes"}}, "enabled"),
    "range": ({"deployment": {"replicas": 101}}, "replicas"),
    "pattern": ({"proxy": {"image": {"repository": "A B"}}}, "repository"),
    "duration": ({"monitoring": {"podMonitor": {"interval": "30s1h"}}}, "interval"),
    "label-name": ({"monitoring": {"rules": {"labels": {"bad key": "x"}}}}, "bad key"),
    "configuration": ({"config": {"edgeGateway": {"gatway": {}}}}, "gatway"),
    "mode": (_provider(deploy={"type": "Somewhere"}), "type"),
    "two-names": (
        merge(_provider(deploy=_OWN), _provider("kubernetes", deploy=_OWN)),
        "kubernetes and orchestrator",
    ),
    "watch-nothing": (_provider(watch={"type": "Namespaces"}), "namespaces"),
    "watch-empty": (_provider(watch={"type": "Namespaces", "namespaces": []}), "namespaces"),
    "watch-both": (_provider(watch={**_LISTED, **_LABELLED}), "namespaces"),
    "watch-both-listed": (_provider(watch={**_LABELLED, **_LISTED}), "namespaceSelector"),
    "watch-no-selector": (_provider(watch={"type": "NamespaceSelector"}), "namespaceSelector"),
    "watch-no-type": (_provider(watch={"namespaces": ["a"]}), "type"),
    "budget": ({"podDisruptionBudget": {"minAvailable": 1, "maxUnavailable": 1}}, "minAvailable"),
    "autoscaler": ({"hpa": {"minReplicas": 6}}, "maxReplicas"),
    "pull-policy": ({"proxy": {"imagePullPolicy": "Sometimes"}}, "imagePullPolicy"),
    "peers": ({"networkPolicy": {"metricsFrom": {}}}, "metricsFrom"),
    "interval": ({"monitoring": {"podMonitor": {"interval": "often"}}}, "interval"),
    "label": ({"monitoring": {"dashboards": {"label": ""}}}, "label"),
    "label-value": ({"monitoring": {"rules": {"labels": {"a": "b c"}}}}, "labels"),
    "secret": ({"deployment": {"imagePullSecrets": ["registry"]}}, "imagePullSecrets"),
}


def _helm(
    release: Release, values: Values, folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    command = [built(HELM_HOME / "helm"), "template", release.name, str(FOLDER)]
    command += ["--namespace", release.namespace, "--include-crds"]
    command += ["--values", str(folder / "values.yaml"), *arguments]
    return subprocess.run(
        command,
        env=homes(folder),
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


def _objects(manifests: list[Manifest]) -> Objects:
    found: Objects = {}
    for one in manifests:
        meta = one["metadata"]
        key = (one["kind"], meta.get("namespace", ""), meta["name"])
        assert key not in found, key
        if one["kind"] == "ConfigMap":
            one = {
                **one,
                "data": {name: yaml.safe_load(text) for name, text in one["data"].items()},
            }
        if one["kind"].endswith("Role"):
            one = {**one, "rules": sorted(one["rules"], key=str)}
        found[key] = one
    return found


@pytest.mark.parametrize(
    ("release", "name"),
    [("default", name) for name in VALUES]
    + [
        (release, name)
        for release in ("own-namespace", "tenant")
        for name in (
            "defaults",
            "gateway-namespace",
            "listed-gateway-namespace",
            "autoscaler",
            "monitoring",
        )
    ],
)
def test_helm_and_python_render_the_same(release: str, name: str, tmp_path: Path) -> None:
    where, values = RELEASES[release], VALUES[name]
    done = _helm(where, values, tmp_path)
    assert done.returncode == 0, done.stderr
    by_helm = _objects([one for one in yaml.safe_load_all(done.stdout) if one])
    made, problems = load_install(where, [("values.yaml", (tmp_path / "values.yaml").read_bytes())])
    assert made is not None, problems
    by_python = _objects(list(render_install(made)))
    assert set(by_helm) == set(by_python)
    for key, one in by_helm.items():
        assert one == by_python[key], key


@pytest.mark.parametrize("name", REFUSED)
def test_what_helm_refuses_python_refuses(name: str, tmp_path: Path) -> None:
    values, words = REFUSED[name]
    done = _helm(Release(), values, tmp_path)
    assert done.returncode != 0
    assert words in done.stderr
    made, problems = load_install(
        Release(), [("values.yaml", (tmp_path / "values.yaml").read_bytes())]
    )
    assert made is None
    said = " ".join(f"{one.path} {one.message}" for one in problems)
    assert words.split()[0] in said, said


@pytest.mark.parametrize(
    "setting",
    [
        "deployment.replicas=4",
        "deployment.pod.annotations.a\\.example/b=c\\,d",
        "config.edgeGateway.provider.orchestrator.watch.type=Namespaces,"
        "config.edgeGateway.provider.orchestrator.watch.namespaces={a,b}",
        "deployment.imagePullSecrets[0].name=registry",
        "deployment.edgeGateway.resources.limits=null",
        "config.edgeGateway.gateway.controllerName=gateway.edge.io/marketing",
        "deployment.pod.tolerations[1].key=a,deployment.pod.tolerations[0].key=b",
        "deployment.edgeGateway.resources.requests.cpu=0",
    ],
)
def test_settings_are_read_alike(setting: str, tmp_path: Path) -> None:
    done = _helm(Release(), {}, tmp_path, "--set", setting)
    assert done.returncode == 0, done.stderr
    made, problems = load_install(Release(), settings=[setting])
    assert made is not None, problems
    by_helm = _objects([one for one in yaml.safe_load_all(done.stdout) if one])
    assert by_helm == _objects(list(render_install(made)))


def test_a_long_name_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [built(HELM_HOME / "helm"), "template", "r" * 33, str(FOLDER)],
        env={"HELM_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0 and "longer than 32" in done.stderr
    with pytest.raises(ValueError, match="longer than 32"):
        Release("r" * 33)


def test_the_chart_has_no_lint(tmp_path: Path) -> None:
    done = subprocess.run(
        [built(HELM_HOME / "helm"), "lint", "--strict", "--quiet", str(FOLDER)],
        env={"HELM_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
