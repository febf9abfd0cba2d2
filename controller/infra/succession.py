"""Succession: which fleets go on serving although translation wants them no more.

In: an outcome, whose the other fleets are (their labels), what is seen of fleets, which pods serve which table. Out: the
fleets to leave as they are. Two kinds: of a Gateway that is refused for now, since a slip of the pen must not cost a load
balancer; and of a Gateway that another fleet serves from now on (its class merges or does so no more, the deployment mode is
another one), until that one takes requests, with this Gateway's ports and routes. Source: spec section 1 (deployment modes).
Must never: keep a fleet whose Gateways are all gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import partial

import msgspec

from controller.pipeline import Outcome
from edgefast import ir
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
    serving: Callable[[str, str], Set[str]],
) -> set[str]:
    """Return which of `owners` stay: fleets ("namespace/name") that are there and not wanted, with their owners.

    `serving` tells the pods of a fleet that serve a version of its table.
    The class of a Gateway is the one that it has now: the merged fleet of a class that it has left is not kept for it.
    """
    translation = outcome.translation
    heir_of = {gateway: infra for infra in translation.infra for gateway in infra.gateways}
    wanted = {f"{infra.namespace}/{infra.name}": infra for infra in translation.infra}
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

    def is_awaited(heir: str, before: FleetState) -> bool:
        infra = wanted[heir]
        nodes = partial(serving, heir, outcome.shards[infra.name].version)
        return not _has_taken_over(infra, state_of(heir), nodes, before)

    return {
        fleet
        for fleet, owner in owners.items()
        if owner in heirs and _is_needed(state_of(fleet), heirs[owner], is_awaited)
    }


def _is_needed(
    state: FleetState | None, heirs: Set[str], is_awaited: Callable[[str, FleetState], bool]
) -> bool:
    """Tell whether somebody has nothing else: no `heirs` at all, or one that does not take requests yet."""
    if not heirs:
        return True
    # One without a ready pod is waited with as well: for a moment, that may happen to any fleet.
    return state is not None and any(heir and is_awaited(heir, state) for heir in heirs)


def _has_taken_over(
    infra: ir.Infra,
    heir: FleetState | None,
    serving: Callable[[], Set[str]],
    before: FleetState,
) -> bool:
    """Tell whether a fleet takes the requests that the one before it takes, as far as anybody can see.

    It may have been up for long: what it is to be now counts, on its Service and in all of its ready pods.
    """
    if infra.replicas == 0:
        return True
    if heir is None or heir.failure or not set(heir.ports).issuperset(p.port for p in infra.ports):
        return False
    # Some pods may never be, as those of a DaemonSet on nodes that are dead: as many as before are enough.
    if len(heir.ready) < max(1, min(heir.replicas, len(before.ready))):
        return False
    if before.addresses and not heir.addresses:
        return False
    return serving() >= set(heir.ready)
