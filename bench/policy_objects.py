"""edgefast's objects for a scenario with a policy: a route for /get/kept, and what holds for it.

In: a scenario. Out: plain objects beside those of objects.py. Must never use a field outside the published kinds.
"""

from collections.abc import Mapping
from typing import Any

from bench.credentials import AUDIENCE, ISSUER, make_key_set
from bench.objects import EDGE_API, GATEWAY_API, NAMESPACE, SERVICE_PORT, Object
from bench.policy_ranges import list_ranges
from bench.scenario import Scenario

_ENCODINGS = {"gzip": "Gzip", "br": "Brotli", "zstd": "Zstd"}
_HASHED = "x-user-id"
SESSION = "x-session"
POLICY = f"Policy {NAMESPACE}/kept "  # as messages name it


def make_policies(scenario: Scenario) -> list[Object]:
    """A route and its policy."""
    kind, spec = _make_spec(scenario.policy)
    policy = make_policy("kept", kind, ("HTTPRoute", "kept"), spec)
    return [_make_route(scenario.make_route(0).host), policy]


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
