"""monitoring.*: what Grafana and the Prometheus operator are given is what docs/monitoring has, and finds what there is to read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.manifests.generate import FOLDER
from controller.manifests.values_schema import render_schema

from .installs import DEFAULT, GATEWAY_NAMESPACE, OTHER, of, one, provider, refused, render

pytestmark = pytest.mark.pure

DOCS = Path(__file__).parents[3] / "docs" / "monitoring"
FLEETS = Path(__file__).parents[1] / "fleets" / "cases"
KINDS = ("PrometheusRule", "ServiceMonitor", "PodMonitor")
ALL = tuple(
    f"monitoring.{part}.enabled=true"
    for part in ("dashboards", "rules", "serviceMonitor", "podMonitor")
)


def test_nothing_of_it_is_there_unless_it_is_wanted() -> None:
    assert not of(render(), *KINDS)
    assert not [name for name in of(render(), "ConfigMap") if "dashboard" in name]


@pytest.mark.parametrize("release", [DEFAULT, OTHER])
def test_dashboards_are_those_of_the_docs(release: Any) -> None:
    manifests = render(None, ALL[0], release=release)
    found = {
        name: text
        for one in of(manifests, "ConfigMap").values()
        if one["metadata"]["labels"].get("grafana_dashboard") == "1"
        for name, text in one["data"].items()
    }
    assert found == {path.name: path.read_text() for path in DOCS.glob("*.json")}
    assert len(found) == 3
    for name, text in found.items():
        assert (FOLDER / "monitoring" / name).read_text() == text
        assert len(text) < 200_000  # of the mebibyte that a ConfigMap may have


def test_the_chart_has_no_other_files() -> None:
    names = {path.name for path in (FOLDER / "monitoring").iterdir()}
    assert names == {path.name for path in DOCS.iterdir()} - {"README.md"}


def test_alerts_are_those_of_the_docs() -> None:
    rule = one(render(None, ALL[1]), "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((DOCS / "rules.yaml").read_text())


@pytest.mark.parametrize("release", [DEFAULT, OTHER])
def test_the_service_of_the_metrics_is_read_and_no_other(release: Any) -> None:
    manifests = render(None, ALL[2], release=release)
    spec = one(manifests, "ServiceMonitor", release.base)["spec"]
    (endpoint,) = spec["endpoints"]
    assert endpoint == {"port": "metrics"} and "namespaceSelector" not in spec
    read = [
        service["metadata"]["name"]
        for service in of(manifests, "Service").values()
        if spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        for port in service["spec"]["ports"]
        if port["name"] == endpoint["port"]
    ]
    assert read == [release.metrics]


@pytest.mark.parametrize("own", [False, True])
def test_proxies_are_read_where_they_are(own: bool) -> None:
    values = provider(GATEWAY_NAMESPACE) if own else None
    monitor = one(render(values, ALL[3]), "PodMonitor", "edge-gateway-proxies")["spec"]
    assert monitor.get("namespaceSelector") == ({"any": True} if own else None)
    (endpoint,) = monitor["podMetricsEndpoints"]
    case = FLEETS / f"{'gateway-namespace' if own else 'per-gateway'}.out.yaml"
    fleets = [m for m in yaml.safe_load_all(case.read_text()) if m["kind"] == "Deployment"]
    assert fleets
    for fleet in fleets:
        pods = fleet["spec"]["template"]
        assert monitor["selector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
        ports = [port for one in pods["spec"]["containers"] for port in one.get("ports", ())]
        assert [p["containerPort"] for p in ports if p.get("name") == endpoint["port"]] == [19001]


def test_what_is_added_leaves_whose_it_is() -> None:
    """Labels of an owner tell what an installation may remove."""
    name = "app.kubernetes.io/name"
    values = {"monitoring": {"rules": {"enabled": True, "labels": {"release": "p", name: "x"}}}}
    meta = one(render(values), "PrometheusRule")["metadata"]
    assert (meta["labels"]["release"], meta["labels"][name]) == ("p", "edge-gateway")


def test_nobody_needs_more_permissions() -> None:
    """Whoever installs makes these objects; the controller never looks at them."""
    assert of(render(), "ClusterRole", "Role") == of(render(None, *ALL), "ClusterRole", "Role")


#: Duration of the operator's CRDs (pkg/apis/monitoring/v1/types.go).
DURATION = re.compile(
    "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
)


@pytest.mark.parametrize("text", ["often", "30s1h", "1h1h", "30", "1.5s", "00", "30s\n"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    assert not DURATION.fullmatch(text)
    values = {"monitoring": {"podMonitor": {"interval": text}}}
    (said,) = refused(values)
    assert "monitoring.podMonitor.interval" in said and "30s" in said
    assert not _fits_schema(values)


@pytest.mark.parametrize("text", ["0", "1d", "2w", "1m30s", "1y1w1d1h1m1s1ms", "500ms", "1h500ms"])
def test_durations_of_the_operator_are_taken(text: str) -> None:
    assert DURATION.fullmatch(text)
    values = {"monitoring": {"podMonitor": {"enabled": True, "interval": text}}}
    (made,) = of(render(values), "PodMonitor").values()
    (endpoint,) = made["spec"]["podMetricsEndpoints"]
    assert endpoint["interval"] == text
    assert _fits_schema(values)


@pytest.mark.parametrize("part", ["rules", "serviceMonitor", "podMonitor"])
def test_labels_have_names_of_labels(part: str) -> None:
    for key in ("bad key", "", "-a", "a/b/c", "a" * 317, "a\n"):
        values = {"monitoring": {part: {"labels": {key: "x"}}}}
        (said,) = refused(values)
        assert f"monitoring.{part}.labels[" in said
        assert not _fits_schema(values)
    good = {"monitoring": {part: {"enabled": True, "labels": {"a.example/Release_1": "x"}}}}
    (made,) = of(render(good), *KINDS).values()
    assert made["metadata"]["labels"]["a.example/Release_1"] == "x"
    assert _fits_schema(good)


def _fits_schema(values: dict[str, Any]) -> bool:
    """Ask values.schema.json, as helm does, about the texts within `monitoring`; `$` is the end there."""
    parts = render_schema()["properties"]["monitoring"]["properties"]
    for part, given in values["monitoring"].items():
        names = parts[part]["properties"]
        asked = [(names["interval"], given["interval"])] if "interval" in given else []
        asked += [(names["labels"]["propertyNames"], key) for key in given.get("labels", ())]
        for schema, text in asked:
            if not schema.get("minLength", 0) <= len(text) <= schema["maxLength"]:
                return False
            if not re.search(schema["pattern"].replace("$", r"\Z"), text):
                return False
    return True
