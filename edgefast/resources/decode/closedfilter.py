"""Closed filters: an HTTPRouteFilter or RateLimitFilter with a mistake, so that the rules that name it say what is wrong with it.

In: the plain value of an object, and what is wrong with it. Out: a filter that says nothing (`closed`).
Must never: raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from edgefast.problem import ObjectRef
from edgefast.resources.decode.nearly import read_meta
from edgefast.resources.edge.httproutefilter import HTTPRouteFilter, HTTPRouteFilterSpec
from edgefast.resources.edge.ratelimitfilter import RateLimitFilter, RateLimitFilterSpec
from edgefast.resources.loaded import Path, render_path
from edgefast.resources.model.closed import Closed
from edgefast.resources.rules.rule import Violation

__all__ = ["close_rate_limit_filter", "close_route_filter"]


def close_route_filter(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, _: Collection[Path] = ()
) -> HTTPRouteFilter:
    """Return the closed HTTPRouteFilter of an object."""
    meta = read_meta(raw.get("metadata"), ref)
    return HTTPRouteFilter(metadata=meta, spec=HTTPRouteFilterSpec(), closed=_closed(first))


def close_rate_limit_filter(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, _: Collection[Path] = ()
) -> RateLimitFilter:
    """Return the closed RateLimitFilter of an object."""
    meta = read_meta(raw.get("metadata"), ref)
    return RateLimitFilter(
        metadata=meta, spec=RateLimitFilterSpec(type="Global"), closed=_closed(first)
    )


def _closed(first: Violation) -> Closed:
    return Closed(render_path(first.path), f"{first.reason} {first.message}")
