"""Cutover: the fleets that continue to serve although the translation no longer wants them.

In: an outcome, the owners of the other fleets (their labels), the observed states of fleets, the
pods that serve each table.
Out: the fleets to leave unchanged, and the messages about them. Two kinds exist. The first belongs
to a temporarily refused Gateway, because a typing error must not remove a load balancer. The second
belongs to a Gateway that moves to another fleet (its class changed merging, or the deployment mode
changed). It stays until the new fleet accepts requests with this Gateway's ports and routes.
Source: spec section 1 (deployment modes).
Must never: keep a fleet without any existing Gateway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from functools import partial

import msgspec

from controller.fleets.fleet_owner import Owner
from controller.fleets.ownership import ObjectFacts, Ownership, UnownedFleet, find_ownership
from controller.pipeline import Outcome
from controller.status.readiness import name_some
from edgefast import ir
from edgefast.netaddr import read_address
from edgefast.translate.fleet.fleet import label_value
from edgefast.translate.settings import FleetState

__all__ = ["Kept", "find_kept", "find_lack", "find_shared"]


class Kept(msgspec.Struct, frozen=True):
    """Which fleets stay, and what to tell of it at the fleets that come after them, all as "namespace/name"."""

    fleets: frozenset[str] = frozenset()
    waiting: Mapping[str, tuple[str, ...]] = {}  # what a successor lacks still
    let_go: Mapping[str, str] = {}  # why one was not waited for
    claims: Mapping[
        str, Ownership
    ] = {}  # of those that nobody answers for, by themselves: why they stay


def find_kept(
    outcome: Outcome,
    owners: Mapping[str, Owner],
    state_of: Callable[[str], FleetState | None],
    serving: Callable[[str, str], Set[str]],
    view: ObjectFacts = ObjectFacts(),  # noqa: B008 - frozen
) -> Kept:
    """Return which of `owners` stay: fleets ("namespace/name") that are there and not wanted, with their owners.

    `serving` tells the pods of a fleet that serve a version of its table. `view` is for those of whose owners translation
    knows nothing, because they are gone or because this controller does not answer for them (ownership.py).
    The class of a Gateway is the one that it has now; whom a merged fleet was for that nobody's class names any more, `view` may
    know (controller/fleets/migration.py sees to a Gateway whose former fleet others have still).
    """
    wanted = {f"{infra.namespace}/{infra.name}": infra for infra in outcome.translation.infra}
    heirs = _find_heirs(outcome)
    kept: set[str] = set()
    waiting: dict[str, list[str]] = {}
    let_go: dict[str, tuple[str, str]] = {}
    claims: dict[str, Ownership] = {}
    place_of = {gateway: key for key, infra in wanted.items() for gateway in infra.gateways}
    world = outcome.translation.memo.world
    for fleet, owner in owners.items():
        before = state_of(fleet)
        successors = heirs.get(owner)
        if successors is None:
            # All Gateways of a merged class have left it.
            names = ("/".join(key) for key in view.served(fleet))
            successors = {place_of[name] for name in names if name in place_of}
        for successor in successors:
            if before is None:
                break  # there is nothing of it
            infra = wanted[successor]
            if address := find_shared(infra.service.addresses, before.addresses):
                let_go[successor] = (fleet, address)
                continue
            nodes = partial(serving, successor, outcome.shards[infra.name].version)
            if missing := find_lack(infra, state_of(successor), nodes, before):
                kept.add(fleet)
                message = (
                    f"fleet {fleet} serves its last table until this one takes over: {missing}"
                )
                waiting.setdefault(successor, []).append(message)
        if owner in heirs and not heirs[owner]:
            kept.add(fleet)  # its Gateways are refused for now
        if owner not in heirs:
            at = before.addresses if before else ()
            unwanted = UnownedFleet(fleet, owner, at)
            claim = find_ownership(unwanted, world.snapshot, world.settings, view)
            if claim is not None:
                claims[fleet] = claim
    return Kept(
        frozenset(kept | claims.keys()),
        {successor: tuple(sorted(message)) for successor, message in waiting.items()},
        {successor: _describe_release(*one, one[0] in kept) for successor, one in let_go.items()},
        claims,
    )


def _find_heirs(outcome: Outcome) -> dict[Owner, set[str]]:
    """Return the fleets that serve the Gateways of each owner that there is."""
    translation = outcome.translation
    heir_of = {gateway: infra for infra in translation.infra for gateway in infra.gateways}
    snapshot = translation.memo.world.snapshot
    heirs: dict[Owner, set[str]] = {}
    made = (one.key for one in translation.memo.front.gateways if one.made)  # they have no status
    for key in (*translation.statuses.gateways, *made):
        namespace, name = key
        class_name = label_value(snapshot.gateways[key].spec.gateway_class_name)
        infra = heir_of.get(f"{namespace}/{name}")
        for owner in (
            Owner(namespace, label_value(name)),
            Owner(namespace, "", class_name),
            Owner("", "", class_name),
        ):
            found = heirs.setdefault(owner, set())
            if infra is not None:
                found.add(f"{infra.namespace}/{infra.name}")
    return heirs


def find_shared(wanted: Iterable[str], there: Iterable[str]) -> str:
    """Return an address that is asked for and that another Service has: it can be at one alone. "" for none."""
    has = {_plain(one) for one in there}
    return next((one for one in wanted if _plain(one) in has), "")


def _plain(address: str) -> str:
    return str(read_address(address) or address)


def _describe_release(fleet: str, address: str, stays: bool) -> str:
    if stays:
        return f"only one Service can have address {address}, and fleet {fleet} has it until it is removed"
    return f"fleet {fleet} was removed before this one took over because only one Service can have address {address}"


def _name_ports(ports: Iterable[tuple[ir.Transport, int]]) -> str:
    """Return the ports in words; one of TCP is its number."""
    ordered = sorted(ports, key=lambda one: (one[1], one[0]))
    return ", ".join(f"{port}/UDP" if spoken == "UDP" else str(port) for spoken, port in ordered)


def find_lack(
    infra: ir.Infra,
    successor: FleetState | None,
    serving: Callable[[], Set[str]],
    before: FleetState,
) -> str:
    """Return what keeps a fleet from taking the requests that the one before it takes, "" when nothing does.

    It may have been up for long: what it is to be now counts, on its Service and in all of its ready pods.
    """
    if infra.replicas == 0:
        return ""
    if successor is None:
        return "its objects do not exist"
    if successor.failure:
        return "it could not be applied"
    if lacking := {(one.protocol, one.port) for one in infra.ports} - set(successor.ports):
        return f"its Service lacks port {_name_ports(lacking)}"
    # Some pods may never be, as those of a DaemonSet on nodes that are dead: as many as before are enough.
    needed = max(1, min(successor.replicas, len(before.ready)))
    if len(successor.ready) < needed:
        return f"{len(successor.ready)} of {needed} proxies are ready"
    if before.addresses and not successor.addresses:
        return "it has no address"
    if behind := sorted(set(successor.ready) - serving()):
        return f"{name_some(behind)} do not serve its table"
    return ""
