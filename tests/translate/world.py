"""Many routes made by hand: the snapshots of the incremental and speed tests."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from edgefast.api.config.edgegateway_rate_limit import GatewayRateLimit
from edgefast.api.kinds import KINDS, Object
from edgefast.api.snapshot import Snapshot
from tests.support.manifest import manifest
from tests.translate.golden import HERE

GATEWAY = "gateway.networking.k8s.io/v1"


def make(raw: dict[str, Any] | str, spec: dict[str, Any] | None = None, **fields: Any) -> Object:
    """Build an object from what its JSON would be, or from what `manifest` takes."""
    if isinstance(raw, str):
        raw = manifest(raw, spec, **fields)
    group = raw["apiVersion"].rpartition("/")[0]
    made: Object = msgspec.convert(raw, KINDS[group, raw["kind"]].struct)
    return made


def gateway_class(controller: str = "gateway.edge.io/gatewayclass-controller") -> Object:
    return make("GatewayClass edge", {"controllerName": controller})


def gateway(name: str = "gw", port: int = 80, **listener: Any) -> Object:
    return make(
        f"Gateway default/{name}",
        {
            "gatewayClassName": "edge",
            "listeners": [{"name": "http", "port": port, "protocol": "HTTP", **listener}],
        },
    )


def filters(services: list[str], header: str = "x-user") -> dict[str, Any]:
    """Filters of a listener, each of which asks a Service."""
    asked = [
        {
            "protocol": "HTTP",
            "backendRef": {"name": name, "port": 80},
            "http": {"allowedResponseHeaders": [header]},
        }
        for name in services
    ]
    return {"requests": [{"type": "ExternalAuth", "externalAuth": one} for one in asked]}


def nested_gateway(*hostnames: str) -> Object:
    """Listeners of one port, each with a hostname; "" for every host."""
    listeners = [
        {"name": f"l{at}", "port": 80, "protocol": "HTTP", **({"hostname": name} if name else {})}
        for at, name in enumerate(hostnames)
    ]
    return make("Gateway default/gw", {"gatewayClassName": "edge", "listeners": listeners})


def service(name: str, /, **port: Any) -> Object:
    return make(f"Service default/{name}", {"ports": [{"port": 80, **port}]})


def endpoints(name: str, /, *addresses: str, **port: Any) -> Object:
    return make(
        f"EndpointSlice default/{name}-1",
        labels={"kubernetes.io/service-name": name},
        addressType="IPv4",
        endpoints=[{"addresses": [address]} for address in addresses],
        ports=[{"port": 8080, **port}],
    )


def route(
    index: int,
    path: str = "/",
    host: str = "",
    backend: str = "web",
    parents: list[dict[str, Any]] | None = None,
    **rule: Any,
) -> Object:
    return make(
        f"HTTPRoute default/r{index}",
        {
            "parentRefs": parents or [{"name": "gw"}],
            "hostnames": [host or f"h{index}.example.com"],
            "rules": [
                {
                    "matches": [{"path": {"value": path}}],
                    "backendRefs": [{"name": backend, "port": 80}],
                    **rule,
                }
            ],
        },
    )


def rate_limit_filter(name: str, *limits: dict[str, Any], requests: int = 1) -> Object:
    plain = {"limit": {"requests": requests, "unit": "Hour"}}
    return make(
        f"RateLimitFilter default/{name}",
        {"type": "Global", "global": {"rules": list(limits) or [plain]}},
    )


def route_filter(name: str, body: str) -> Object:
    """Return an HTTPRouteFilter that answers with what a ConfigMap has."""
    reference = {"group": "", "kind": "ConfigMap", "name": body}
    return make(
        f"HTTPRouteFilter default/{name}",
        {"directResponse": {"body": {"type": "ValueRef", "valueRef": reference}}},
    )


def cookies(name: str, *matches: dict[str, str]) -> Object:
    """Return an HTTPRouteFilter with matches, each of cookies by name."""
    return make(
        f"HTTPRouteFilter default/{name}",
        {
            "matches": [
                {"cookies": [{"name": one, "value": value} for one, value in match.items()]}
                for match in matches
            ]
        },
    )


def config_map(name: str, **data: str) -> Object:
    return make(f"ConfigMap default/{name}", data=data)


def limited(*names: str) -> list[dict[str, Any]]:
    """Return filters of a rule that refer to RateLimitFilters."""
    group = "gateway.edge.io"
    return [
        {
            "type": "ExtensionRef",
            "extensionRef": {"group": group, "kind": "RateLimitFilter", "name": name},
        }
        for name in names
    ]


def rate_limit(**redis: Any) -> GatewayRateLimit:
    """Return rateLimit of a configuration with a Redis store."""
    backend = {"type": "Redis", "redis": redis}
    return msgspec.convert({"backend": backend}, GatewayRateLimit)


def secret(name: str, **values: str) -> Object:
    return make(f"Secret default/{name}", stringData=values)


def listener_set(name: str) -> Object:
    return make(
        f"ListenerSet default/{name}",
        {
            "parentRef": {"name": "gw"},
            "listeners": [{"name": "http", "port": 90, "protocol": "HTTP"}],
        },
    )


def policy(name: str, target: str = "web", created: str = "", *, bundle: bool = False) -> Object:
    """Return a policy with authority ConfigMap ca, or with a ClusterTrustBundle of that name."""
    kind, group = ("ClusterTrustBundle", "certificates.k8s.io") if bundle else ("ConfigMap", "")
    return make(
        f"BackendTLSPolicy default/{name}",
        {
            "targetRefs": [{"group": "", "kind": "Service", "name": target}],
            "validation": {
                "hostname": f"{name}.example.com",
                "caCertificateRefs": [{"group": group, "kind": kind, "name": "ca"}],
            },
        },
        creationTimestamp=created,
    )


def trust_bundle(sound: bool) -> Object:
    """Return ClusterTrustBundle ca."""
    for one in yaml.safe_load_all((HERE / "bases" / "bundles.yaml").read_text()):
        if bool(one["spec"]["trustBundle"]) == sound:
            return make({**one, "metadata": {"name": "ca"}})
    raise AssertionError(sound)


def authority(sound: bool) -> Object:
    """Return ConfigMap ca, taken from the certificates of the golden cases."""
    name = "authority" if sound else "bad-authority"
    for one in yaml.safe_load_all((HERE / "bases" / "certificates.yaml").read_text()):
        if one["metadata"]["name"] == name:
            return make({**one, "metadata": {"name": "ca", "namespace": "default"}})
    raise AssertionError(name)


def backend(name: str, tls: bool) -> Object:
    authorities = [{"group": "", "kind": "ConfigMap", "name": "ca"}]
    return make(
        f"Backend default/{name}",
        {
            "endpoints": [{"fqdn": {"hostname": "origin.example.com", "port": 443}}],
            **({"tls": {"caCertificateRefs": authorities}} if tls else {}),
        },
    )


def grant(namespace: str) -> Object:
    return make(
        "ReferenceGrant default/grant",
        {
            "from": [
                {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": namespace}
            ],
            "to": [{"group": "", "kind": "Service"}],
        },
    )


def namespace(name: str, **labels: str) -> Object:
    return make(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    )


def far_route(backends: list[dict[str, Any]]) -> Object:
    """Return a route of another namespace, to backends as given."""
    return make(
        "HTTPRoute team/far",
        {
            "parentRefs": [{"name": "gw", "namespace": "default"}],
            "hostnames": ["a.example.com"],
            "rules": [{"backendRefs": backends}],
        },
    )


def many(count: int, services: int = 0) -> Snapshot:
    """Return a snapshot of that many routes: to one Service, or in turn to that many."""
    names = [f"s{index}" for index in range(services)] or ["web"]
    return Snapshot.of(
        [
            gateway_class(),
            gateway(),
            *map(service, names),
            *(endpoints(name, "10.0.0.1") for name in names),
            *(route(index, backend=names[index % len(names)]) for index in range(count)),
        ]
    )
