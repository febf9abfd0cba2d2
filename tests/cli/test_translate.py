"""`edgefast translate`: the three targets in the three formats, and no key material in any of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.calling import call

pytestmark = pytest.mark.pure

EXAMPLES = Path(__file__).parents[2] / "examples"
CANARY = str(EXAMPLES / "canary.yaml")


def _load(output: str, form: str) -> Any:
    return json.loads(output) if form == "json" else yaml.safe_load(output)


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("target", ["ir", "status", "infra"])
def test_formats_say_the_same(target: str, form: str) -> None:
    outcome = call("translate", "--to", target, "-f", CANARY, "-o", form)
    assert (outcome.status, outcome.err) == (0, "")
    other = call("translate", "--to", target, "-f", CANARY, "-o", "json")
    assert _load(outcome.out, form) == json.loads(other.out)


def test_ir_has_what_is_served() -> None:
    (fleet,) = json.loads(call("translate", "-f", CANARY, "-o", "json").out)["fleets"]
    assert fleet["name"] == "standalone"
    assert [listener["port"] for listener in fleet["listeners"]] == [8080]
    weights = {
        tuple(backend.get("weight", 1) for backend in rule["backends"])
        for host in fleet["virtual_hosts"]
        for rule in host["rules"]
    }
    assert (90, 10) in weights


def test_status_is_a_list_of_objects() -> None:
    value = json.loads(call("translate", "--to", "status", "-f", CANARY, "-o", "json").out)
    kinds = [item["kind"] for item in value["items"]]
    assert kinds == ["GatewayClass", "Gateway", "HTTPRoute"]
    (parent,) = value["items"][2]["status"]["parents"]
    assert {one["type"]: one["status"] for one in parent["conditions"]}["Accepted"] == "True"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (
            "ir",
            [
                "default/edge/http",
                "service/default/web",
                "90",
                "x-canary:always",
                "default/canary[0]",
            ],
        ),
        ("status", ["GatewayClass edge", "HTTPRoute default/canary", "Accepted", "True"]),
        ("infra", ["8080"]),
    ],
)
def test_tables(target: str, words: list[str]) -> None:
    outcome = call("translate", "--to", target, "-f", CANARY, "-o", "table")
    assert outcome.status == 0
    header, *rows = outcome.out.splitlines()
    assert header == header.upper()
    assert rows
    for word in words:
        assert word in outcome.out


@pytest.mark.parametrize("form", ["json", "yaml", "table"])
def test_keys_are_never_shown(form: str, tmp_path: Path) -> None:
    script = [
        sys.executable,
        str(EXAMPLES / "make_cert.py"),
        "shop-cert=shop.example.com",
        "api-cert=api.example.com",
    ]
    secrets = tmp_path / "secrets.yaml"
    secrets.write_bytes(subprocess.run(script, check=True, capture_output=True).stdout)
    key = next(document["data"]["tls.key"] for document in yaml.safe_load_all(secrets.read_text()))
    outcome = call("translate", "-f", str(EXAMPLES / "tls.yaml"), "-f", str(secrets), "-o", form)
    assert outcome.status == 0
    assert key[100:140] not in outcome.out
    assert "PRIVATE" not in outcome.out
    if form != "table":
        assert outcome.out.count("<redacted>") >= 4


def test_problems_go_to_standard_error() -> None:
    text = Path(CANARY).read_text().replace("weight: 90", "weight: many")
    outcome = call("translate", "-f", "-", "-o", "json", stdin=text)
    assert outcome.status == 0
    json.loads(outcome.out)
    assert "spec.rules[0].backendRefs[0].weight" in outcome.err


def test_one_fleet_for_each_gateway_in_a_cluster() -> None:
    value = json.loads(
        call("translate", "--cluster", "--to", "infra", "-f", CANARY, "-o", "json").out
    )
    (fleet,) = value["fleets"]
    assert fleet["name"].startswith("edge-default-edge-")


BACKEND = """apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: gateway.edge.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec: {gatewayClassName: edge, listeners: [{name: http, protocol: HTTP, port: 8080}]}
---
apiVersion: gateway.edge.io/v1alpha1
kind: Backend
metadata: {name: outside}
spec: {endpoints: [{ip: {address: 192.0.2.1, port: 80}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: edge}]
  rules: [{backendRefs: [{group: gateway.edge.io, kind: Backend, name: outside}]}]
"""
CONFIG = "apiVersion: config.gateway.edge.io/v1alpha1\nkind: EdgeGateway\n"


@pytest.mark.parametrize("enabled", [False, True])
def test_backends_in_a_cluster_must_be_enabled(tmp_path: Path, enabled: bool) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"{CONFIG}extensionApis: {{enableBackend: {str(enabled).lower()}}}\n")
    arguments = ("translate", "--cluster", "-f", "-", "-o", "json", "--config", str(config))
    outcome = call(*arguments, "--to", "status", stdin=BACKEND)
    route = json.loads(outcome.out)["items"][-1]["status"]["parents"][0]["conditions"]
    resolved = next(one for one in route if one["type"] == "ResolvedRefs")
    assert resolved["status"] == str(enabled)
    assert ("Backend is not enabled" in outcome.err) == (not enabled)
    (fleet,) = json.loads(call(*arguments, stdin=BACKEND).out)["fleets"]
    assert ("clusters" in fleet) == enabled


def test_fleets_in_the_namespaces_of_gateways(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"{CONFIG}provider: {{kubernetes: {{deploy: {{type: GatewayNamespace}}}}}}\n")
    arguments = ("translate", "--cluster", "--to", "infra", "-o", "json", "-f", CANARY)
    (plain,) = json.loads(call(*arguments).out)["fleets"]
    (own,) = json.loads(call(*arguments, "--config", str(config)).out)["fleets"]
    assert (plain["namespace"], own["namespace"]) == ("edge-gateway-system", "default")
    assert dict(own["labels"])["gateway.networking.k8s.io/gateway-name"] == "edge"


def test_the_problems_shown_are_those_of_the_target(tmp_path: Path) -> None:
    """In a cluster an object of another controller is none of our business."""
    text = BACKEND.replace("gateway.edge.io/gatewayclass-controller", "example.com/other")
    assert "served by another controller" in call("translate", "-f", "-", stdin=text).err
    assert call("translate", "--cluster", "-f", "-", stdin=text).err == ""
