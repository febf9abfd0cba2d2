"""Canary: which canary an upstream has, and whether it takes a request."""

from __future__ import annotations

import re
from http.cookies import CookieError, SimpleCookie

from ingress.message import Request
from ingress.naive.annotations import Annotations
from ingress.naive.hosts import (
    CATCH_ALL,
    Hosts,
    Location,
    Upstream,
    default_upstream,
    paths_of,
    upstream_of,
)


class UndecidedShare(Exception):
    """A weight between nothing and everything decides by chance."""


def canaries_of(hosts: Hosts) -> dict[Upstream, Upstream]:
    """Primary upstream -> canary upstream. One canary per upstream, the oldest, for every location of any host with that primary
    Service. If one of its paths matches nothing on an existing host (or only the default backend), the whole canary is void."""
    found: dict[Upstream, Upstream] = {}
    void: set[Upstream] = set()
    if not hosts.primaries:
        return {}
    for one in hosts.canaries:
        _add_catch_all(hosts, one, found, void)
        for name, path in paths_of(one.ingress):
            canary = upstream_of(one.ingress, path.get("backend"))
            host = hosts.hosts.get(name or CATCH_ALL)
            if canary is None or canary in void or host is None:
                continue
            primaries, is_primary = _primaries(hosts, host.locations, path, canary)
            for primary in primaries:
                found.setdefault(primary, canary)
            if not primaries and not is_primary:
                void.add(canary)
    return {primary: canary for primary, canary in found.items() if canary not in void}


def _add_catch_all(
    hosts: Hosts, one: Annotations, found: dict[Upstream, Upstream], void: set[Upstream]
) -> None:
    """A canary with `spec.defaultBackend` applies to the upstreams of all locations of the catch-all, whatever their paths."""
    canary = default_upstream(one.ingress)
    if canary is None or canary in void:
        return
    merged = False
    for location in hosts.hosts[CATCH_ALL].locations:
        if location.upstream == canary:
            return
        if location.upstream and hosts.policies.get(location.upstream) is None:
            if location.upstream not in void:
                found.setdefault(location.upstream, canary)
                merged = True
    if not merged:
        void.add(canary)


def _primaries(
    hosts: Hosts, locations: list[Location], path: dict[str, str], canary: Upstream
) -> tuple[list[Upstream], bool]:
    """Upstreams that a canary's path matches: same path and pathType. A Service that is a primary itself merges into nothing."""
    wanted = path.get("path") or "/", path.get("pathType") == "Exact"
    matched = []
    for one in locations:
        if one.upstream == canary:
            return matched, True
        if one.upstream is None or hosts.policies.get(one.upstream) is not None:
            continue
        if (one.path, one.exact) == wanted:
            matched.append(one.upstream)
    return matched, False


def takes(policy: Annotations, request: Request) -> bool:
    """Order: header; cookie `always`/`never`; weight. (Affinity comes first, and needs a cookie that the proxy made.)"""
    decided = _by_header(policy, request)
    if decided is None:
        decided = _by_cookie(policy, request)
    if decided is None:
        decided = _by_weight(policy)
    return decided


def _by_header(policy: Annotations, request: Request) -> bool | None:
    """Exact value, else PCRE anywhere, else `always`/`never`: a header-value switches the pattern off, either switches
    `always`/`never` off; a value that does not match falls through."""
    name = policy.text("canary-by-header")
    values = [value for key, value in request.headers if name and key.lower() == name.lower()]
    if not values:
        return None
    given = ", ".join(values)
    value, pattern = policy.text("canary-by-header-value"), policy.text("canary-by-header-pattern")
    if value:
        return True if given == value else None
    if pattern:
        found = re.search(pattern.encode(), given.encode("latin-1"))
        return True if found else None
    return {"always": True, "never": False}.get(given)


def _by_cookie(policy: Annotations, request: Request) -> bool | None:
    name = policy.text("canary-by-cookie")
    cookie = SimpleCookie()
    try:
        cookie.load(request.value("cookie"))
    except CookieError:
        return None
    return {"always": True, "never": False}.get(cookie[name].value) if name in cookie else None


def _by_weight(policy: Annotations) -> bool:
    """A weight-total below 100 counts as 100."""
    weight = policy.number("canary-weight")
    total = max(policy.number("canary-weight-total", 100), 100)
    if weight <= 0:
        return False
    if weight >= total:
        return True
    raise UndecidedShare
