"""Fleets: which set of proxies serves a Gateway, and what it is called.

In: Gateways with their classes. Out: fleet names, labels and ports; an `ir.Infra` for each fleet and
the `ir.Fleet`s with all they serve. Standalone has one fleet; else one per Gateway, per merged class,
or, merged in Gateway Namespace mode, per class and namespace.
Source: spec sections 1 and 2 (generated data plane resources): names, hashes, labels.
Must never: change a name; load balancers and their addresses hang on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from edgefast import ir
from edgefast.resources.duration import parse_duration
from edgefast.translate.gateway import GatewayDraft
from edgefast.translate.settings import Settings

STANDALONE = "standalone"
_EDGE = "gateway.edge.io"
_PREFIX = "edge-"
_NAME_LIMIT = 48  # with prefix and hash within the 63 characters of a Service name


def fleet_key(draft: GatewayDraft, settings: Settings) -> str:
    """Return what makes a fleet one: the text its hash is taken of."""
    if settings.standalone:
        return STANDALONE
    namespace, name = draft.key
    if not draft.gateway_class.merged:
        return f"{namespace}/{name}"
    class_name = draft.gateway.spec.gateway_class_name
    return f"{namespace}/{class_name}" if settings.gateway_namespace_mode else class_name


def fleet_name(draft: GatewayDraft, settings: Settings) -> str:
    """Return the name of the fleet that serves a Gateway."""
    if settings.standalone:
        return STANDALONE
    key = fleet_key(draft, settings)
    merged = draft.gateway_class.merged
    plain = draft.gateway.spec.gateway_class_name if merged else key.replace("/", "-")
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    return f"{_PREFIX}{plain[:_NAME_LIMIT].rstrip('-')}-{digest}"


def container_port(port: int, settings: Settings) -> int:
    """Return the port to bind: unprivileged in fleets, the listener's own in standalone."""
    return port + 10_000 if port < 1024 and not settings.standalone else port


def translate_infra(drafts: Sequence[GatewayDraft], settings: Settings) -> ir.Infra:
    """Describe the fleet of these Gateways (at least one, oldest first, all of one fleet)."""
    first = drafts[0]
    merged = settings.standalone or first.gateway_class.merged
    spec = first.class_spec if merged else first.spec
    deployment, service, shutdown = spec.deployment, spec.service, spec.shutdown
    assert deployment is not None and service is not None and shutdown is not None  # defaults
    ports = {
        one.port: ir.InfraPort(
            name=f"{one.spec.protocol.lower()}-{one.port}", port=one.port, target=one.bind_port
        )
        for draft in drafts
        for one in draft.listeners
        if one.accepted and draft.accepted
    }
    own = settings.gateway_namespace_mode
    return ir.Infra(
        name=first.fleet,
        namespace="" if settings.standalone else (first.key[0] if own else settings.namespace),
        labels=_labels(first, settings),
        annotations=() if merged else _annotations(first),
        gateways=tuple("/".join(draft.key) for draft in drafts),
        ports=tuple(ports[port] for port in sorted(ports)),
        workload=deployment.kind or "Deployment",
        replicas=1 if deployment.replicas is None else deployment.replicas,
        workers=spec.workers or 0,
        service_type=service.type or "LoadBalancer",
        external_traffic_policy=service.external_traffic_policy or "",
        drain_timeout=parse_duration(shutdown.drain_timeout or "0s"),
        min_drain=parse_duration(shutdown.min_drain_duration or "0s"),
    )


def _labels(draft: GatewayDraft, settings: Settings) -> tuple[tuple[str, str], ...]:
    if settings.standalone:
        return ()
    namespace, name = draft.key
    labels = {
        "app.kubernetes.io/component": "proxy",
        "app.kubernetes.io/managed-by": "edge-gateway",
        "app.kubernetes.io/name": "edge",
    }
    merged, own = draft.gateway_class.merged, settings.gateway_namespace_mode
    if merged:
        labels[f"{_EDGE}/owning-gatewayclass"] = draft.gateway.spec.gateway_class_name
    else:
        labels[f"{_EDGE}/owning-gateway-name"] = name
        if own:
            labels["gateway.networking.k8s.io/gateway-name"] = name
    if own or not merged:
        labels[f"{_EDGE}/owning-gateway-namespace"] = namespace
    wished = draft.gateway.spec.infrastructure
    if wished is not None and not merged:
        labels = {**wished.labels, **labels}
    return tuple(sorted(labels.items()))


def _annotations(draft: GatewayDraft) -> tuple[tuple[str, str], ...]:
    wished = draft.gateway.spec.infrastructure
    return tuple(sorted(wished.annotations.items())) if wished else ()


def join_secrets(secrets: Iterable[ir.Secret]) -> tuple[ir.Secret, ...]:
    """Return each secret once, by name; one used as certificate and as authority has both."""
    joined: dict[str, ir.Secret] = {}
    for one in secrets:
        other = joined.get(one.name)
        if other is not None and other != one:
            one = ir.Secret(
                name=one.name,
                certificate=one.certificate or other.certificate,
                private_key=one.private_key or other.private_key,
                ca=one.ca or other.ca,
            )
        joined[one.name] = one
    return tuple(joined[name] for name in sorted(joined))
