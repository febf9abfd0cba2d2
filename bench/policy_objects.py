"""edgefast's objects for a scenario with a policy: a route for /get/kept, and what holds for it.

In: a scenario. Out: plain objects beside those of objects.py. Must never use a field outside the published kinds.
"""

from collections.abc import Mapping
from typing import Any

from bench.credentials import AUDIENCE, ISSUER, make_key_set
from bench.login_provider import CALLBACK, CLIENT_ID, CLIENT_SECRET, get_issuer, get_port
from bench.objects import EDGE_API, GATEWAY_API, NAMESPACE, SERVICE_PORT, Object
from bench.policy_ranges import CLIENT, list_ranges
from bench.scenario import Scenario

_ENCODINGS = {"gzip": "Gzip", "br": "Brotli", "zstd": "Zstd"}
_HASHED = "x-user-id"
SESSION = "x-session"
POLICY = f"Policy {NAMESPACE}/kept "  # as messages name it


def make_policies(scenario: Scenario) -> list[Object]:
    """A route and its policy."""
    kind, spec = _make_spec(scenario.policy)
    policy = make_policy("kept", kind, ("HTTPRoute", "kept"), spec)
    more = _make_provider() if scenario.policy == "oidc" else []
    return [_make_route(scenario.make_route(0).host), policy, *more]


def _make_provider() -> list[Object]:
    """The identity provider as a backend, and the client's secret."""
    labels = {"kubernetes.io/service-name": "idp"}
    port = {"name": "http", "port": SERVICE_PORT, "protocol": "TCP"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "idp", "namespace": NAMESPACE},
            "spec": {"ports": [port]},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "idp-1", "namespace": NAMESPACE, "labels": labels},
            "addressType": "IPv4",
            "ports": [{**port, "port": get_port()}],
            "endpoints": [{"addresses": [CLIENT], "conditions": {"ready": True}}],
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "client", "namespace": NAMESPACE},
            "stringData": {"client-secret": CLIENT_SECRET},
        },
    ]


def make_policy(name: str, kind: str, target: tuple[str, str], spec: Mapping[str, Any]) -> Object:
    """A policy of a kind of ours at an object of the Gateway API (its kind and name)."""
    targeted = {"group": GATEWAY_API, "kind": target[0], "name": target[1]}
    return {
        "apiVersion": f"{EDGE_API}/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"targetRefs": [targeted], **spec},
    }


def _make_spec(policy: str) -> tuple[str, dict[str, Any]]:
    if policy in _ENCODINGS:
        return "BackendTrafficPolicy", {"compressor": [{"type": _ENCODINGS[policy]}]}
    if policy == "hash":
        by = {"type": "Header", "header": {"name": _HASHED}}
        return "BackendTrafficPolicy", {
            "loadBalancer": {"type": "ConsistentHash", "consistentHash": by}
        }
    if policy == "session":
        by = {"type": "Header", "header": {"name": SESSION}}
        return "BackendTrafficPolicy", {"sessionPersistence": by}
    if policy == "cidr":
        rule = {"action": "Allow", "principal": {"clientCIDRs": list_ranges()}}
        return "SecurityPolicy", {"authorization": {"defaultAction": "Deny", "rules": [rule]}}
    if policy == "jwt":
        provider = {
            "name": "login",
            "issuer": ISSUER,
            "audiences": [AUDIENCE],
            "localJWKS": {"inline": make_key_set()},
        }
        return "SecurityPolicy", {"jwt": {"providers": [provider]}}
    if policy == "oidc":
        backend = {"name": "idp", "port": SERVICE_PORT}
        return "SecurityPolicy", {
            "oidc": {
                "provider": {"issuer": get_issuer(), "backendRefs": [backend]},
                "clientID": CLIENT_ID,
                "clientSecret": {"name": "client"},
                "redirectURL": f"%REQ(x-forwarded-proto)%://%REQ(:authority)%{CALLBACK}",
                "logoutPath": "/get/kept/logout",
                "forwardAccessToken": True,
            }
        }
    reference = {"name": "b0", "port": SERVICE_PORT}
    return "SecurityPolicy", {"extAuth": {"http": {"backendRef": reference, "path": "/auth"}}}


def _make_route(host: str) -> Object:
    return {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "kept", "namespace": NAMESPACE},
        "spec": {
            "parentRefs": [{"name": "bench"}],
            "hostnames": [host],
            "rules": [
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": "/get/kept"}}],
                    "backendRefs": [{"name": "b0", "port": SERVICE_PORT}],
                }
            ],
        },
    }
