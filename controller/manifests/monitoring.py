"""Monitoring objects for Grafana and the Prometheus operator: dashboards, alerts, scrape targets, from edgefast/monitoring.

In: `Install`.
Out: ConfigMaps, a PrometheusRule, a ServiceMonitor, a PodMonitor, each with its `enabled`. The
chart has the same texts in its folder `monitoring`, written by `generate.py`.
Must never: define a metric, a label or a threshold.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.manifests.monitoring_values import MonitorValues
from controller.manifests.networkpolicy import PROXIES
from controller.manifests.objects import RELEASE_NAMESPACE, Install, Manifest, labels, metadata
from controller.manifests.roles import own_namespaces
from edgefast.monitoring.dashboards import render_boards
from edgefast.monitoring.rules_file import list_groups

#: Of the kinds of the Prometheus operator.
OPERATOR = "monitoring.coreos.com/v1"
_OURS = ("app.kubernetes.io/instance", "app.kubernetes.io/name", RELEASE_NAMESPACE)


def render_monitoring(install: Install) -> list[Manifest]:
    """Return what monitoring.* of the values asks for."""
    values = install.values.monitoring
    found = list(_dashboards(install)) if values.dashboards.enabled else []
    if values.rules.enabled:
        spec: Manifest = {"groups": list_groups()}
        found.append(_object(install, "PrometheusRule", "", values.rules.labels, spec))
    if values.service_monitor.enabled:
        found.append(_service_monitor(install, values.service_monitor))
    if values.pod_monitor.enabled:
        found.append(_pod_monitor(install, values.pod_monitor))
    return found


def _dashboards(install: Install) -> Iterator[Manifest]:
    values = install.values.monitoring.dashboards
    found_by = {values.label: values.label_value}
    for name, text in render_boards().items():
        meta = metadata(
            install.release, f"{install.release.base}-dashboard-{name}", values.annotations
        )
        meta["labels"] = found_by | meta["labels"]
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {f"{name}.json": text},
        }


def _service_monitor(install: Install, values: MonitorValues) -> Manifest:
    """Of the Service of the metrics: the other one has no port of that name."""
    own = labels(install.release)
    spec: Manifest = {
        "selector": {"matchLabels": {name: own[name] for name in _OURS}},
        "endpoints": [_endpoint(values)],
    }
    return _object(install, "ServiceMonitor", "", values.labels, spec)


def _pod_monitor(install: Install, values: MonitorValues) -> Manifest:
    spec: Manifest = {
        "selector": {"matchLabels": PROXIES},
        "podMetricsEndpoints": [_endpoint(values)],
    }
    if own_namespaces(install):
        spec["namespaceSelector"] = {"any": True}
    return _object(install, "PodMonitor", "-proxies", values.labels, spec)


def _endpoint(values: MonitorValues) -> Manifest:
    """Name of the port that controllers' Service and proxies' pods share."""
    return {"port": "metrics"} | ({"interval": values.interval} if values.interval else {})


def _object(
    install: Install, kind: str, suffix: str, more: dict[str, str], spec: Manifest
) -> Manifest:
    meta = metadata(install.release, f"{install.release.base}{suffix}")
    meta["labels"] = more | meta["labels"]  # whose it is, nobody else says
    return {"apiVersion": OPERATOR, "kind": kind, "metadata": meta, "spec": spec}
