"""Monitoring values of the chart: objects for Grafana and the Prometheus operator. All are off by default.

In: nothing.
Out: `MonitoringValues`, a part of `ChartValues`.
Must never: have a value without effect on an object.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.api.model.fields import AnnotationValue, Element, LabelValue, expects

_LabelName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=316,
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z",
        extra=expects("the name of a label such as grafana_dashboard"),
    ),
]
#: `Duration` of the operator's CRDs: each unit once at most, the longest first.
_Interval = Annotated[
    str,
    Meta(
        max_length=16,
        pattern=r"^(0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)\Z",
        extra=expects("a duration of Prometheus such as 30s or 1m30s, or nothing"),
    ),
]
_Labels = dict[_LabelName, LabelValue]


class DashboardsValues(Element, frozen=True, kw_only=True):
    """A ConfigMap for each Grafana dashboard, for the sidecar of the Grafana chart."""

    enabled: Annotated[
        bool, Meta(description="Creates a ConfigMap for each Grafana dashboard.")
    ] = False
    label: Annotated[_LabelName, Meta(description="Label that the sidecar looks for.")] = (
        "grafana_dashboard"
    )
    label_value: Annotated[LabelValue, Meta(description="Its value.")] = "1"
    annotations: Annotated[
        dict[str, AnnotationValue],
        Meta(description="Annotations added to the ConfigMaps, such as grafana_folder."),
    ] = {}


class RulesValues(Element, frozen=True, kw_only=True):
    """The PrometheusRule with all alerts."""

    enabled: Annotated[
        bool, Meta(description="Creates a PrometheusRule; needs the Prometheus operator.")
    ] = False
    labels: Annotated[
        _Labels, Meta(description="Labels added to the rule, for the operator's ruleSelector.")
    ] = {}


class MonitorValues(Element, frozen=True, kw_only=True):
    """A ServiceMonitor or a PodMonitor."""

    enabled: Annotated[
        bool, Meta(description="Creates the monitor; needs the Prometheus operator.")
    ] = False
    labels: Annotated[
        _Labels, Meta(description="Labels added to the monitor, for the operator's selector.")
    ] = {}
    interval: Annotated[
        _Interval, Meta(description="Time between two scrapes. Empty: the default of Prometheus.")
    ] = ""


class MonitoringValues(Element, frozen=True, kw_only=True):
    """Objects for Grafana and the Prometheus operator."""

    dashboards: Annotated[
        DashboardsValues, Meta(description="ConfigMaps with the dashboards of Grafana.")
    ] = DashboardsValues()
    rules: Annotated[RulesValues, Meta(description="A PrometheusRule with the alerts.")] = (
        RulesValues()
    )
    service_monitor: Annotated[
        MonitorValues,
        Meta(description="A ServiceMonitor, by which Prometheus reads the controllers."),
    ] = MonitorValues()
    pod_monitor: Annotated[
        MonitorValues, Meta(description="A PodMonitor, by which Prometheus reads the proxies.")
    ] = MonitorValues()
