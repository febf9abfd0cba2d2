"""Which fields of an EdgeProxy run code, and from which namespaces they are taken."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.edge.edgeproxy_fleet import FleetDeployment
from edgefast.translate.gateway.restrictions import (
    CODE_FIELDS,
    PLAIN_FIELDS,
    check_restrictions,
    find_withheld,
    grant_spec,
)
from edgefast.translate.settings import Settings
from tests.support.manifest import manifest

pytestmark = pytest.mark.pure

#: Parts of names of fields that run code or lend an identity, in a pod of Kubernetes.
_SUSPECT = ("image", "command", "args", "env", "volume", "container", "account", "security", "host")
_ALL: dict[str, Any] = {
    "image": "registry.example/mine:1",
    "env": [
        {"name": "LD_PRELOAD", "value": "/tmp/x.so"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "ca", "key": "tls.key"}}},
    ],
    "annotations": {"vault.hashicorp.com/agent-inject": "true", "prometheus.io/scrape": "true"},
    "labels": {"sidecar.istio.io/inject": "true", "team": "a"},
    "replicas": 3,
    "priorityClassName": "high",
}


def proxy(namespace: str) -> EdgeProxy:
    raw = manifest(f"EdgeProxy {namespace}/p", {"deployment": _ALL})
    return msgspec.convert(raw, EdgeProxy)


def test_every_field_is_known_to_run_code_or_not_to() -> None:
    fields = set(FleetDeployment.__struct_fields__)
    assert fields == {*CODE_FIELDS, *PLAIN_FIELDS}
    suspect = {one for one in fields if any(part in one for part in _SUSPECT)}
    assert suspect == set(CODE_FIELDS)


@pytest.mark.parametrize(
    ("settings", "namespace", "code", "secrets"),
    [
        ({}, "tenant", False, False),
        ({"code_namespaces": ("other",)}, "tenant", False, False),
        ({"code_namespaces": ("tenant",)}, "tenant", True, False),
        ({}, "edge-gateway-system", True, True),
        ({"gateway_namespace_mode": True}, "tenant", True, True),
    ],
)
def test_only_namespaces_that_an_administrator_names_run_code(
    settings: dict[str, Any], namespace: str, code: bool, secrets: bool
) -> None:
    given = Settings(standalone=False, **settings)
    one = proxy(namespace)
    granted = grant_spec(one, given).deployment
    assert granted is not None and granted.replicas == 3 and granted.priority_class_name == "high"
    assert (granted.image is not None) is code
    variables = ["LD_PRELOAD"] * code + ["KEY"] * secrets
    assert [variable.name for variable in granted.env or ()] == variables
    assert (len(granted.annotations or ()), len(granted.labels or ())) == (1 + code, 2 * code)
    refused = [problem.path for problem in check_restrictions(one, given, of_gateway=True)]
    if code:
        assert refused == ([] if secrets else ["spec.deployment.env[1].valueFrom"])
    else:
        assert refused == [
            "spec.deployment.image",
            "spec.deployment.env",
            'spec.deployment.labels["sidecar.istio.io/inject"]',
            'spec.deployment.labels["team"]',
            'spec.deployment.annotations["vault.hashicorp.com/agent-inject"]',
        ]
    assert not check_restrictions(one, given, of_gateway=False)


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        ("team", True),
        ("cost_center", True),
        ("app.kubernetes.io/part-of", True),
        ("prometheus.io/scrape", True),
        ("team.example.com/owner", True),  # an administrator lists the domain
        ("sub.team.example.com/owner", False),
        ("unknown.example/inject", False),
        ("istio.io", False),
        ("istio.io/rev", False),
        ("App.Kubernetes.io/name", False),
        ("/inject", False),
        ("k8s.v1.cni.cncf.io/networks", False),
        ("container.apparmor.security.beta.kubernetes.io/edge", False),
        ("operator.1password.io/inject", False),
        ("vault.security.bank-vaults.io/vault-addr", False),
        ("oneagent.dynatrace.com/inject", False),
        ("sidecar.jaegertracing.io/inject", False),
        ("conjur.org/inject", False),
        ("io.katacontainers.config.hypervisor.path", False),
        ("io.kubernetes.cri-o.Devices", False),
        ("aadpodidbinding", False),
    ],
)
def test_only_allowed_domains_reach_pods(name: str, stays: bool) -> None:
    """Labels of listed domains only: a Service of others may select pods by any other label."""
    given = Settings(standalone=False, pod_metadata_domains=("team.example.com",))
    assert find_withheld((), {name: "1"}, "tenant", given) == (() if stays else (name,))
    label = () if name == "team.example.com/owner" else (name,)
    assert find_withheld({name: "1"}, (), "tenant", given) == label
    for changes in ({"code_namespaces": ("tenant",)}, {"gateway_namespace_mode": True}):
        named = msgspec.structs.replace(given, **changes)
        assert not find_withheld({name: "1"}, {name: "1"}, "tenant", named)
