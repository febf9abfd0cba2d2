"""Draft: one rule of a host before it is part of a route.

In: what rules.py finds for a location. Out: `Draft`; emit.py makes a rule of it, and routes with the access rules of its `guard`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from edgefast.api.edge.httproutefilter import HTTPRouteFilterSpec
from edgefast.api.gateway.httproute import HTTPBackendRef, HTTPRouteMatch
from edgefast.api.gateway.httproutefilter import HTTPRouteFilter
from edgefast.api.model.origin import RuleOrigin
from edgefast.translate.ingress.configmap import Globals
from edgefast.translate.ingress.error_pages import Page
from edgefast.translate.ingress.servers import Source

__all__ = ["Draft", "Guard", "guard_of"]

#: Which access rules a rule has: none, the lists of addresses, or all.
Guard = Literal["open", "lists", "all"]


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a host at one port."""

    source: Source | None  # None: the default backend of all Ingresses
    origin: RuleOrigin
    match: HTTPRouteMatch
    guard: Guard = "open"
    filters: tuple[HTTPRouteFilter, ...] = ()
    specs: tuple[HTTPRouteFilterSpec, ...] = ()  # filters of edgefast, as objects of their own
    backends: tuple[HTTPBackendRef, ...] = ()
    limited: bool = False  # the limits of its Ingress count its requests
    page: Page | None = None  # in place of its errors


def guard_of(path: str, settings: Globals) -> Guard:
    """Return the access rules of a path: no-auth-locations have the lists of addresses alone."""
    if any(path.startswith(one) for one in settings.no_auth):
        return "lists"
    return "all"
