"""GRPCRoute: placeholders for GRPCRoutes with an error, which close their calls.

In: the plain value of a document, or of an API server's object, and its errors. Out: a GRPCRoute
that serves nothing (route.py has what it shares with HTTPRoute). An unreadable method is every
call.
Must never: bring anything into service, or raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from edgefast.api.decode.failclosed.readable import field_of
from edgefast.api.decode.failclosed.route import Kind, close_as, read_part, read_values
from edgefast.api.gateway.grpcroute import (
    GRPCMethodMatch,
    GRPCRoute,
    GRPCRouteMatch,
    GRPCRouteRule,
    GRPCRouteSpec,
)
from edgefast.api.gateway.httproute import HTTPHeaderMatch
from edgefast.api.loaded import Path
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["close_grpc_route"]

_ANY_CALL = GRPCMethodMatch(type="RegularExpression")


def close_grpc_route(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> GRPCRoute:
    """Return the closed route of an object, as close_route does."""
    made: GRPCRoute = close_as(_GRPC, raw, ref, first, repeated)
    return made


def _read_match(raw: dict[str, Any]) -> tuple[GRPCRouteMatch, bool]:
    headers, wide_headers = read_values(field_of(raw, "headers", GRPCRouteMatch), HTTPHeaderMatch)
    method, wide = read_part(raw, "method", GRPCRouteMatch, GRPCMethodMatch, _ANY_CALL)
    return GRPCRouteMatch(method=method, headers=headers), wide or wide_headers


_GRPC = Kind(GRPCRoute, GRPCRouteSpec, GRPCRouteRule, GRPCRouteMatch(method=_ANY_CALL), _read_match)
