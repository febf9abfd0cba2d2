"""Route name: the name of a route among routes of all kinds: tables, metrics, logs, maps.

In: a kind, namespace and name. Out: "namespace/name" of an HTTPRoute. Another kind has the kind
before it ("grpcroute/namespace/name"). Also the same in two parts as a key, which sorts routes of
one kind together; and back. No namespace has a slash, so no name is ambiguous.
Must never: change for an existing route; counters and dashboards know it by its name.
"""

from __future__ import annotations

from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.diagnostics.problem import ObjectRef

__all__ = [
    "GRPC",
    "ROUTE_KINDS",
    "RouteKey",
    "key_of",
    "kind_of",
    "name_of",
    "plain_key",
    "ref_of_key",
    "ref_of_name",
    "route_key",
    "route_of",
]

#: All kinds of routes, in the order in which they are listed.
ROUTE_KINDS = ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute")
#: What keys begin with; those of HTTPRoutes with nothing.
_PREFIX = {kind: f"{kind.lower()}/" for kind in ROUTE_KINDS if kind != "HTTPRoute"}
_KIND = {prefix[:-1]: kind for kind, prefix in _PREFIX.items()}
#: What keys of GRPCRoutes begin with.
GRPC = _PREFIX["GRPCRoute"]
#: (namespace, name); the namespace has the kind before it.
RouteKey = tuple[str, str]


def route_key(kind: str, namespace: str, name: str) -> RouteKey:
    """Return the key of a route."""
    return (_PREFIX.get(kind, "") + namespace, name)


def kind_of(key: RouteKey) -> str:
    """Return the kind of a route."""
    before, slash, _ = key[0].partition("/")
    return _KIND[before] if slash else "HTTPRoute"


def plain_key(key: RouteKey) -> tuple[str, str]:
    """Return namespace and name of a route."""
    return key[0].rpartition("/")[2], key[1]


def name_of(key: RouteKey) -> str:
    """Return the name of a route among all routes."""
    return "/".join(key)


def key_of(name: str) -> RouteKey:
    """Return the key of a route by its name among all routes."""
    before, _, plain = name.rpartition("/")
    return before, plain


def ref_of_key(key: RouteKey) -> ObjectRef:
    """Return the reference to a route."""
    return ObjectRef(kind_of(key), *plain_key(key), GATEWAY_GROUP)


def ref_of_name(name: str) -> ObjectRef:
    """Return the reference to a route by its name among all routes."""
    return ref_of_key(key_of(name))


def route_of(told: str) -> str:
    """Return the name of the route that a text begins with ("GRPCRoute default/shop at ..."), "" when it is something else."""
    kind, _, rest = told.partition(" ")
    name = rest.split(" ", 1)[0]
    return _PREFIX.get(kind, "") + name if kind in ROUTE_KINDS else ""
