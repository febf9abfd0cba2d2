"""Reserved hostnames: of listeners that are not served; no broader listener of the port takes their requests.

`reserves_hostname` is the only rule for this. merge.py uses it for later listeners with the same
hostname, `reserve_hostnames` for broader ones. In TCP and UDP clients send no name, so the port is
reserved: `reserves_port`, for later listeners.

In: the drafts of one fleet, conflicts marked.
Out: `held_by` on each listener that is refused, conflicts, has no certificate for a handshake, or
is of an object with such a mistake. It names the listener that provides the settings of the port.
The data plane gets such a listener without routes and certificates: its requests answer 404, its
handshakes end. Nothing is reserved where no listener serves the port (connections are refused
there) or where another one serves the same hostname. A listener without a hostname also reserves
nothing: it takes what others leave.
Source: Gateway API Listener.hostname ("the most specific match MUST be used").
Must never: bring a listener into service, or take a hostname from one that is served.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.validation.hostname import check_hostname
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listener import ListenerDraft, PortKey
from edgefast.translate.match.hostname import ANY

__all__ = ["reserve_hostnames", "reserves_hostname", "reserves_port"]


def reserves_port(one: ListenerDraft) -> bool:
    """Tell whether a listener that is not served keeps its port from those after it; one that lost it before has none to keep."""
    return one.alone and not one.lost and not one.unbound


def reserves_hostname(one: ListenerDraft, *, from_equals: bool = False) -> bool:
    """Tell whether a listener keeps its hostname while it is not served: one that a sound listener of it could have.

    A mistake takes nothing from others that nothing sound could. `from_equals`: also from those after it that have the very
    hostname; one that lost it to somebody before it has nothing to keep there.
    """
    if one.unbound or one.hostname == ANY or one.alone or check_hostname(one.hostname):
        return False
    return not (from_equals and one.lost)


def reserve_hostnames(members: Iterable[GatewayDraft]) -> None:
    """Mark the listeners whose places are held; `members` are all of a fleet, accepted or not, oldest first."""
    first: dict[PortKey, ListenerDraft] = {}
    served: set[tuple[PortKey, str]] = set()
    held: set[tuple[PortKey, str]] = set()
    left: list[ListenerDraft] = []
    for draft in members:
        for one in draft.listeners:
            if draft.accepted and one.placed:
                first.setdefault(one.place, one)
                served.add((one.place, one.hostname))
            elif reserves_hostname(one) or reserves_port(one):
                left.append(one)
    for one in left:
        neighbour, place = first.get(one.place), (one.place, one.hostname)
        # Of a port that somebody has alone there is nothing to hold beside him.
        if neighbour is None or one.alone or neighbour.alone or place in served:
            one.fate = "dark" if neighbour is None else "taken"
            continue
        one.fate = "kept"
        if place not in held:
            one.held_by = neighbour
            held.add(place)
