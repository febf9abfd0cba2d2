"""StaleStatuses: the final status of objects for which this controller is no longer responsible.

In: the existing objects, the desired statuses, the reasons of kept fleets, and the owners of
present statuses.
Out: for each object that still has a status of this controller, its final status, and the entries
of a former controllerName to remove. An object that left (its namespace lost a label, its class or
the controllerName changed) must not keep Accepted and Programmed. The next controller finds it like
a new object: Unknown, Pending.
Source: Gateway API, defaults of `status.conditions`.
Must never: change an object to which another controller has written since.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from controller.fleets.ownership import Ownership, explain_gateway
from controller.status.shape import Json
from edgefast.api.snapshot import Key, Snapshot
from edgefast.netaddr import read_address
from edgefast.translate.conditions.status import Statuses
from edgefast.translate.settings import Settings

__all__ = ["NONE", "StaleStatuses", "Held", "find_stale_statuses", "mark_unknown"]

#: (kind, namespace, name)
Ref = tuple[str, str, str]


class OwnsStatus(Protocol):
    """Tells which controller wrote the present status of an object."""

    def __call__(self, ref: Ref, *, held: bool = False) -> bool:
        """Return whether it is ours; `held`: a fleet of ours serves it, so that it was nobody else who wrote it."""


class Held(msgspec.Struct, frozen=True):
    """A fleet that stays although nobody answers for it."""

    fleet: str  # "namespace/name"
    claim: Ownership
    addresses: tuple[str, ...] = ()


class StaleStatuses(msgspec.Struct, frozen=True):
    """What to say."""

    statuses: Mapping[Ref, Json] = {}
    #: Parents, as (kind, namespace, name), whose entries in routes and policies go, by the controllerName they are of.
    former: Mapping[str, frozenset[Ref]] = {}

    def is_stale(self, entry: Json, ref: Json, namespace: str) -> bool:
        """Tell whether an entry with this parentRef or ancestorRef, in an object of `namespace`, is to go."""
        parents = self.former.get(entry.get("controllerName", ""))
        if not parents:
            return False
        name = (ref.get("kind", "Gateway"), ref.get("namespace") or namespace, ref.get("name", ""))
        return name in parents


NONE = StaleStatuses()


def find_stale_statuses(
    snapshot: Snapshot,
    settings: Settings,
    statuses: Statuses,
    held: Collection[Held],
    is_ours: OwnsStatus,
) -> StaleStatuses:
    """Return the final statuses; `is_ours` tells whether this controller wrote the present status."""
    found: dict[Ref, Json] = {}
    former: dict[str, set[Ref]] = {}
    fleets: dict[Key, list[Held]] = {}
    for one in held:
        for key in one.claim.gateways:
            fleets.setdefault(key, []).append(one)
    for key in _left(snapshot.gateways, statuses.gateways):
        ref = ("Gateway", *key)
        if not is_ours(ref, held=key in fleets):
            continue
        gateway = snapshot.gateways[key]
        why = explain_gateway(key, gateway, snapshot, settings)
        serving = fleets.get(key, [])
        found[ref] = _of_gateway(why, gateway.metadata.generation, serving)
        gateway_class = snapshot.gateway_classes.get(("", gateway.spec.gateway_class_name))
        if gateway_class and gateway_class.spec.controller_name != settings.controller_name:
            former.setdefault(gateway_class.spec.controller_name, set()).add(ref)
    for key in _left(snapshot.listener_sets, statuses.listener_sets):
        ref = ("ListenerSet", *key)
        listener_set = snapshot.listener_sets[key]
        parent = listener_set.spec.parent_ref
        at = ("Gateway", parent.namespace or key[0], parent.name)
        if not is_ours(ref, held=at in found):
            continue
        message = f"Gateway {at[1]}/{at[2]} is not served by this controller"
        found[ref] = _status(message, listener_set.metadata.generation, listeners=[])
        for parents in former.values():
            if at in parents:
                parents.add(ref)
    classes = {snapshot.gateways[key].spec.gateway_class_name for key in fleets}
    for key in _left(snapshot.gateway_classes, statuses.gateway_classes):
        ref = ("GatewayClass", *key)
        if is_ours(ref, held=key[1] in classes):
            left = snapshot.gateway_classes[key]
            other = left.spec.controller_name
            message = f"its controllerName is {other}, and this controller is {settings.controller_name} now"
            accepted = _condition("Accepted", message, left.metadata.generation)
            found[ref] = {"conditions": [accepted], "supportedFeatures": []}
    return StaleStatuses(found, {name: frozenset(refs) for name, refs in former.items()})


def _left(there: Mapping[Key, Any], wanted: Mapping[Key, Any]) -> list[Key]:
    """Return the objects without a status; what is wanted is there, so that equal numbers say there are none."""
    return [] if len(there) == len(wanted) else [key for key in there if key not in wanted]


def _of_gateway(why: str, generation: int, serving: list[Held]) -> Json:
    if serving:
        names = ", ".join(sorted(one.fleet for one in serving))
        pods = next((one.claim.pods for one in serving if not one.claim.table), "")
        message = f"{why}; fleet {names} serves its last table{pods}"
    else:
        message = f"{why}; this controller does not serve it"
    addresses = [
        {"type": "IPAddress" if read_address(one) else "Hostname", "value": one}
        for one in dict.fromkeys(at for fleet in serving for at in fleet.addresses)
    ]
    return _status(message, generation, addresses=addresses, listeners=[])


def mark_unknown(message: str, generation: int, types: Sequence[str], **fields: Any) -> Json:
    """Return a status as the API server makes new ones, with what there is to say."""
    return {"conditions": [_condition(type_, message, generation) for type_ in types], **fields}


def _status(message: str, generation: int, **fields: Any) -> Json:
    return mark_unknown(message, generation, ("Accepted", "Programmed"), **fields)


def _condition(type_: str, message: str, generation: int) -> Json:
    return {
        "type": type_,
        "status": "Unknown",
        "reason": "Pending",
        "message": message,
        "observedGeneration": generation,
    }
