"""A BackendTLSPolicy of a file with a mistake: its Service is not reached in plain text because of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import call
from edgefast.providers.files import FileSource
from edgefast.translate import Settings, translate
from tests.support.documents import backend

pytestmark = pytest.mark.pure

BESIDE = """apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: gateway.edge.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec: {gatewayClassName: edge, listeners: [{name: http, port: 8080, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: edge}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
""" + backend(
    "web", port="name: http, port: 80", target="name: http, port: 3001", address="127.0.0.1"
)
POLICY = """apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: web}
spec:
  targetRefs: [{group: "", kind: Service, name: web}]
  validation: {hostname: web.example, wellKnownCACertificates: System}
"""
BROKEN = POLICY.replace("hostname:", "hostnam:")


def _explain(folder: Path, policy: str) -> str:
    path = folder / "shop.yaml"
    path.write_text(f"{BESIDE}---\n{policy}")
    return call("explain", "-f", str(path), "GET", "http://a.example:8080/").out


@pytest.mark.parametrize(
    "policy",
    [
        BROKEN,
        BROKEN.replace("name: web}]", "name: web, sectionName: http}]"),
        POLICY.replace("k8s.io/v1\n", "k8s.io/v1alpha2\n"),
    ],
)
def test_nothing_is_sent_in_plain_text(tmp_path: Path, policy: str) -> None:
    assert "goes to service/default/web/80" in _explain(tmp_path, POLICY)
    said = _explain(tmp_path, policy)
    assert "goes to" not in said
    assert "500" in said.splitlines()[2] and "BackendTLSPolicy default/web has an error" in said
    # The mistake itself is told once, and what follows from it is no further problem.
    outcome = call("check", "-f", str(tmp_path / "shop.yaml"))
    assert outcome.status == 1
    assert all("BackendTLSPolicy default/web" in line for line in outcome.out.splitlines())
    assert "WITHOUT" not in outcome.out


@pytest.mark.parametrize(
    "policy",
    [
        BROKEN.replace("kind: Service, name: web", "kind: Service, name: other"),
        BROKEN.replace("name: web}]", "name: web, sectionName: admin}]"),
        f"{POLICY}---\n{BROKEN.replace('{name: web}', '{name: second}')}",
    ],
)
def test_others_are_served(tmp_path: Path, policy: str) -> None:
    assert "goes to service/default/web/80" in _explain(tmp_path, policy)


def test_the_last_good_version_stays_and_a_mend_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    source = FileSource([path])
    previous = None
    for policy, sound in ((BROKEN, False), (POLICY, True), (BROKEN, True)):
        path.write_text(f"{BESIDE}---\n{policy}")
        snapshot = source.read().snapshot
        previous = translate(snapshot, Settings(), previous)
        fresh = translate(snapshot, Settings())
        assert previous.ir == fresh.ir
        (fleet,) = fresh.ir.fleets
        (rule,) = fleet.virtual_hosts[0].rules
        served = any(one.cluster for one in rule.backends)
        assert served == sound
        assert [one.tls is not None for one in fleet.clusters] == [True] * sound
