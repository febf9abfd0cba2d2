"""`--adopt` on files of another controller that have listeners and routes of layer 4."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import call

pytestmark = pytest.mark.pure

FILES = """apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec:
  controllerName: gateway.envoyproxy.io/gatewayclass-controller
  parametersRef: {group: gateway.envoyproxy.io, kind: EnvoyProxy, name: proxy, namespace: shop}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: edge
  listeners:
  - {name: tcp, port: 5353, protocol: TCP}
  - {name: udp, port: 5353, protocol: UDP}
  - {name: tls, port: 6443, protocol: TLS, tls: {mode: Passthrough}}
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: TCPRoute
metadata: {name: tcp, namespace: shop}
spec:
  parentRefs: [{name: edge, sectionName: tcp}]
  rules: [{backendRefs: [{name: names, port: 53}]}]
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: UDPRoute
metadata: {name: udp, namespace: shop}
spec:
  parentRefs: [{name: edge, sectionName: udp}]
  rules: [{backendRefs: [{name: names, port: 5300}]}]
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: TLSRoute
metadata: {name: tls, namespace: shop}
spec:
  parentRefs: [{name: edge, sectionName: tls}]
  hostnames: [names.shop.test]
  rules: [{backendRefs: [{name: names, port: 53}]}]
---
apiVersion: v1
kind: Service
metadata: {name: names, namespace: shop}
spec: {ports: [{name: tcp, port: 53}, {name: udp, port: 5300, protocol: UDP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: names-1, namespace: shop, labels: {kubernetes.io/service-name: names}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1]}]
ports: [{name: tcp, port: 53}, {name: udp, port: 53, protocol: UDP}]
"""
URLS = (
    ("tcp://localhost:5353", "tcproute/shop/tcp"),
    ("udp://localhost:5353", "udproute/shop/udp"),
    ("tls://names.shop.test:6443", "tlsroute/shop/tls"),
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    found = tmp_path / "shop.yaml"
    found.write_text(FILES)
    return str(found)


def test_they_are_checked_as_ours(path: str) -> None:
    assert call("check", "-f", path).status == 1
    outcome = call("check", "-f", path, "--adopt")
    assert (outcome.status, outcome.out.count("accepted")) == (0, 1), outcome.out
    assert "UnsupportedProtocol" not in outcome.out


@pytest.mark.parametrize(("url", "route"), URLS)
def test_they_are_explained_as_ours(path: str, url: str, route: str) -> None:
    assert call("explain", "-f", path, url).status == 1
    outcome = call("explain", "-f", path, url, "--adopt")
    assert (outcome.status, outcome.err.count("accepted")) == (0, 1)
    assert route in outcome.out and "goes to service/shop/names/" in outcome.out


def test_they_are_compared_as_ours(path: str, tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(FILES.replace("hostnames: [names.shop.test]", "hostnames: [other.shop.test]"))
    assert call("diff", path, path, "--adopt").status == 0
    outcome = call("diff", path, str(new), "--adopt")
    assert outcome.status == 3
    assert "names.shop.test" in outcome.out and "other.shop.test" in outcome.out
