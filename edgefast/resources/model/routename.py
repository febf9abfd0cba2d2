"""Names of routes: what a route is called where routes of all kinds stand together: tables, metrics, logs, maps.

In: a kind, namespace and name. Out: "namespace/name" of an HTTPRoute, as ever; of a GRPCRoute "grpcroute/namespace/name"; the same in
two parts as a key, which sorts routes of one kind together; and back. No namespace has a slash, so none is taken for another.
Must never: change for a route that there is; counters and dashboards know it by its name.
"""

from __future__ import annotations

from edgefast.problem import ObjectRef
from edgefast.resources.model.reference import GATEWAY_GROUP

__all__ = [
    "GRPC",
    "RouteKey",
    "key_of",
    "kind_of",
    "name_of",
    "ref_of_key",
    "ref_of_name",
    "route_key",
    "route_of",
]

#: What keys of GRPCRoutes begin with.
GRPC = "grpcroute/"
#: (namespace, name); the namespace of a GRPCRoute has GRPC before it.
RouteKey = tuple[str, str]


def route_key(kind: str, namespace: str, name: str) -> RouteKey:
    """Return the key of a route."""
    return (GRPC + namespace if kind == "GRPCRoute" else namespace, name)


def kind_of(key: RouteKey) -> str:
    """Return the kind of a route."""
    return "GRPCRoute" if key[0].startswith(GRPC) else "HTTPRoute"


def name_of(key: RouteKey) -> str:
    """Return the name of a route among all routes."""
    return "/".join(key)


def key_of(name: str) -> RouteKey:
    """Return the key of a route by its name among all routes."""
    before, _, plain = name.rpartition("/")
    return before, plain


def ref_of_key(key: RouteKey) -> ObjectRef:
    """Return the reference to a route."""
    return ObjectRef(kind_of(key), key[0].removeprefix(GRPC), key[1], GATEWAY_GROUP)


def ref_of_name(name: str) -> ObjectRef:
    """Return the reference to a route by its name among all routes."""
    return ref_of_key(key_of(name))


def route_of(told: str) -> str:
    """Return the name of the route that a text begins with ("GRPCRoute default/shop at ..."), "" when it is something else."""
    kind, _, rest = told.partition(" ")
    name = rest.split(" ", 1)[0]
    if kind == "GRPCRoute":
        return GRPC + name
    return name if kind == "HTTPRoute" else ""
