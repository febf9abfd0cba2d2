"""Scope: placeholders for GatewayClasses, Namespaces and filters with a mistake, so that it grants no access.

In: the plain value of a document, and its mistakes.
Out: a GatewayClass that is not accepted, so that its Gateways reserve their hostnames. Or a
Namespace without labels, because unreadable labels may exclude it. Or a filter without content; its
rules report the mistake.
Must never: raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec

from edgefast.api.core.namespace import Namespace
from edgefast.api.decode.fail_closed.fuzzy import build, field_of, note_closed, read_meta, read_spec
from edgefast.api.edge.httproutefilter import HTTPRouteFilter, HTTPRouteFilterSpec
from edgefast.api.edge.ratelimitfilter import RateLimitFilter, RateLimitFilterSpec
from edgefast.api.gateway.gatewayclass import GatewayClass, GatewayClassSpec
from edgefast.api.loaded import Path
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["SCOPES", "Scope", "close_scope"]

Scope = GatewayClass | Namespace | HTTPRouteFilter | RateLimitFilter


def _read_class(spec: dict[str, Any]) -> GatewayClassSpec:
    name = field_of(spec, "controllerName", GatewayClassSpec)
    found: GatewayClassSpec | None = build(GatewayClassSpec, {"controllerName": name})
    return found or GatewayClassSpec(controller_name="")


#: By kind: the Struct, and how its `spec` is made; None without one.
SCOPES: dict[str, tuple[type[Any], Callable[[dict[str, Any]], Any] | None]] = {
    "GatewayClass": (GatewayClass, _read_class),
    "Namespace": (Namespace, None),
    "HTTPRouteFilter": (HTTPRouteFilter, lambda _: HTTPRouteFilterSpec()),
    "RateLimitFilter": (RateLimitFilter, lambda _: RateLimitFilterSpec(type="Global")),
}
_OF_CLUSTER = ("GatewayClass", "Namespace")


def close_scope(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, _: Collection[Path] = ()
) -> Scope:
    """Return the closed object of a kind of SCOPES."""
    struct, read = SCOPES[ref.kind]
    meta = read_meta(raw.get("metadata"), ref)
    if ref.kind in _OF_CLUSTER:
        meta = msgspec.structs.replace(meta, namespace="")
    spec = {} if read is None else {"spec": read(read_spec(raw))}
    made: Scope = struct(metadata=meta, closed=note_closed(first), **spec)
    return made
