"""networkPolicy.enabled: proxies, replicas, probes and metrics reach the controller, each its own ports and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.manifests.workload import PORTS

from .installs import DEFAULT, GATEWAY_NAMESPACE, OTHER, of, one, provider, render

pytestmark = pytest.mark.pure

ENABLED = "networkPolicy.enabled=true"
FLEETS = Path(__file__).parents[1] / "fleets" / "cases"


def _peers(policy: dict[str, Any]) -> dict[int, list[dict[str, Any]] | None]:
    """Port -> who may come; None is anybody."""
    found: dict[int, list[dict[str, Any]] | None] = {}
    for rule in policy["spec"]["ingress"]:
        for port in rule["ports"]:
            assert port["protocol"] == "TCP" and port["port"] not in found
            found[port["port"]] = rule.get("from")
    return found


def test_there_is_none_unless_it_is_wanted() -> None:
    assert not of(render(), "NetworkPolicy")


@pytest.mark.parametrize("release", [DEFAULT, OTHER])
def test_every_port_of_the_pod_is_decided_about(release: Any) -> None:
    manifests = render(None, ENABLED, release=release)
    policy = one(manifests, "NetworkPolicy", release.base)
    assert set(_peers(policy)) == set(PORTS.values())
    pods = one(manifests, "Deployment", release.base)["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= pods.items()
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    (relay,) = _peers(policy)[PORTS["relay"]] or ()
    assert relay == {"podSelector": policy["spec"]["podSelector"]}, "replicas of this release"


@pytest.mark.parametrize("own", [False, True])
def test_proxies_come_from_where_fleets_are(own: bool) -> None:
    values = provider(GATEWAY_NAMESPACE) if own else None
    peers = _peers(one(render(values, ENABLED), "NetworkPolicy"))
    (proxies,) = peers[PORTS["xds"]] or ()
    assert peers[PORTS["xds-token"]] == [proxies]
    assert ("namespaceSelector" in proxies) == own
    case = FLEETS / f"{'gateway-namespace' if own else 'per-gateway'}.out.yaml"
    fleets = [m for m in yaml.safe_load_all(case.read_text()) if m["kind"] == "Deployment"]
    assert fleets
    for fleet in fleets:
        labels = fleet["spec"]["template"]["metadata"]["labels"]
        assert proxies["podSelector"]["matchLabels"].items() <= labels.items()


def test_who_reads_metrics_is_chosen() -> None:
    plain = _peers(one(render(None, ENABLED), "NetworkPolicy"))
    assert plain[PORTS["metrics"]] is None and plain[PORTS["health"]] is None
    monitoring = [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]
    chosen = render({"networkPolicy": {"enabled": True, "metricsFrom": monitoring}})
    assert _peers(one(chosen, "NetworkPolicy"))[PORTS["metrics"]] == monitoring
