"""Site: two routes below a Gateway, policies that target them, and the routes that a closed policy has."""

from __future__ import annotations

import json
from typing import Any

from edgefast.translate import Translation
from tests.support.manifest import manifest
from tests.translate.policy.hierarchy import EDGE, GROUP

CLOSED = "security/default/p#closed"
DENY = {"defaultAction": "Deny"}


def target(name: str, kind: str = "HTTPRoute", **more: Any) -> dict[str, Any]:
    return {"group": GROUP, "kind": kind, "name": name, **more}


def raw(**spec: Any) -> dict[str, Any]:
    meta = {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    return {
        "apiVersion": EDGE,
        "kind": "SecurityPolicy",
        "metadata": {**meta, "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec,
    }


def closed_routes(made: Translation) -> set[str]:
    return {
        rule.route
        for fleet in made.ir.fleets
        for host in fleet.virtual_hosts
        for rule in host.rules
        if any(one.partition("?")[0] in CLOSED for one in rule.policies)
    }


def site(*policies: dict[str, Any]) -> str:
    items = [
        manifest("GatewayClass edge", {"controllerName": "gateway.edge.io/gatewayclass-controller"}, api=f"{GROUP}/v1"),
        manifest("Gateway gw", {"gatewayClassName": "edge",
                  "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}, api=f"{GROUP}/v1"),
        manifest("Service web", {"ports": [{"port": 80}]}),
    ]  # fmt: skip
    for at in range(2):
        route = {"parentRefs": [{"name": "gw"}], "hostnames": [f"r{at}.example"],
                 "rules": [{"backendRefs": [{"name": "web", "port": 80}]}]}  # fmt: skip
        items.append(manifest(f"HTTPRoute r{at}", route, api=f"{GROUP}/v1"))
    named = [one | {"metadata": {"name": "p"}} for one in policies]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, *named]})
