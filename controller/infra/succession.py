"""Succession: which fleets go on serving although translation wants them no more.

In: an outcome, whose the other fleets are (their labels), what is seen of fleets. Out: the fleets to leave as they are. Two
kinds: of a Gateway that is refused for now, since a slip of the pen must not cost a load balancer; and of a Gateway that
another fleet serves from now on (its class merges or does so no more, the deployment mode is another one), until that one
takes requests. Source: spec section 1 (deployment modes). Must never: keep a fleet whose Gateways are all gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

import msgspec

from controller.pipeline import Outcome
from edgefast.resources.kinds import EDGE_GROUP
from edgefast.translate.fleet import label_value
from edgefast.translate.settings import FleetState

__all__ = ["NOBODY", "Owner", "find_kept", "owner_of"]


class Owner(msgspec.Struct, frozen=True):
    """Whose a fleet is, as its labels say; "" for what they leave open. All of it "": nobody's."""

    namespace: str = ""
    gateway: str = ""
    gateway_class: str = ""


NOBODY = Owner()


def owner_of(labels: Mapping[str, str]) -> Owner:
    """Read the owner from the labels of a fleet's object."""
    return Owner(
        labels.get(f"{EDGE_GROUP}/owning-gateway-namespace", ""),
        labels.get(f"{EDGE_GROUP}/owning-gateway-name", ""),
        labels.get(f"{EDGE_GROUP}/owning-gatewayclass", ""),
    )


def find_kept(
    outcome: Outcome,
    owners: Mapping[str, Owner],
    state_of: Callable[[str], FleetState | None],
) -> set[str]:
    """Return which of `owners` stay: fleets ("namespace/name") that are there and not wanted, with their owners.

    The class of a Gateway is the one that it has now: the merged fleet of a class that it has left is not kept for it.
    """
    translation = outcome.translation
    heir_of = {gateway: infra for infra in translation.infra for gateway in infra.gateways}
    snapshot = translation.memo.world.snapshot
    heirs: dict[Owner, set[str]] = {}
    for key in translation.statuses.gateways:
        namespace, name = key
        class_name = label_value(snapshot.gateways[key].spec.gateway_class_name)
        infra = heir_of.get(f"{namespace}/{name}")
        for owner in (
            Owner(namespace, label_value(name)),
            Owner(namespace, "", class_name),
            Owner("", "", class_name),
        ):
            found = heirs.setdefault(owner, set())
            # An address that is asked for can be at one Service alone: its first holder has to let go of it.
            if infra is not None:
                found.add("" if infra.service.addresses else f"{infra.namespace}/{infra.name}")
    return {
        fleet
        for fleet, owner in owners.items()
        if owner in heirs and _is_needed(state_of(fleet), heirs[owner], state_of)
    }


def _is_needed(
    state: FleetState | None, heirs: Set[str], state_of: Callable[[str], FleetState | None]
) -> bool:
    """Tell whether somebody has nothing else: no `heirs` at all, or one that does not take requests yet."""
    if not heirs:
        return True
    # One without a ready pod is waited with as well: for a moment, that may happen to any fleet.
    return state is not None and any(
        heir and not _has_taken_over(state_of(heir), state) for heir in heirs
    )


def _has_taken_over(heir: FleetState | None, before: FleetState) -> bool:
    """Tell whether a fleet takes the requests that the one before it takes, as far as anybody can see."""
    if heir is None or not heir.ready or len(heir.ready) < heir.replicas:
        return False
    return bool(heir.addresses) or not before.addresses
