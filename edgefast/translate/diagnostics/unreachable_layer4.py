"""Unreachable layer 4: hostnames of TLSRoutes that receive no connection, and which route receives them.

In: the Gateways' listeners, the layer 4 routes, the previous result.
Out: warnings for a route, by listener (condition RouteRulesShadowed). A hostname of a route loses
to another route with the same hostname, or to a more specific listener of its port. On a listener
with a hostname it also loses to a nearer hostname that has all of the listener's connections. A
route does not lose what it has by another of its hostnames.
Source: Gateway API TLSRouteSpec.hostnames, Listener.hostname ("the most specific match MUST be
used").
Must never: differ from a result without a previous one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from edgefast.api.model.route_name import RouteKey, kind_of, ref_of_key
from edgefast.diagnostics.problem import Problem
from edgefast.translate.diagnostics.listener_isolation import Owned, owner_of, placed_listeners
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.match.hostname import ANY, covering
from edgefast.translate.route.outcome import RouteOutcome
from edgefast.translate.virtual_host.layer4 import Streams
from edgefast.translate.virtual_host.virtual_host import Place

__all__ = ["Nearest", "find_nearest", "suspect_streams", "report_unreachable_streams"]

#: By listener with a hostname: names with a place there that include all of its connections, the nearest (who has them) first.
Nearest = Mapping[str, tuple[str, ...]]


def find_nearest(gateways: Iterable[GatewayDraft], streams: Streams) -> Nearest:
    """Return listeners of which several hostnames of routes include every connection."""
    found: dict[str, tuple[str, ...]] = {}
    if not streams.outcomes:
        return found
    for one in placed_listeners(gateways):
        if one.hostname != ANY:
            names = tuple(
                name for name in covering(one.hostname) if (one.name, name) in streams.outcomes
            )
            if len(names) > 1:
                found[one.name] = names
    return found


def suspect_streams(
    streams: Streams, nearest: Nearest, owned: Owned, old: tuple[Nearest, Owned]
) -> Iterator[RouteKey]:
    """Give the routes that may lose something else than before."""
    yield from streams.suspects
    old_nearest, old_owned = old
    if owned.wide != old_owned.wide:  # listeners have changed: who is within whom
        for outcome in streams.outcomes.values():
            yield from (part.key for part in outcome.parts)
        return
    for listener in nearest.keys() | old_nearest.keys():
        before, after = old_nearest.get(listener, ()), nearest.get(listener, ())
        if before == after and streams.touched.isdisjoint((listener, name) for name in after):
            continue
        for name in {*before, *after}:
            known = streams.outcomes.get((listener, name))
            yield from (part.key for part in known.parts) if known is not None else ()


def report_unreachable_streams(
    key: RouteKey, outcome: RouteOutcome, streams: Streams, nearest: Nearest, owned: Owned
) -> Iterator[tuple[str, Problem]]:
    """Give, by listener, what never comes to a route."""
    own = {(listener, name) for listener, name, _ in outcome.streams}
    named = kind_of(key) == "TLSRoute"
    for place in sorted(own):
        message = _describe_place(key, place, own, streams, nearest, owned)
        if message:
            path = "spec.hostnames" if named else "spec.parentRefs"
            yield place[0], Problem(ref_of_key(key), path, "Shadowed", message, severity="warning")


def _describe_place(
    key: RouteKey,
    place: Place,
    own: Set[Place],
    streams: Streams,
    nearest: Nearest,
    owned: Owned,
) -> str:
    """Say why nothing comes to a route at one of its places, "" when something does, or comes to it elsewhere."""
    listener, name = place
    owner = owner_of(place, owned.wide)
    if owner is not None:
        if (owner.listener, name) in own:
            return ""
        return f"connections to {name} never reach {listener}: listener {owner.listener} ({owner.hostname}) has the same port and a more specific hostname"
    winner = streams.outcomes[place].parts[0].key
    if winner != key:
        what = f"connections to {name}" if name != ANY else "what comes"
        return f"{what} on {listener}: {ref_of_key(winner)} takes precedence and gets all of them"
    names = nearest.get(listener, ())
    if name not in names[1:] or (listener, names[0]) in own:
        return ""
    nearer = ref_of_key(streams.outcomes[listener, names[0]].parts[0].key)
    return (
        f"no connection reaches {name} on {listener}: {nearer} matches all of them with {names[0]}"
    )
