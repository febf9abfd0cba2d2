"""Infra: the content of a fleet's workload, Service, autoscaler and disruption budget.

In: the Gateways of one fleet, oldest first, with their merged EdgeProxy.
Out: `ir.Infra`, in plain values; the controller renders manifests from it. For a merged fleet only
the class's EdgeProxy applies: the fleet belongs to no single Gateway, so their labels and addresses
do not count.
Source: spec section 2 (generated data plane resources: labels); Gateway API GatewayInfrastructure,
GatewaySpec.addresses.
Must never: let a user's label replace one that selects pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from edgefast import ir
from edgefast.api.edge.edgeproxy import EdgeProxySpec
from edgefast.api.edge.edgeproxy_fleet import (
    FleetDeployment,
    FleetHPA,
    FleetPDB,
    FleetService,
)
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.model.units import parse_duration
from edgefast.netaddr import read_address
from edgefast.translate.fleet.fleet import fleet_namespace, label_value
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.protocol import port_name
from edgefast.translate.gateway.restrictions import find_withheld, granted_labels
from edgefast.translate.settings import Settings


def translate_infra(drafts: Sequence[GatewayDraft], settings: Settings) -> ir.Infra:
    """Describe the fleet of these Gateways (at least one, oldest first, all of one fleet)."""
    first = drafts[0]
    merged = settings.standalone or first.gateway_class.merged
    spec = first.parameters.class_spec if merged else first.parameters.spec
    deployment, shutdown = spec.deployment, spec.shutdown
    assert deployment is not None and shutdown is not None  # defaults
    daemons = deployment.kind == "DaemonSet"
    hpa = None if daemons or spec.hpa is None else _hpa(spec.hpa)
    selector = _selector(first, settings)
    wished = None if merged else first.gateway.spec.infrastructure
    labels = granted_labels(wished.labels) if wished else {}
    annotations = wished.annotations if wished else {}
    infra = ir.Infra(
        name=first.fleet,
        namespace=fleet_namespace(first, settings),
        selector=_pairs(selector),
        labels=_pairs({**labels, **selector}),
        annotations=_pairs(annotations),
        service_only=find_withheld(labels, annotations, first.key[0], settings),
        owner=_owner(first, settings),
        gateways=tuple("/".join(draft.key) for draft in drafts),
        ports=_ports(drafts),
        workload="DaemonSet" if daemons else "Deployment",
        replicas=None if hpa or daemons else deployment.replicas,
        workers=spec.workers or 0,
        hpa=hpa,
        pdb=_pdb(spec.pdb) if spec.pdb else None,
        drain_timeout=parse_duration(shutdown.drain_timeout or "0s"),
        min_drain=parse_duration(shutdown.min_drain_duration or "0s"),
    )
    # What is the default stays the very default: the encoding leaves it out then.
    pod, service = _pod(deployment), _service(spec, drafts)
    changes: dict[str, Any] = {} if pod == infra.pod else {"pod": pod}
    if service != infra.service:
        changes["service"] = service
    return msgspec.structs.replace(infra, **changes) if changes else infra


def _selector(draft: GatewayDraft, settings: Settings) -> dict[str, str]:
    """Return the labels that all of a fleet has and no other fleet (spec section 2)."""
    if settings.standalone:
        return {}
    namespace, name = draft.key
    labels = {
        "app.kubernetes.io/component": "proxy",
        "app.kubernetes.io/managed-by": "edge-gateway",
        "app.kubernetes.io/name": "edge",
    }
    merged, own = draft.gateway_class.merged, settings.gateway_namespace_mode
    if merged:
        class_name = draft.gateway.spec.gateway_class_name
        labels[f"{EDGE_GROUP}/owning-gatewayclass"] = label_value(class_name)
    else:
        labels[f"{EDGE_GROUP}/owning-gateway-name"] = label_value(name)
        if own:
            labels[f"{GATEWAY_GROUP}/gateway-name"] = label_value(name)
    if own or not merged:
        labels[f"{EDGE_GROUP}/owning-gateway-namespace"] = namespace
    return labels


def _owner(
    draft: GatewayDraft, settings: Settings
) -> tuple[Literal["Gateway", "GatewayClass"], str, str] | None:
    """Return the Gateway where it may own (same namespace) and owns alone, else its class."""
    beside = settings.gateway_namespace_mode and not draft.gateway_class.merged
    owner = draft.gateway if beside else draft.gateway_class.gateway_class
    if settings.standalone or not owner.metadata.uid:
        return None
    return ("Gateway" if beside else "GatewayClass", owner.metadata.name, owner.metadata.uid)


def _ports(drafts: Sequence[GatewayDraft]) -> tuple[ir.InfraPort, ...]:
    """Return the ports, by number and transport; which of those that share one come or go changes nothing of it."""
    ports = {
        (one.port, transport): ir.InfraPort(
            name=port_name(one.spec.protocol, one.port),
            port=one.port,
            target=one.bind_port,
            protocol=transport,
        )
        for draft in drafts
        for one in draft.listeners
        for transport in (one.place[0],)
        if one.accepted and draft.accepted
    }
    return tuple(ports[place] for place in sorted(ports))


def _pod(deployment: FleetDeployment) -> ir.InfraPod:
    resources = deployment.resources
    return ir.InfraPod(
        image=deployment.image or "",
        labels=granted_labels(deployment.labels or {}),
        annotations=_sorted(deployment.annotations),
        resources=None if resources is None else msgspec.to_builtins(resources),
        env=tuple(msgspec.to_builtins(one) for one in deployment.env or ()),
        affinity=deployment.affinity or {},
        tolerations=tuple(msgspec.to_builtins(one) for one in deployment.tolerations or ()),
        node_selector=_sorted(deployment.node_selector),
        topology_spread_constraints=deployment.topology_spread_constraints or (),
        priority_class_name=deployment.priority_class_name or "",
    )


def _service(spec: EdgeProxySpec, drafts: Sequence[GatewayDraft]) -> ir.InfraService:
    """Return what of `spec.service` goes with its type; class and Gateway may disagree in it."""
    service = spec.service or FleetService()
    kind = service.type or "LoadBalancer"
    balanced = kind == "LoadBalancer"
    policy = "" if kind == "ClusterIP" else service.external_traffic_policy or ""
    return ir.InfraService(
        type=kind,
        labels=granted_labels(service.labels or {}),
        annotations=_sorted(service.annotations),
        external_traffic_policy=policy,
        load_balancer_class=(service.load_balancer_class or "") if balanced else "",
        load_balancer_source_ranges=tuple(service.load_balancer_source_ranges or ())
        if balanced
        else (),
        addresses=_addresses(drafts[0]),
    )


def _addresses(first: GatewayDraft) -> tuple[str, ...]:
    """Return the IP addresses that a Gateway asks for; its status says which of them there are not.

    One of several merged ones cannot move the address of the others, or take it away.
    """
    if first.gateway_class.merged:
        return ()
    wanted = [read_address(one.value or "") for one in first.gateway.spec.addresses]
    return tuple(dict.fromkeys(str(one) for one in wanted if one is not None))


def _hpa(hpa: FleetHPA) -> ir.InfraHPA:
    return ir.InfraHPA(
        max_replicas=hpa.max_replicas,
        min_replicas=hpa.min_replicas or 1,
        metrics=tuple(hpa.metrics or ()),
    )


def _pdb(pdb: FleetPDB) -> tuple[Literal["minAvailable", "maxUnavailable"], int | str] | None:
    """Return the one bound; an object that has both or none was refused by the API server."""
    if pdb.min_available is not None:
        return ("minAvailable", pdb.min_available)
    return None if pdb.max_unavailable is None else ("maxUnavailable", pdb.max_unavailable)


def _pairs(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(values.items()))


def _sorted(values: Mapping[str, str] | None) -> dict[str, str]:
    return dict(sorted((values or {}).items()))
