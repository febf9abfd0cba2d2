"""Members: which Gateways and listeners are in which fleet.

In: the finished Gateways of a frontend. Out: a `FleetMembers`; the previous one as long as the Gateways are the same objects. A change of a
route or an endpoint therefore costs no look at the listeners.
Must never: depend on a route.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from edgefast import ir
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listener import ListenerDraft

Placed = tuple[GatewayDraft, ListenerDraft]


class FleetMembers(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All fleets; each mapping is by the name of the fleet, except `fleet_of`."""

    drafts: Sequence[GatewayDraft] = ()
    members: Mapping[str, Sequence[GatewayDraft]] = {}  # accepted Gateways
    held: Mapping[str, Sequence[ListenerDraft]] = {}  # listeners in the place of another one
    placed: Mapping[str, Sequence[Placed]] = {}  # listeners in the table
    filters: Mapping[str, frozenset[str]] = {}  # units that listeners name
    secrets: Mapping[str, Sequence[ir.Secret]] = {}  # certificates of listeners
    fleet_of: Mapping[str, str] = {}  # listener -> fleet


def find_members(drafts: Sequence[GatewayDraft], previous: FleetMembers) -> FleetMembers:
    """Return the members of all fleets."""
    if drafts is previous.drafts:
        return previous
    members: dict[str, list[GatewayDraft]] = {}
    held: dict[str, list[ListenerDraft]] = {}
    for draft in drafts:
        if found := [one for one in draft.listeners if one.held_by is not None]:
            held.setdefault(draft.fleet, []).extend(found)
        if draft.accepted:
            members.setdefault(draft.fleet, []).append(draft)
    placed = {
        name: [(draft, one) for draft in group for one in draft.listeners if one.placed]
        for name, group in members.items()
    }
    return FleetMembers(
        drafts=drafts,
        members=members,
        held=held,
        placed=placed,
        filters={
            name: frozenset(unit for _, one in found for unit in one.filters)
            for name, found in placed.items()
        },
        secrets={
            name: [secret for _, one in found if one.tls for secret in one.tls.secrets]
            for name, found in placed.items()
        },
        fleet_of={
            one.name: draft.fleet
            for group in members.values()
            for draft in group
            for one in draft.listeners
        },
    )
