"""Help for a converter that knows Ingresses alone: what a user could repair by hand before and after it runs.

In: objects, or what a converter printed. Out: changed copies.
- Names of ports become numbers: the converter reads no Services from files.
- The Gateways become one, with one listener for each port, protocol and host name, and a ReferenceGrant for its Secrets.
- Listeners without the name of a Secret are left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from ingress.naive.objects import Objects as NaiveObjects

Objects = list[dict[str, Any]]

_GATEWAY = ("ingress-nginx", "nginx")
_GROUP = "gateway.networking.k8s.io"


def resolve_ports(objects: Objects) -> Objects:
    """Return objects with the number of each port that their Ingresses name."""
    naive, changed = NaiveObjects(objects), copy.deepcopy(objects)
    for one in changed:
        if one["kind"] == "Ingress":
            for service in _services(one["spec"]):
                name = f"{one['metadata']['namespace']}/{service['name']}"
                port = service["port"]
                found = naive.service_port(name, str(port.get("number") or port["name"]))
                if found is not None:
                    service["port"] = {"number": found["port"]}
    return changed


def _services(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "defaultBackend" in spec:
        yield spec["defaultBackend"]["service"]
    for rule in spec.get("rules", ()):
        for path in rule.get("http", {"paths": ()})["paths"]:
            yield path["backend"]["service"]


def join_gateways(documents: Objects) -> Objects:
    """Return documents with one Gateway for all routes."""
    others = [copy.deepcopy(one) for one in documents if one["kind"] != "Gateway"]
    gateways = [one for one in documents if one["kind"] == "Gateway"]
    if not gateways:
        return others
    namespace, name = _GATEWAY
    for one in others:
        for parent in one.get("spec", {}).get("parentRefs", ()):
            parent.pop("sectionName", None)
            parent |= {"name": name, "namespace": namespace}
    gateway = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "Gateway",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "gatewayClassName": gateways[0]["spec"]["gatewayClassName"],
            "listeners": list(_listeners(gateways)),
        },
    }
    return [gateway, *_grants(gateways), *others]


def _listeners(gateways: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    seen: set[tuple[Any, ...]] = set()
    for gateway in gateways:
        for listener in gateway["spec"].get("listeners", ()):
            refs = listener.get("tls", {}).get("certificateRefs", ())
            key = (listener["port"], listener["protocol"], listener.get("hostname", ""))
            if key in seen or (refs and not all(one["name"] for one in refs)):
                continue
            seen.add(key)
            one = copy.deepcopy(listener)
            one["name"] = f"l{len(seen)}"
            one["allowedRoutes"] = {"namespaces": {"from": "All"}}
            for ref in one.get("tls", {}).get("certificateRefs", ()):
                ref.setdefault("namespace", gateway["metadata"].get("namespace", "default"))
            yield one


def _grants(gateways: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for space in sorted({one["metadata"].get("namespace", "default") for one in gateways}):
        source = {"group": _GROUP, "kind": "Gateway", "namespace": _GATEWAY[0]}
        yield {
            "apiVersion": f"{_GROUP}/v1beta1",
            "kind": "ReferenceGrant",
            "metadata": {"namespace": space, "name": "certificates"},
            "spec": {"from": [source], "to": [{"group": "", "kind": "Secret"}]},
        }
