"""EdgeProxy fleet: the fields for the generated Deployment, Service, HPA and PDB.

In: `spec.deployment`, `service`, `hpa`, `pdb` and `shutdown` of an EdgeProxy.
Out: Structs; fields that go to Kubernetes unchanged (affinity, metrics, ...) stay free objects.
Source: spec section 2 (generated data plane resources). Standalone uses none of it and reports
that.
Must never: default a field here; see `edgeproxy_defaults.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.model.fields import (
    AS_SET,
    CIDR,
    Duration,
    Element,
    FreeObject,
    PodCount,
    PodCountOrPercent,
    by_keys,
)


class Toleration(Element, frozen=True, kw_only=True):
    """A pod toleration (Kubernetes core v1)."""

    key: Annotated[str | None, Meta(description="Key of the taint. Absent: any.")] = None
    operator: Annotated[
        Literal["Exists", "Equal", "Lt", "Gt"] | None, Meta(description="Comparison of values.")
    ] = None
    value: Annotated[str | None, Meta(description="Value of the taint.")] = None
    effect: Annotated[
        Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None,
        Meta(description="Effect of the taint. Absent: any."),
    ] = None
    toleration_seconds: Annotated[
        int | None, Meta(description="How long NoExecute is tolerated. Absent: without limit.")
    ] = None


class EnvVar(Element, frozen=True, kw_only=True):
    """An environment variable of the proxy container (Kubernetes core v1)."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=253)], Meta(description="Its name.")
    ]
    value: Annotated[str | None, Meta(description="Its value.")] = None
    value_from: Annotated[
        FreeObject | None, Meta(description="Source of the value, as in Kubernetes core v1.")
    ] = None


class ContainerResources(Element, frozen=True, kw_only=True):
    """Requests and limits of the proxy container (Kubernetes quantities)."""

    requests: Annotated[dict[str, int | str] | None, Meta(description="Resources reserved.")] = None
    limits: Annotated[
        dict[str, int | str] | None, Meta(description="Upper limits of resources.")
    ] = None


class FleetDeployment(Element, frozen=True, kw_only=True):
    """The workload that runs the proxies."""

    kind: Annotated[
        Literal["Deployment", "DaemonSet"] | None,
        Meta(description="Kind of the workload."),
    ] = None
    replicas: Annotated[
        PodCount | None,
        Meta(description="Number of proxies; not with a DaemonSet or an hpa. Absent: 1."),
    ] = None
    resources: Annotated[
        ContainerResources | None,
        Meta(description="Requests and limits of the proxy container."),
    ] = None
    image: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)] | None,
        Meta(description="Image of the proxy. Absent: that of the controller's release."),
    ] = None
    annotations: Annotated[
        dict[str, str] | None, Meta(description="Annotations added to the pods.")
    ] = None
    labels: Annotated[dict[str, str] | None, Meta(description="Labels added to the pods.")] = None
    affinity: Annotated[
        FreeObject | None, Meta(description="Pod affinity, as in Kubernetes core v1.")
    ] = None
    tolerations: Annotated[
        Annotated[tuple[Toleration, ...], Meta(max_length=64)] | None,
        Meta(description="Pod tolerations, as in Kubernetes core v1."),
    ] = None
    node_selector: Annotated[
        dict[str, str] | None, Meta(description="Node labels that the pods need.")
    ] = None
    topology_spread_constraints: Annotated[
        Annotated[tuple[FreeObject, ...], Meta(max_length=16)] | None,
        Meta(description="Pod spreading, as in Kubernetes core v1."),
    ] = None
    priority_class_name: Annotated[str | None, Meta(description="Priority class of the pods.")] = (
        None
    )
    env: Annotated[
        Annotated[tuple[EnvVar, ...], Meta(max_length=64, extra=by_keys("name"))] | None,
        Meta(description="Environment variables added to the proxy container."),
    ] = None


class FleetService(Element, frozen=True, kw_only=True):
    """The Service in front of the proxies."""

    type: Annotated[
        Literal["LoadBalancer", "ClusterIP", "NodePort"] | None,
        Meta(description="Type of the Service."),
    ] = None
    annotations: Annotated[
        dict[str, str] | None, Meta(description="Annotations added to the Service.")
    ] = None
    labels: Annotated[dict[str, str] | None, Meta(description="Labels added to the Service.")] = (
        None
    )
    external_traffic_policy: Annotated[
        Literal["Local", "Cluster"] | None,
        Meta(description="Local preserves the client address. Not with type ClusterIP."),
    ] = None
    load_balancer_class: Annotated[
        str | None,
        Meta(description="Load balancer implementation; only with LoadBalancer."),
    ] = None
    load_balancer_source_ranges: Annotated[
        Annotated[tuple[CIDR, ...], Meta(max_length=256, extra=AS_SET)] | None,
        Meta(
            description="Client ranges that the load balancer allows. Only with type LoadBalancer."
        ),
    ] = None


class FleetHPA(Element, frozen=True, kw_only=True):
    """A HorizontalPodAutoscaler for the workload."""

    min_replicas: Annotated[
        Annotated[int, Meta(ge=1, le=10000)] | None, Meta(description="Fewest proxies.")
    ] = None
    max_replicas: Annotated[Annotated[int, Meta(ge=1, le=10000)], Meta(description="Most proxies.")]
    metrics: Annotated[
        Annotated[tuple[FreeObject, ...], Meta(max_length=32)] | None,
        Meta(description="Metrics, as in autoscaling/v2. Absent: 80 % of the CPU requested."),
    ] = None


class FleetPDB(Element, frozen=True, kw_only=True):
    """A PodDisruptionBudget for the workload; one of the two."""

    min_available: Annotated[
        PodCountOrPercent | None,
        Meta(description="Proxies that must stay available, a number or percentage."),
    ] = None
    max_unavailable: Annotated[
        PodCountOrPercent | None,
        Meta(description="Proxies that can be unavailable, a number or percentage."),
    ] = None


class FleetShutdown(Element, frozen=True, kw_only=True):
    """How a proxy stops."""

    drain_timeout: Annotated[
        Duration | None,
        Meta(description="Longest time for requests in flight to end."),
    ] = None
    min_drain_duration: Annotated[
        Duration | None,
        Meta(description="Shortest time in which connections are accepted after readiness fails."),
    ] = None
