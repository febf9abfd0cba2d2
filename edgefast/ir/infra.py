"""Infra: the Kubernetes objects that a fleet needs: pods, Services, scaling.

In: written by `translate` only. Out: `Infra`, which a controller applies. Must never: hold what
requests meet.
"""

from __future__ import annotations

from typing import Any, Literal

from edgefast.ir.layer4 import Transport
from edgefast.ir.telemetry import Struct


class InfraPort(Struct, frozen=True, gc=False):
    """One port of a fleet's Service."""

    name: str  # "http-80", "https-443" (TLS, too), "tcp-5432", "udp-53"
    port: int  # the Service's port: the listener's
    target: int  # the container's port: Listener.bind_port
    protocol: Transport = "TCP"


class InfraPod(Struct, frozen=True, gc=False):
    """What EdgeProxy spec.deployment asks of a fleet's pods, as in Kubernetes core v1."""

    image: str = ""  # "": that of the controller's release
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    resources: dict[str, dict[str, int | str]] | None = None  # requests, limits; None: the default
    env: tuple[dict[str, Any], ...] = ()
    affinity: dict[str, Any] = {}
    tolerations: tuple[dict[str, Any], ...] = ()
    node_selector: dict[str, str] = {}
    topology_spread_constraints: tuple[dict[str, Any], ...] = ()
    priority_class_name: str = ""


class InfraService(Struct, frozen=True, gc=False):
    """What EdgeProxy spec.service and Gateway spec.addresses ask of a fleet's Service."""

    type: str = "LoadBalancer"  # or ClusterIP, NodePort
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    external_traffic_policy: str = ""  # "" with ClusterIP
    load_balancer_class: str = ""
    load_balancer_source_ranges: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()  # IP addresses requested, in order, each once


class InfraHPA(Struct, frozen=True, gc=False):
    """A HorizontalPodAutoscaler (EdgeProxy spec.hpa)."""

    max_replicas: int
    min_replicas: int = 1
    metrics: tuple[dict[str, Any], ...] = ()  # as in autoscaling/v2; (): 80 % of the CPU requested


class Infra(Struct, frozen=True, gc=False):
    """One fleet as its workload and Service are to be made; standalone prints it only."""

    name: str  # Fleet.name, and the name of Deployment, Service and ServiceAccount
    namespace: str = ""  # "" in standalone
    selector: tuple[tuple[str, str], ...] = ()  # sorted; labels that no other fleet's pods have
    labels: tuple[tuple[str, str], ...] = ()  # sorted; `selector` and those the Gateway wishes
    annotations: tuple[tuple[str, str], ...] = ()  # sorted
    # Names of labels and annotations that only the Service has: an injector or a container runtime may read the others.
    service_only: tuple[str, ...] = ()  # sorted
    # What Kubernetes' garbage collector removes it with: kind, name and uid; None: objects from files.
    owner: tuple[Literal["Gateway", "GatewayClass"], str, str] | None = None
    gateways: tuple[str, ...] = ()  # "namespace/name", oldest first
    ports: tuple[InfraPort, ...] = ()  # by port
    workload: str = "Deployment"  # or DaemonSet
    replicas: int | None = None  # None: not set, or another's to decide (hpa, DaemonSet)
    workers: int = 0  # processes per proxy; 0: as many as CPUs are allowed
    pod: InfraPod = InfraPod()
    service: InfraService = InfraService()
    hpa: InfraHPA | None = None
    # A PodDisruptionBudget: its one bound, a number or percent of pods.
    pdb: tuple[Literal["minAvailable", "maxUnavailable"], int | str] | None = None
    drain_timeout: int = 60_000  # milliseconds
    min_drain: int = 10_000  # milliseconds
