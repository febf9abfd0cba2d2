"""Layer 4 route: placeholders for TLSRoutes, TCPRoutes and UDPRoutes with a mistake: their listeners and server names.

In: the plain value of a document, or of an API server's object, and its mistakes. Out: a route that
serves nothing. It has parents and hostnames as far as they can be read (route.py has what they
share with HTTPRoute), and no rules.
Must never: bring anything into service, or raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from edgefast.api.decode.fail_closed.fuzzy import note_closed, read_meta, read_spec
from edgefast.api.decode.fail_closed.route import read_place
from edgefast.api.gateway.layer4_route import (
    StreamRoute,
    StreamRouteSpec,
    TCPRoute,
    TLSRoute,
    TLSRouteSpec,
    UDPRoute,
)
from edgefast.api.loaded import Path
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["close_stream_route"]


def close_stream_route(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> StreamRoute:
    """Return the closed route of an object; a TLSRoute without hostnames that can be read has no place."""
    meta, closed = read_meta(raw.get("metadata"), ref), note_closed(first)
    struct = TLSRouteSpec if ref.kind == TLSRoute.__name__ else StreamRouteSpec
    parents, hostnames = read_place(read_spec(raw), struct, repeated)
    if ref.kind == TLSRoute.__name__:
        named = TLSRouteSpec(parent_refs=parents, hostnames=hostnames, rules=())
        return TLSRoute(metadata=meta, spec=named, closed=closed)
    made = TCPRoute if ref.kind == TCPRoute.__name__ else UDPRoute
    return made(metadata=meta, spec=StreamRouteSpec(parent_refs=parents, rules=()), closed=closed)
