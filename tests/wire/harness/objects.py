"""Builders of Gateway API objects as plain dictionaries, so that a test shows only what it is about.

In: names, ports, addresses. Out: documents as a user would write them. Everything lives in namespace `default` and in the
class `edge`. No defaults are written that the API would add by itself.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

Object = dict[str, Any]
Endpoints = Iterable[tuple[str, int]]

GROUP = "gateway.networking.k8s.io"
EDGE = "gateway.edge.io"


def _object(api: str, kind: str, name: str, spec: Any = None, **more: Any) -> Object:
    metadata: Object = {"name": name}
    if kind not in ("GatewayClass", "Namespace"):
        metadata["namespace"] = "default"
    made: Object = {"apiVersion": api, "kind": kind, "metadata": metadata}
    if spec is not None:
        made["spec"] = spec
    made.update(more)
    return made


def gateway_class() -> Object:
    """The class all test gateways belong to."""
    return _object(
        f"{GROUP}/v1", "GatewayClass", "edge", {"controllerName": f"{EDGE}/gatewayclass-controller"}
    )


def gateway(name: str, listeners: list[Object], proxy: str = "", **spec: Any) -> Object:
    """A Gateway; `proxy` names an EdgeProxy with its settings."""
    made: Object = {"gatewayClassName": "edge", "listeners": listeners, **spec}
    if proxy:
        made["infrastructure"] = {
            "parametersRef": {"group": EDGE, "kind": "EdgeProxy", "name": proxy}
        }
    return _object(f"{GROUP}/v1", "Gateway", name, made)


def listener(
    port: int, name: str = "http", hostname: str = "", secrets: Iterable[str] = (), **more: Any
) -> Object:
    """An HTTP listener, or an HTTPS one when it has secrets."""
    made: Object = {"name": name, "port": port, "protocol": "HTTP", **more}
    if hostname:
        made["hostname"] = hostname
    if secrets:
        made["protocol"] = "HTTPS"
        made["tls"] = {"certificateRefs": [{"name": item} for item in secrets]}
    return made


def edge_proxy(name: str, http: Mapping[str, Any] | None = None, **spec: Any) -> Object:
    """Settings: `http` holds limits and timeouts."""
    made: Object = dict(spec)
    if http:
        made["http"] = dict(http)
    return _object(f"{EDGE}/v1alpha1", "EdgeProxy", name, made)


def policy(kind: str, name: str, spec: Mapping[str, Any]) -> Object:
    """A policy of ours."""
    return _object(f"{EDGE}/v1alpha1", kind, name, dict(spec))


def filter_ref(name: str, kind: str = "RateLimitFilter") -> Object:
    """A filter of a rule: a reference to an object of ours."""
    ref = {"group": EDGE, "kind": kind, "name": name}
    return {"type": "ExtensionRef", "extensionRef": ref}


def service(
    name: str,
    endpoints: Endpoints,
    port: int = 80,
    app_protocol: str = "",
    protocol: str = "TCP",
    **slice_more: Any,
) -> list[Object]:
    """A Service and one EndpointSlice per (address, port): the slices are what routing goes by."""
    said: Object = {"appProtocol": app_protocol} if app_protocol else {}
    if protocol != "TCP":
        said["protocol"] = protocol
    made = [_object("v1", "Service", name, {"ports": [{"name": "http", "port": port, **said}]})]
    for index, (address, number) in enumerate(endpoints):
        made.append(
            _object(
                "discovery.k8s.io/v1",
                "EndpointSlice",
                f"{name}-{index}",
                addressType="IPv6" if ":" in address else "IPv4",
                ports=[{"name": "http", "port": number, "protocol": protocol}],
                endpoints=[{"addresses": [address], "conditions": {"ready": True}, **slice_more}],
            )
        )
        made[-1]["metadata"]["labels"] = {"kubernetes.io/service-name": name}
    return made


def backend(name: str, endpoints: list[Object], tls: Object | None = None) -> Object:
    """Our own Backend kind: ip, fqdn or unix endpoints."""
    spec: Object = {"endpoints": endpoints}
    if tls is not None:
        spec["tls"] = tls
    return _object(f"{EDGE}/v1alpha1", "Backend", name, spec)


def tls_policy(service: str, hostname: str, ca: str = "ca") -> Object:
    """A BackendTLSPolicy: pods of that Service have to show this name, by the authority of a ConfigMap."""
    wanted = {"hostname": hostname, "caCertificateRefs": [
        {"group": "", "kind": "ConfigMap", "name": ca}]}  # fmt: skip
    spec = {
        "targetRefs": [{"group": "", "kind": "Service", "name": service}],
        "validation": wanted,
    }
    return _object(f"{GROUP}/v1", "BackendTLSPolicy", service, spec)


def backend_ref(name: str, weight: int | None = None, *, kind: str = "", **more: Any) -> Object:
    """A reference to a Service (port 80), or to a Backend."""
    made: Object = {"name": name, **more}
    if kind == "Backend":
        made |= {"group": EDGE, "kind": "Backend"}
    else:
        made.setdefault("port", 80)
    if weight is not None:
        made["weight"] = weight
    return made


def path(value: str, kind: str = "PathPrefix") -> Object:
    """A match on a path."""
    return {"path": {"type": kind, "value": value}}


def rule(*backends: str | Object, matches: list[Object] | None = None, **more: Any) -> Object:
    """A rule; a plain string is a reference to that Service."""
    made: Object = dict(more)
    if matches is not None:
        made["matches"] = matches
    if backends:
        made["backendRefs"] = [
            backend_ref(item) if isinstance(item, str) else item for item in backends
        ]
    return made


def route(
    name: str, rules: list[Object], hostnames: Iterable[str] = (), parent: str = "web", **ref: Any
) -> Object:
    """An HTTPRoute attached to one Gateway; `ref` adds sectionName or port."""
    spec: Object = {"parentRefs": [{"name": parent, **ref}], "rules": rules}
    if hostnames:
        spec["hostnames"] = list(hostnames)
    return _object(f"{GROUP}/v1", "HTTPRoute", name, spec)


def grpc_route(
    name: str, rules: list[Object], hostnames: Iterable[str] = (), parent: str = "web", **ref: Any
) -> Object:
    """A GRPCRoute; everything else is as for an HTTPRoute."""
    return route(name, rules, hostnames, parent, **ref) | {"kind": "GRPCRoute"}


def method(service: str = "", name: str = "", **more: Any) -> Object:
    """A match of a GRPCRoute on a service, a method, or both."""
    wanted = {"service": service, "method": name}
    return {"method": {key: value for key, value in wanted.items() if value}, **more}


def tls_secret(name: str, certificate: bytes, key: bytes) -> Object:
    """A Secret of type kubernetes.io/tls."""
    data = {
        "tls.crt": base64.b64encode(certificate).decode(),
        "tls.key": base64.b64encode(key).decode(),
    }
    return _object("v1", "Secret", name, type="kubernetes.io/tls", data=data)


def secret(name: str, data: Mapping[str, bytes]) -> Object:
    """A Secret of any type."""
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return _object("v1", "Secret", name, data=encoded)


def config_map(name: str, data: Mapping[str, str]) -> Object:
    """A ConfigMap; CA bundles live under the key ca.crt."""
    return _object("v1", "ConfigMap", name, data=dict(data))


def simple(
    port: int, endpoints: Endpoints, http: Mapping[str, Any] | None = None, **spec: Any
) -> list[Object]:
    """One Gateway `web` on one port whose only route sends everything to one Service `origin`."""
    made = [
        gateway("web", [listener(port)], proxy="web" if http or spec else ""),
        route("all", [rule("origin")]),
        *service("origin", endpoints),
    ]
    if http or spec:
        made.append(edge_proxy("web", http, **spec))
    return made
