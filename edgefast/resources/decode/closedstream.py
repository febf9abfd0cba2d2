"""Closed routes of layer 4: of a TLSRoute, TCPRoute or UDPRoute with a mistake, the listeners and server names that it was for.

In: the plain value of a document, or of an API server's object, and what is wrong with it. Out: a route that serves nothing: parents
and hostnames as far as they can be read (closed.py has what they share with HTTPRoute), and no rules.
Must never: bring anything into service, or raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from edgefast.problem import ObjectRef
from edgefast.resources.decode.closed import read_parents
from edgefast.resources.decode.nearly import field_of, is_strange, read_hostnames, read_meta
from edgefast.resources.gatewayapi.streamroute import (
    StreamRouteSpec,
    TCPRoute,
    TLSRoute,
    TLSRouteSpec,
    UDPRoute,
)
from edgefast.resources.loaded import Path, render_path
from edgefast.resources.model.closed import Closed
from edgefast.resources.rules.rule import Violation

__all__ = ["close_tcp_route", "close_tls_route", "close_udp_route"]


def close_tls_route(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> TLSRoute:
    """Return the closed route of an object, as close_route does: without hostnames that can be read it has no place."""
    spec = _spec_of(raw)
    parents = tuple(read_parents(field_of(spec, "parentRefs", TLSRouteSpec)))
    hostnames, lost = read_hostnames(field_of(spec, "hostnames", TLSRouteSpec))
    if not hostnames:  # they may be in a field that is not known, or in the one of two that is lost
        twice = {("spec",), ("spec", "hostnames")}.intersection(repeated)
        lost = lost or bool(twice) or is_strange(spec, TLSRouteSpec)
    return TLSRoute(
        metadata=read_meta(raw.get("metadata"), ref),
        spec=TLSRouteSpec(parent_refs=() if lost else parents, hostnames=hostnames, rules=()),
        closed=_closed(first),
    )


def close_tcp_route(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> TCPRoute:
    """Return the closed route of an object: its place are the listeners."""
    return TCPRoute(
        metadata=read_meta(raw.get("metadata"), ref),
        spec=_read_spec(raw),
        closed=_closed(first),
    )


def close_udp_route(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> UDPRoute:
    """Return the closed route of an object: its place are the listeners."""
    return UDPRoute(
        metadata=read_meta(raw.get("metadata"), ref),
        spec=_read_spec(raw),
        closed=_closed(first),
    )


def _read_spec(raw: dict[str, Any]) -> StreamRouteSpec:
    parents = read_parents(field_of(_spec_of(raw), "parentRefs", StreamRouteSpec))
    return StreamRouteSpec(parent_refs=tuple(parents), rules=())


def _spec_of(raw: dict[str, Any]) -> dict[str, Any]:
    spec = raw.get("spec")
    return spec if isinstance(spec, dict) else {}


def _closed(first: Violation) -> Closed:
    return Closed(render_path(first.path), f"{first.reason} {first.message}")
