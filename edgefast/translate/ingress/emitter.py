"""Emitter: the objects that one host, one Ingress, or all of them become, as they are made.

In: objects, each with its Origin, and the references that need a grant. Out: `Made`: objects by table of the Snapshot, the Origin of
each, and grants. An object is of one host, of one Ingress, or of all; `shared` ones are equal in all hosts that make them. emit.py and
emit_policies.py extend `Emitter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.edge.httproutefilter import HTTPRouteFilter
from edgefast.api.edge.policy_target import PolicyTargetReference
from edgefast.api.edge.ratelimitfilter import RateLimitFilter
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.gatewayclass import GatewayClass
from edgefast.api.gateway.httproute import HTTPRoute
from edgefast.api.gateway.layer4_route import TLSRoute
from edgefast.api.gateway.referencegrant import ReferenceGrant
from edgefast.api.model.origin import Origin
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.snapshot import Key
from edgefast.translate.ingress.configmap import Globals
from edgefast.translate.settings import Settings

__all__ = [
    "MAX_TARGETS",
    "Emitter",
    "Grant",
    "Made",
    "Objects",
    "Origins",
    "chunk",
    "target_objects",
]

#: Targets of a policy: bound of edgefast's policies.
MAX_TARGETS = 16

_T = TypeVar("_T")

#: kind, its namespace, kind of the target, its namespace, its name.
Grant = tuple[str, str, str, str, str]
#: By table of the Snapshot and key.
Objects = dict[tuple[str, Key], Any]
#: By kind, namespace and name.
Origins = dict[tuple[str, str, str], Origin]


class Made(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one host, one Ingress, or all of them become."""

    objects: Objects = {}
    origins: Origins = {}
    shared: Objects = {}  # objects that others may have made, too
    grants: frozenset[Grant] = frozenset()


_TABLES: dict[type[Any], str] = {
    GatewayClass: "gateway_classes",
    EdgeProxy: "edge_proxies",
    Gateway: "gateways",
    HTTPRoute: "http_routes",
    TLSRoute: "tls_routes",
    HTTPRouteFilter: "http_route_filters",
    SecurityPolicy: "security_policies",
    BackendTrafficPolicy: "backend_traffic_policies",
    RateLimitFilter: "rate_limit_filters",
    ReferenceGrant: "reference_grants",
}


class Emitter:
    """Collects objects; the emitters of Gateways, hosts and policies extend it."""

    def __init__(self, settings: Settings, globals_: Globals) -> None:
        self._settings = settings
        self._globals = globals_
        self._objects: Objects = {}
        self._origins: Origins = {}
        self._grants: set[Grant] = set()

    def _add(self, obj: Any, origin: Origin) -> None:
        meta = obj.metadata
        self._objects[_TABLES[type(obj)], (meta.namespace, meta.name)] = obj
        self._origins[type(obj).__name__, meta.namespace, meta.name] = origin

    def _grant(self, kind: str, namespace: str, to_kind: str, to: Key) -> None:
        if namespace != to[0]:
            self._grants.add((kind, namespace, to_kind, *to))


def target_objects(kind: str, names: Iterable[str]) -> tuple[PolicyTargetReference, ...]:
    """Return references to the objects of a kind that a policy applies to."""
    return tuple(PolicyTargetReference(group=GATEWAY_GROUP, kind=kind, name=one) for one in names)


def chunk(items: Sequence[_T], size: int) -> Iterator[list[_T]]:
    """Divide items into lists of at most `size`."""
    for at in range(0, len(items), size):
        yield list(items[at : at + size])
