"""Values of the chart, as typed models: names, types, limits, defaults and descriptions of every value.

In: nothing. Out: `ChartValues`; values.yaml, values.schema.json and the reference page are made from it, and
`edgefast install` checks its values against it. `config.edgeGateway` is the configuration of the controller itself
(`edgefast.api.config.edgegateway`). Source: spec section 2 (installation values under `config.edgeGateway.`).
Must never: have a value that no object shows.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from controller.manifests.monitoring_values import MonitoringValues
from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.edge.edgeproxy_fleet import ContainerResources, EnvVar, Toleration
from edgefast.api.model.fields import (
    AnnotationValue,
    DNSSubdomain,
    Element,
    FreeObject,
    LabelValue,
    PodCountOrPercent,
    expects,
)

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
_Annotations = dict[str, AnnotationValue]
_Labels = dict[str, LabelValue]
#: A reference's parts, as container engines read them; a digest may follow the tag.
_Repository = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        pattern=r"^[a-z0-9]([-a-z0-9._/:]*[a-z0-9])?\Z",
        extra=expects("a repository such as registry.example/team/edgefast"),
    ),
]
_Tag = Annotated[
    str,
    Meta(
        max_length=255,
        pattern=r"^([A-Za-z0-9_][-A-Za-z0-9._]{0,127})?(@sha256:[0-9a-f]{64})?\Z",
        extra=expects("a tag such as 1.2.3, with or without a digest"),
    ),
]
_Digest = Annotated[
    str,
    Meta(
        max_length=71,
        pattern=r"^(sha256:[0-9a-f]{64})?\Z",
        extra=expects("a digest such as sha256: and 64 hexadecimal digits"),
    ),
]
_Replicas = Annotated[int, Meta(ge=0, le=100)]
_MostReplicas = Annotated[int, Meta(ge=1, le=100)]

#: Replicas on different nodes when there are; the chart adds the selector of its own pods.
SPREAD: tuple[FreeObject, ...] = (
    {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"},
)


class Image(Element, frozen=True, kw_only=True):
    """A container image."""

    repository: Annotated[_Repository, Meta(description="Registry and name.")]
    tag: Annotated[
        _Tag,
        Meta(
            description="Tag, or tag@sha256:digest. Empty: the version of the chart's application."
        ),
    ] = ""
    digest: Annotated[
        _Digest,
        Meta(description="Digest that the image must have. It replaces a digest in the tag."),
    ] = ""


class LocalSecret(Element, frozen=True, kw_only=True):
    """A Secret of the same namespace."""

    name: Annotated[DNSSubdomain, Meta(description="Its name.")]


class ConfigValues(Element, frozen=True, kw_only=True):
    """Files of the controller."""

    edge_gateway: Annotated[
        EdgeGateway,
        Meta(
            description="The configuration (docs/reference/edgegateway.md); key "
            "edge-gateway.yaml of the ConfigMap edge-gateway-config."
        ),
    ] = EdgeGateway()


class ControllerContainer(Element, frozen=True, kw_only=True):
    """The container of the controller."""

    image: Annotated[Image, Meta(description="Its image.")] = Image(
        repository="edgefast-controller"
    )
    image_pull_policy: Annotated[PullPolicy, Meta(description="Pull policy of the image.")] = (
        "IfNotPresent"
    )
    resources: Annotated[
        ContainerResources, Meta(description="Requests and limits, Kubernetes quantities.")
    ] = ContainerResources(requests={"cpu": "100m", "memory": "256Mi"}, limits={"memory": "1Gi"})
    env: Annotated[
        Annotated[tuple[EnvVar, ...], Meta(max_length=64)],
        Meta(description="Environment variables added to the container."),
    ] = ()


class PodValues(Element, frozen=True, kw_only=True):
    """The pods of the controller."""

    annotations: Annotated[_Annotations, Meta(description="Annotations added.")] = {}
    labels: Annotated[_Labels, Meta(description="Labels added.")] = {}
    affinity: Annotated[FreeObject, Meta(description="Affinity, as in Kubernetes core v1.")] = {}
    node_selector: Annotated[
        dict[str, str], Meta(description="Node labels that the pods need.")
    ] = {}
    tolerations: Annotated[
        Annotated[tuple[Toleration, ...], Meta(max_length=64)],
        Meta(description="Tolerations, as in Kubernetes core v1."),
    ] = ()
    topology_spread_constraints: Annotated[
        Annotated[tuple[FreeObject, ...], Meta(max_length=16)],
        Meta(
            description="Spreading, as in Kubernetes core v1; one without a labelSelector gets "
            "that of the controller's pods."
        ),
    ] = SPREAD


class DeploymentValues(Element, frozen=True, kw_only=True):
    """The Deployment of the controller."""

    replicas: Annotated[
        _Replicas,
        Meta(
            description="Number of controllers: all serve proxies, one writes statuses. Not with "
            "hpa.enabled."
        ),
    ] = 1
    annotations: Annotated[_Annotations, Meta(description="Annotations added to the object.")] = {}
    priority_class_name: Annotated[
        str, Meta(max_length=253, description="Priority class of the pods. Empty: the default one.")
    ] = ""
    image_pull_secrets: Annotated[
        Annotated[tuple[LocalSecret, ...], Meta(max_length=16)],
        Meta(description="Secrets for the registry; for the certgen Job as well."),
    ] = ()
    edge_gateway: Annotated[
        ControllerContainer, Meta(description="The container of the controller.")
    ] = ControllerContainer()
    pod: Annotated[PodValues, Meta(description="Its pods.")] = PodValues()


class ProxyValues(Element, frozen=True, kw_only=True):
    """Settings of all proxies. An EdgeProxy has the other settings, and can set another image."""

    image: Annotated[Image, Meta(description="Their image.")] = Image(repository="edgefast")
    image_pull_policy: Annotated[PullPolicy, Meta(description="Pull policy of the image.")] = (
        "IfNotPresent"
    )
    image_pull_secrets: Annotated[
        Annotated[tuple[LocalSecret, ...], Meta(max_length=16)],
        Meta(description="Secrets for the registry, in the namespace of the proxies."),
    ] = ()


class ServiceValues(Element, frozen=True, kw_only=True):
    """One of the two Services of the controller."""

    annotations: Annotated[_Annotations, Meta(description="Annotations added to the object.")] = {}


class ServiceAccountValues(Element, frozen=True, kw_only=True):
    """The ServiceAccount of the controller."""

    annotations: Annotated[_Annotations, Meta(description="Annotations added to the object.")] = {}


class DisruptionValues(Element, frozen=True, kw_only=True):
    """The PodDisruptionBudget of the controller. Without a bound there is no budget."""

    min_available: Annotated[
        PodCountOrPercent | None, Meta(description="Controllers that must stay available.")
    ] = None
    max_unavailable: Annotated[
        PodCountOrPercent | None, Meta(description="Controllers that can be unavailable.")
    ] = None


class AutoscalerValues(Element, frozen=True, kw_only=True):
    """The HorizontalPodAutoscaler of the controller."""

    enabled: Annotated[bool, Meta(description="Makes one.")] = False
    min_replicas: Annotated[_MostReplicas, Meta(description="Fewest controllers.")] = 2
    max_replicas: Annotated[_MostReplicas, Meta(description="Most controllers.")] = 5
    metrics: Annotated[
        Annotated[tuple[FreeObject, ...], Meta(max_length=32)],
        Meta(description="Metrics, as in autoscaling/v2. Empty: 80 % of the CPU requested."),
    ] = ()


class NetworkPolicyValues(Element, frozen=True, kw_only=True):
    """The NetworkPolicy of the controller, for proxies, other replicas, probes and metrics only."""

    enabled: Annotated[bool, Meta(description="Makes one.")] = False
    metrics_from: Annotated[
        Annotated[tuple[FreeObject, ...], Meta(max_length=32)],
        Meta(description="Peers that can read metrics, as in networking.k8s.io/v1. Empty: all."),
    ] = ()


class CertgenValues(Element, frozen=True, kw_only=True):
    """The Job that creates the CA and the server certificate before an installation or an upgrade."""

    overwrite: Annotated[
        bool,
        Meta(description="Replaces the CA and the certificate. Otherwise existing ones are kept."),
    ] = False
    annotations: Annotated[_Annotations, Meta(description="Annotations added to the Job.")] = {}
    resources: Annotated[
        ContainerResources, Meta(description="Requests and limits of its container.")
    ] = ContainerResources(requests={"cpu": "10m", "memory": "64Mi"}, limits={"memory": "256Mi"})
    ttl_seconds_after_finished: Annotated[
        int, Meta(ge=0, le=86400, description="Time after which a finished Job is deleted.")
    ] = 30


class ChartValues(Element, frozen=True, kw_only=True):
    """Values of the chart gateway-chart."""

    config: Annotated[ConfigValues, Meta(description="Files of the controller.")] = ConfigValues()
    kubernetes_cluster_domain: Annotated[
        DNSSubdomain, Meta(description="DNS domain of the cluster.")
    ] = "cluster.local"
    deployment: Annotated[
        DeploymentValues, Meta(description="The Deployment of the controller.")
    ] = DeploymentValues()
    proxy: Annotated[ProxyValues, Meta(description="Settings of all proxies.")] = ProxyValues()
    service: Annotated[
        ServiceValues, Meta(description="Service edge-gateway: ports 18000 and 18001.")
    ] = ServiceValues()
    metrics_service: Annotated[
        ServiceValues, Meta(description="Service edge-gateway-metrics-service: port 19001.")
    ] = ServiceValues()
    service_account: Annotated[
        ServiceAccountValues, Meta(description="ServiceAccount of the controller.")
    ] = ServiceAccountValues()
    pod_disruption_budget: Annotated[
        DisruptionValues, Meta(description="Disruption budget. Without a bound: no budget.")
    ] = DisruptionValues()
    hpa: Annotated[AutoscalerValues, Meta(description="Autoscaling of the controller.")] = (
        AutoscalerValues()
    )
    network_policy: Annotated[
        NetworkPolicyValues,
        Meta(description="NetworkPolicy of the controller."),
    ] = NetworkPolicyValues()
    monitoring: Annotated[
        MonitoringValues, Meta(description="Objects for Grafana and the Prometheus operator.")
    ] = MonitoringValues()
    certgen: Annotated[
        CertgenValues, Meta(description="The Job that creates the first certificates.")
    ] = CertgenValues()


#: What values.yaml gives of the configuration; all else has the controller's own defaults.
CONFIG_DEFAULT: FreeObject = {
    "gateway": {"controllerName": EdgeGateway().gateway.controller_name},
    "provider": {"type": "Orchestrator"},
    "logging": {"level": "info"},
}
