"""Hostname: whether the hostnames of a listener and a route intersect.

In: lower-case names, "*.example.com" wildcards, or "*" for none given. Out: yes or no; which names
cover another. A wildcard matches one or more labels to its left and never the bare domain (Gateway
API, Listener.hostname).
Source: HTTPRouteSpec.hostnames and the conformance table of intersections.
Must never: compute the intersection as a new name; a virtual host keeps the route's own.
"""

from __future__ import annotations

from collections.abc import Iterator

#: What an absent hostname is called: every host.
ANY = "*"


def intersects(one: str, other: str) -> bool:
    """Tell whether some host matches both names."""
    if one == ANY or other == ANY or one == other:
        return True
    if one.startswith("*."):
        if other.startswith("*."):
            return one[1:].endswith(other[1:]) or other[1:].endswith(one[1:])
        return other.endswith(one[1:])
    return other.startswith("*.") and one.endswith(other[1:])


def matching_hostnames(listener: str, route: tuple[str, ...]) -> tuple[str, ...]:
    """Return the route's own hostnames that intersect the listener's, in order, each once."""
    if not route:
        return (ANY,)
    return tuple(dict.fromkeys(name for name in route if intersects(listener, name)))


def narrower(one: str, other: str) -> str:
    """Return what two names that intersect have in common: the more specific of them."""
    if one == ANY:
        return other
    if other == ANY or not one.startswith("*."):
        return one
    return other if not other.startswith("*.") or len(other) > len(one) else one


def covering(hostname: str) -> Iterator[str]:
    """Give the names whose hosts include all of a name's, the most specific first: itself, wildcards, "*"."""
    yield hostname
    if hostname == ANY:
        return
    rest = hostname.removeprefix("*.")
    while "." in rest:
        rest = rest.split(".", 1)[1]
        yield f"*.{rest}"
    yield ANY
