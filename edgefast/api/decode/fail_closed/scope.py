"""Scope: placeholders for GatewayClasses, Namespaces and filters with a mistake, so that it grants no access.

In: the plain value of a document, and its mistakes.
Out: a GatewayClass that is not accepted, so that its Gateways reserve their hostnames. Or a
Namespace without labels, because unreadable labels may exclude it. Or a filter without content; its
rules report the mistake.
Must never: raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from edgefast.api.core.namespace import Namespace
from edgefast.api.decode.fail_closed.readable import (
    build,
    field_of,
    note_closed,
    read_meta,
    read_spec,
)
from edgefast.api.edge.httproutefilter import HTTPRouteFilter, HTTPRouteFilterSpec
from edgefast.api.edge.ratelimitfilter import RateLimitFilter, RateLimitFilterSpec
from edgefast.api.gateway.gatewayclass import GatewayClass, GatewayClassSpec
from edgefast.api.loaded import Path
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["SCOPES", "Scope", "close_scope"]

Scope = GatewayClass | Namespace | HTTPRouteFilter | RateLimitFilter


SCOPES = ("GatewayClass", "Namespace", "HTTPRouteFilter", "RateLimitFilter")


def close_scope(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, _: Collection[Path] = ()
) -> Scope:
    """Return the closed object of a kind of SCOPES."""
    meta, closed = read_meta(raw.get("metadata"), ref), note_closed(first)
    if ref.kind == HTTPRouteFilter.__name__:
        return HTTPRouteFilter(metadata=meta, spec=HTTPRouteFilterSpec(), closed=closed)
    if ref.kind == RateLimitFilter.__name__:
        limits = RateLimitFilterSpec(type="Global")
        return RateLimitFilter(metadata=meta, spec=limits, closed=closed)
    meta = msgspec.structs.replace(meta, namespace="")
    if ref.kind == Namespace.__name__:
        return Namespace(metadata=meta, closed=closed)
    name = field_of(read_spec(raw), "controllerName", GatewayClassSpec)
    spec = build(GatewayClassSpec, {"controllerName": name})
    spec = spec or GatewayClassSpec(controller_name="")
    return GatewayClass(metadata=meta, spec=spec, closed=closed)
