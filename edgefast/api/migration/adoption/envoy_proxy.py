"""Envoy proxy: an EnvoyProxy of Envoy Gateway as an EdgeProxy.

In: a plain document. Out: an AdoptedDocument. Notes name the fields of Envoy itself.
Must never: pass over a field that is not in the table.
"""

from __future__ import annotations

from typing import Any

from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.migration.adoption.adopted_document import AdoptedDocument, Note
from edgefast.api.migration.adoption.fields import Fields, is_parent, pair_paths, put_field

__all__ = ["PROXY_FIELDS", "PROXY_NAMED", "adopt_envoy_proxy"]

_KUBERNETES = "provider.kubernetes"
#: Fields with the same value, and their place in EdgeProxy spec.
PROXY_FIELDS = {
    "concurrency": "workers",
    "mergeGateways": "mergeGateways",
    "shutdown.drainTimeout": "shutdown.drainTimeout",
    "shutdown.minDrainDuration": "shutdown.minDrainDuration",
    f"{_KUBERNETES}.envoyDeployment.replicas": "deployment.replicas",
    f"{_KUBERNETES}.envoyDeployment.pod.annotations": "deployment.annotations",
    f"{_KUBERNETES}.envoyDeployment.pod.labels": "deployment.labels",
    f"{_KUBERNETES}.envoyDeployment.pod.affinity": "deployment.affinity",
    f"{_KUBERNETES}.envoyDeployment.pod.tolerations": "deployment.tolerations",
    f"{_KUBERNETES}.envoyDeployment.pod.nodeSelector": "deployment.nodeSelector",
    f"{_KUBERNETES}.envoyDeployment.pod.topologySpreadConstraints": "deployment.topologySpreadConstraints",
    f"{_KUBERNETES}.envoyDeployment.pod.priorityClassName": "deployment.priorityClassName",
    f"{_KUBERNETES}.envoyDeployment.container.resources": "deployment.resources",
    f"{_KUBERNETES}.envoyDeployment.container.env": "deployment.env",
    f"{_KUBERNETES}.envoyService.type": "service.type",
    f"{_KUBERNETES}.envoyService.annotations": "service.annotations",
    f"{_KUBERNETES}.envoyService.labels": "service.labels",
    f"{_KUBERNETES}.envoyService.externalTrafficPolicy": "service.externalTrafficPolicy",
    f"{_KUBERNETES}.envoyService.loadBalancerClass": "service.loadBalancerClass",
    f"{_KUBERNETES}.envoyService.loadBalancerSourceRanges": "service.loadBalancerSourceRanges",
    f"{_KUBERNETES}.envoyHpa.minReplicas": "hpa.minReplicas",
    f"{_KUBERNETES}.envoyHpa.maxReplicas": "hpa.maxReplicas",
    f"{_KUBERNETES}.envoyHpa.metrics": "hpa.metrics",
    f"{_KUBERNETES}.envoyPDB.minAvailable": "pdb.minAvailable",
    f"{_KUBERNETES}.envoyPDB.maxUnavailable": "pdb.maxUnavailable",
}
_PLACES = pair_paths(PROXY_FIELDS)
#: Other fields, and what to do.
PROXY_NAMED = {
    "provider.type": "edgefast run serves one machine, a controller a cluster",
    "provider.kubernetes": "write EdgeProxy spec.deployment, spec.service, spec.hpa or spec.pdb",
    "provider.host": "edgefast run serves one machine",
    "logging": "use --log-level",
    "telemetry.accessLog": "write EdgeProxy spec.accessLog",
    "telemetry.tracing": "write EdgeProxy spec.tracing",
    "telemetry.metrics": "edgefast exports metrics for Prometheus",
    "telemetry.requestID": "write EdgeProxy spec.headers.requestID",
    "telemetry.healthCheckLog": "the log of the proxy names endpoints that fail their check",
    "backendTLS": "write tls.backend.clientCertificateRef of the Gateway",
    "bootstrap": "edgefast does not use Envoy",
    "dynamicModules": "edgefast runs no third-party code",
    "extraArgs": "edgefast does not use Envoy",
    "filterOrder": "edgefast has a fixed order of policies",
    "geoIP": "edgefast does not support GeoIP",
    "ipFamily": "edgefast listens on IPv4 and IPv6",
    "luaValidation": "edgefast runs no third-party code",
    "mergeBackends": "edgefast shares connections of equal backends",
    "mergeType": "the EdgeProxy of a Gateway replaces fields of that of its class",
    "preserveRouteOrder": "the Gateway API has an order of routes",
    "routingType": "requests go to endpoints, never to a Service's address",
    "shutdown.healthCheckFailureDelay": "use EdgeProxy spec.shutdown.minDrainDuration",
}


def adopt_envoy_proxy(raw: dict[str, Any]) -> AdoptedDocument:
    """Return an EdgeProxy."""
    fields = Fields(raw.get("spec"))
    spec: dict[str, Any] = {}
    notes: list[Note] = []
    fields.take("provider.type")
    for name, at in PROXY_FIELDS.items():
        value = fields.take(name)
        if value is not None:
            put_field(spec, at, value)
    told: set[str] = set()
    for path in fields.left():
        parts = [str(one) for one in path]
        if fields.is_empty(path) and is_parent(parts, (*PROXY_FIELDS, *PROXY_NAMED)):
            continue
        names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
        name = next((one for one in names if one in PROXY_NAMED), parts[0])
        where = ".".join(parts) if name == _KUBERNETES else name
        if where not in told:
            told.add(where)
            notes.append(
                Note(("spec", *where.split(".")), "not applied", PROXY_NAMED.get(name, ""))
            )
    return AdoptedDocument(
        raw={
            **raw,
            "apiVersion": f"{EDGE_GROUP}/v1alpha1",
            "kind": "EdgeProxy",
            "spec": spec,
        },
        notes=tuple(notes),
        places=_PLACES,
    )
