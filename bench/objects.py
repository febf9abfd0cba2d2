"""Gateway API objects for edgefast: the same routes that the peers get in their own words.

In: a scenario, the listener port, the origin's port. Out: plain objects, ready for json.dumps.
Must never use a field outside the published kinds: the bench is a user like any other.
"""

import base64
from collections.abc import Iterator
from typing import Any

from bench.certificate import Certificate
from bench.scenario import CALL_METHOD, CALL_SERVICE, Route, Scenario

GATEWAY_API = "gateway.networking.k8s.io"
EDGE_API = "gateway.edge.io"
NAMESPACE = "bench"
SERVICE_PORT = 8080

Object = dict[str, Any]


def make_base(
    scenario: Scenario, port: int, origin_port: int, certificate: Certificate
) -> list[Object]:
    """Class, settings, Gateway and backends: everything except the routes."""
    objects = [_make_class(), _make_settings(scenario), _make_gateway(scenario, port)]
    if scenario.tls:
        objects.append(_make_secret(certificate))
    for index in range(scenario.backends):
        objects.extend(_make_backend(index, origin_port, scenario))
    return objects


def make_routes(scenario: Scenario) -> Iterator[Object]:
    """One HTTPRoute per route; GRPCRoute where the row is of calls, that of layer 4 where something is passed on."""
    if scenario.stream:
        yield _make_stream_route(scenario)
        return
    make = _make_call if scenario.grpc else make_route
    for index in range(scenario.routes):
        yield make(f"route-{index}", scenario.make_route(index))


def make_route(name: str, route: Route) -> Object:
    """An HTTPRoute with one PathPrefix rule."""
    match = {"path": {"type": "PathPrefix", "value": route.prefix}}
    backend = {"name": f"b{route.backend}", "port": SERVICE_PORT}
    return {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "parentRefs": [{"name": "bench"}],
            "hostnames": [route.host],
            "rules": [{"matches": [match], "backendRefs": [backend]}],
        },
    }


def _make_call(name: str, route: Route) -> Object:
    """A GRPCRoute with one rule for the method."""
    made = make_route(name, route)
    method = {"type": "Exact", "service": CALL_SERVICE, "method": CALL_METHOD}
    made["kind"] = "GRPCRoute"
    made["spec"]["rules"][0]["matches"] = [{"method": method}]
    return made


def _make_stream_route(scenario: Scenario) -> Object:
    """The one route of layer 4."""
    spec: Object = {
        "parentRefs": [{"name": "bench"}],
        "rules": [{"backendRefs": [{"name": "b0", "port": SERVICE_PORT}]}],
    }
    if scenario.stream == "tls":
        spec["hostnames"] = [scenario.make_route(0).host]
    return {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": f"{scenario.stream.upper()}Route",
        "metadata": {"name": "stream", "namespace": NAMESPACE},
        "spec": spec,
    }


def _make_class() -> Object:
    reference = {
        "group": EDGE_API,
        "kind": "EdgeProxy",
        "name": "bench",
        "namespace": NAMESPACE,
    }
    return {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "GatewayClass",
        "metadata": {"name": "bench"},
        "spec": {
            "controllerName": f"{EDGE_API}/gatewayclass-controller",
            "parametersRef": reference,
        },
    }


def _make_settings(scenario: Scenario) -> Object:
    """Access log on or off; limits raised as those of the peers are."""
    http = {
        "maxConnections": scenario.connections + 1024,
        "maxRequestsPerConnection": 1_000_000,
        "idleTimeout": "600s",
    }
    return {
        "apiVersion": f"{EDGE_API}/v1alpha1",
        "kind": "EdgeProxy",
        "metadata": {"name": "bench", "namespace": NAMESPACE},
        "spec": {
            "accessLog": {"off": not scenario.logs},
            "http": http,
            "stream": {"maxConnections": scenario.connections + 1024, "idleTimeout": "600s"},
            "http2": {"maxRequestsPerConnection": 1_000_000_000},
            # Rows start and stop many proxies: none of them is to wait for clients.
            "shutdown": {"drainTimeout": "1s", "minDrainDuration": "0s"},
        },
    }


def _make_gateway(scenario: Scenario, port: int) -> Object:
    protocol = scenario.stream or scenario.scheme
    listener: Object = {"name": protocol, "protocol": protocol.upper(), "port": port}
    if scenario.stream == "tls":
        listener["tls"] = {"mode": "Passthrough"}
    if scenario.tls:
        listener["tls"] = {"mode": "Terminate", "certificateRefs": [{"name": "bench-tls"}]}
    return {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "Gateway",
        "metadata": {"name": "bench", "namespace": NAMESPACE},
        "spec": {"gatewayClassName": "bench", "listeners": [listener]},
    }


def _make_secret(certificate: Certificate) -> Object:
    data = {
        "tls.crt": base64.b64encode(certificate.cert.read_bytes()).decode(),
        "tls.key": base64.b64encode(certificate.key.read_bytes()).decode(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "bench-tls", "namespace": NAMESPACE},
        "type": "kubernetes.io/tls",
        "data": data,
    }


def _make_backend(index: int, origin_port: int, scenario: Scenario) -> list[Object]:
    name = f"b{index}"
    transport = "UDP" if scenario.stream == "udp" else "TCP"
    port = {"name": "http", "port": SERVICE_PORT, "protocol": transport}
    if scenario.http2_backends:
        port["appProtocol"] = "kubernetes.io/h2c"
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"ports": [port]},
    }
    labels = {"kubernetes.io/service-name": name}
    slice_ = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{name}-1", "namespace": NAMESPACE, "labels": labels},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": origin_port, "protocol": transport}],
        "endpoints": [
            {"addresses": [one], "conditions": {"ready": True}} for one in scenario.list_addresses()
        ],
    }
    return [service, slice_]
