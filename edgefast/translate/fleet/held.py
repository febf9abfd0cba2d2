"""Held places: hostnames of listeners that are not served, kept so that no broader listener of the port takes their requests.

In: the drafts of one fleet, conflicts marked. Out: `held_by` on each listener that is refused, conflicts, has nothing to show in a
handshake, or is of an object that is: the listener from which it has what belongs to the port. It goes to the data plane
without routes and without certificates: its requests answer 404, its handshakes end. Nothing is held where nobody serves the port
(connections are refused there), where somebody serves the very hostname, or for listeners without one, whose place is what others leave.
Source: Gateway API Listener.hostname ("the most specific match MUST be used").
Must never: bring a listener into service, or take a place from one that is served.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.resources.rules.hostname import check_hostname
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listener import ListenerDraft
from edgefast.translate.match.hostname import ANY

__all__ = ["hold_places"]

#: Protocols in which nobody says a host's name: the API ignores a hostname there.
_NAMELESS = frozenset({"TCP", "UDP"})


def hold_places(members: Iterable[GatewayDraft]) -> None:
    """Mark the listeners whose places are held; `members` are all of a fleet, accepted or not, oldest first."""
    first: dict[int, ListenerDraft] = {}
    taken: set[tuple[int, str]] = set()
    left: list[ListenerDraft] = []
    for draft in members:
        for one in draft.listeners:
            if draft.accepted and one.placed:
                first.setdefault(one.port, one)
                taken.add((one.port, one.hostname))
            elif one.hostname != ANY and _could_be_served(one):
                left.append(one)
    for one in left:
        neighbour = first.get(one.port)
        if neighbour is not None and (one.port, one.hostname) not in taken:
            one.held_by = neighbour
            taken.add((one.port, one.hostname))


def _could_be_served(one: ListenerDraft) -> bool:
    """Tell whether a sound listener might have this name: a mistake takes nothing from others that nothing sound could."""
    return one.spec.protocol not in _NAMELESS and not check_hostname(one.hostname)
