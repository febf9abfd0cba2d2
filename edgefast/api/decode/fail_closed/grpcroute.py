"""GRPCRoute: placeholders for GRPCRoutes with a mistake, with what is known of their calls.

In: the plain value of a document, or of an API server's object, and its mistakes.
Out: a GRPCRoute that serves nothing (route.py has what it shares with HTTPRoute). A match with an
unreadable method has none: it takes every call.
Must never: bring anything into service, or raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from edgefast.api.decode.fail_closed.fuzzy import field_of, is_strange, word_of, words_of
from edgefast.api.decode.fail_closed.route import Kind, close_as, read_values
from edgefast.api.gateway.grpcroute import (
    GRPCMethodMatch,
    GRPCRoute,
    GRPCRouteMatch,
    GRPCRouteRule,
    GRPCRouteSpec,
)
from edgefast.api.gateway.httproute import HTTPHeaderMatch
from edgefast.api.loaded import Path
from edgefast.api.validation.grpcroute import check_method_name, check_service_name
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["close_grpc_route"]


def close_grpc_route(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> GRPCRoute:
    """Return the closed route of an object, as close_route does."""
    made: GRPCRoute = close_as(_GRPC, raw, ref, first, repeated)
    return made


def _read_match(raw: dict[str, Any]) -> tuple[GRPCRouteMatch, bool]:
    headers, wide_headers = read_values(field_of(raw, "headers", GRPCRouteMatch), HTTPHeaderMatch)
    method, wide = _read_method(raw)
    return GRPCRouteMatch(method=method, headers=headers), wide or wide_headers


def _read_method(match: dict[str, Any]) -> tuple[GRPCMethodMatch | None, bool]:
    raw = field_of(match, "method", GRPCRouteMatch)
    if raw is None and "service" in match:
        raw = match  # its fields stand where it should
    if raw is None:
        return None, is_strange(match, GRPCRouteMatch)
    if not isinstance(raw, dict):
        return None, True
    kind = field_of(raw, "type", GRPCMethodMatch)
    guess = "Exact" if kind is None else word_of(kind, words_of(GRPCMethodMatch, "type"))
    parts = {name: field_of(raw, name, GRPCMethodMatch) for name in ("service", "method")}
    if guess not in ("Exact", "RegularExpression"):
        return None, True
    wide = guess != (kind or "Exact")
    checks = {"service": check_service_name, "method": check_method_name}
    for name, value in parts.items():
        sound = value is None or (isinstance(value, str) and len(value) <= _MOST)
        if not sound or (guess == "Exact" and checks[name](value)):
            parts[name], wide = None, True
    if parts["service"] is None and parts["method"] is None:
        return None, True
    made = GRPCMethodMatch(service=parts["service"], method=parts["method"])
    if guess == "RegularExpression":
        made = msgspec.structs.replace(made, type="RegularExpression")
    return made, wide


#: GRPCMethodMatch takes no more characters.
_MOST = 1024
_GRPC = Kind(GRPCRoute, GRPCRouteSpec, GRPCRouteRule, GRPCRouteMatch, _read_match)
