"""Troubles of proxies, as problems: what they know to be wrong and a controller cannot see, such as a store that does not count.

In: what the nodes of fleets say (push/ack.py). Out: `Problem`s, each once for a fleet, with how many of its proxies say so, and
which fleet that is: a pod may be a tenant's. What another release says is left out; the proxy's own status has it. No I/O.
Must never: speak for a proxy that is not connected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from controller.pipeline import Outcome
from controller.push.ack import Ack
from controller.push.fleets import Fleets
from edgefast.problem import ObjectRef, Problem
from edgefast.resources.kinds import EDGE_GROUP
from edgefast.xds.troubles import Trouble

__all__ = [
    "FLEET_LIMIT",
    "describe_troubles",
    "find_key_troubles",
    "find_troubles",
    "list_troubles",
]

#: Troubles of one fleet that are told, those that most of its proxies have first: each proxy may word its own.
FLEET_LIMIT = 100


def find_troubles(fleets: Fleets) -> Iterator[Problem]:
    """Yield the problems that the proxies of all fleets have."""
    for fleet in sorted(fleets.names()):
        yield from describe_troubles(fleet, fleets.acks(fleet).values())


def find_key_troubles(fleets: Fleets, outcome: Outcome) -> tuple[tuple[ObjectRef, Problem], ...]:
    """Return, once for each policy and text, the key sets that proxies cannot fetch, of policies in the table of their fleet."""
    found: dict[tuple[ObjectRef, Problem], None] = {}
    for fleet in sorted(fleets.names()):
        told = {
            one
            for ack in fleets.acks(fleet).values()
            for one in (list_troubles(ack) if ack.connected else ())
            if one.reason == "KeysNotFetched"
        }
        names = _name_policies(outcome, fleet) if told else frozenset()
        for one in sorted(told)[:FLEET_LIMIT]:
            if f"security/{one.namespace}/{one.name}" in names:
                ref = ObjectRef(one.kind, one.namespace, one.name, EDGE_GROUP)
                found[ref, one.problem()] = None
    return tuple(found)


def _name_policies(outcome: Outcome, fleet: str) -> frozenset[str]:
    """Return the policies of a fleet's table, as their units name them."""
    name = fleet.rpartition("/")[2]
    table = next((one for one in outcome.translation.ir.fleets if one.name == name), None)
    units = table.policies if table is not None else ()
    return frozenset(one.name.partition("#")[0] for one in units)


def describe_troubles(fleet: str, acks: Collection[Ack]) -> Iterator[Problem]:
    """Yield the problems of one fleet ("namespace/name") by what is known of its nodes."""
    connected = [ack for ack in acks if ack.connected]
    found = Counter(one for ack in connected for one in list_troubles(ack))
    ordered = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    for trouble, proxies in ordered[:FLEET_LIMIT]:
        yield trouble.problem(f" (reported by {proxies} of {len(connected)} proxies of {fleet})")


def list_troubles(ack: Ack) -> tuple[Trouble, ...]:
    """Return what one node says that this release can tell."""
    return tuple(one for one in ack.troubles if one.known)
