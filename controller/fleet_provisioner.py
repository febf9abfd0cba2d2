"""FleetProvisioner: passes fleets from the dispatch to the applier, with the client certificates of the fleets.

In: fleets of a translation, the placement, the leader.
Out: the desired manifests, the observed states of fleets. A new leader first reads the existing
client certificates of fleets, so that a change of leaders renews none.
Must never: apply anything before that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import msgspec

from controller.certs.identity import split_key
from controller.certs.rotate import Rotation
from controller.fleets.apply import Applier
from controller.fleets.cutover import Kept, find_kept
from controller.fleets.fleet_owner import Owner, class_of, owner_of
from controller.fleets.inventory import Inventory
from controller.fleets.observe import FleetProblem, Observer
from controller.fleets.ownership import ObjectFacts
from controller.fleets.placement import Manifest, Placement
from controller.fleets.render_cache import RenderCache
from controller.kube.errors import ApiError
from controller.pipeline import Outcome
from edgefast import ir
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.snapshot import Key
from edgefast.translate.settings import FleetState

__all__ = ["FleetProvisioner"]

log = logging.getLogger(__name__)

_MERGED = f"{EDGE_GROUP}/owning-gatewayclass"  # a label that merged fleets have


class FleetProvisioner:
    """Applies the fleets' manifests and gives fleets their client certificates."""

    def __init__(
        self,
        holdings: Inventory,
        applier: Applier,
        observer: Observer,
        rotation: Rotation,
        placement: Callable[[str], Placement],
        *,
        certificates: bool,
    ) -> None:
        """`placement` is given the authorities' PEM; `certificates`: fleets show client certificates, not tokens."""
        self._inventory = holdings
        self._applier = applier
        self._observer = observer
        self._rotation = rotation
        self._placement = placement
        self._renderer = RenderCache(rotation.client_secret if certificates else None)
        self._certificates = certificates
        self._wanted: tuple[ir.Infra, ...] | None = None
        self._kept: frozenset[str] = frozenset()
        self._let_go: dict[str, str] = {}  # as in Kept, until the successor is up
        self._served: dict[
            str, tuple[Key, ...]
        ] = {}  # by merged fleet, as long as there is something of it
        self.adopted = False  # may apply
        #: Gives what is known of objects besides themselves; `made_for` and `served` are seen to here.
        self.sight: Callable[[], ObjectFacts] = ObjectFacts

    def render(self, fleets: Iterable[ir.Infra]) -> Mapping[str, Sequence[Manifest]]:
        """Return the manifests of each fleet by "namespace/name"."""
        self._wanted = tuple(fleets)
        self._note_served(self._wanted)
        return self._renderer.render(self._wanted, self._placement(self._rotation.bundle))

    def want(self, fleets: Mapping[str, Sequence[Manifest]], keep: Iterable[str]) -> None:
        """Hand the manifests over."""
        self._kept = frozenset(keep)
        self._rotation.forget(map(split_key, {*fleets, *self._kept}))
        self._applier.want(fleets, self._kept)

    def render_again(self) -> None:
        """Certificates or authorities are others now."""
        if self._wanted is not None:
            self.want(self.render(self._wanted), self._kept)

    async def adopt(self) -> None:
        """Take over what fleets have: this replica leads from now on."""
        try:
            if self._certificates:
                await self._rotation.adopt(map(split_key, sorted(self._inventory.fleets())))
        except ApiError as error:
            # New certificates do as well: proxies read them when they connect again.
            log.warning("certificates of fleets cannot be read and are created again: %s", error)
        self.render_again()
        self.adopted = True
        self._applier.wake()

    def states(self) -> Sequence[FleetState]:
        """Return what is seen of the fleets."""
        return self._observer.states()

    def fleet_problem(self, fleet: str) -> FleetProblem:
        """Return what keeps proxies of a fleet from taking traffic."""
        return self._observer.fleet_problem_of(fleet)

    def kept(self, outcome: Outcome, serving: Callable[[str, str], Set[str]]) -> Kept:
        """Return the fleets that exist, are in no outcome, and have to go on serving; `serving`: see find_kept."""
        wanted = {f"{one.namespace}/{one.name}" for one in outcome.translation.infra}
        rest = self._inventory.fleets() - wanted
        found = Kept()
        if rest:
            owners = {fleet: owner for fleet in rest if (owner := self._owner(fleet)) is not None}
            view = msgspec.structs.replace(
                self.sight(), made_for=self._made_for, served=lambda one: self._served.get(one, ())
            )
            found = find_kept(outcome, owners, self._observer.state_of, serving, view)
        message = {**self._let_go, **found.let_go}
        self._let_go = {
            one: message[one] for one in message if one in wanted and not self._is_up(one)
        }
        return msgspec.structs.replace(found, let_go=self._let_go)

    def _is_up(self, fleet: str) -> bool:
        state = self._observer.state_of(fleet)
        return state is not None and bool(state.addresses and state.ready)

    def _note_served(self, fleets: Iterable[ir.Infra]) -> None:
        """Remember whom merged fleets are for: their labels name the class alone, which a Gateway may leave."""
        there = self._inventory.fleets()
        self._served = {fleet: one for fleet, one in self._served.items() if fleet in there}
        for one in fleets:
            if any(label == _MERGED for label, _ in one.selector):
                keys = (gateway.partition("/") for gateway in one.gateways)
                self._served[f"{one.namespace}/{one.name}"] = tuple((a, b) for a, _, b in keys)

    def _made_for(self, fleet: str) -> str:
        objects = self._inventory.objects_of(fleet).values()
        return class_of(held.live for held in objects if held.ours)

    def _owner(self, fleet: str) -> Owner | None:
        for held in self._inventory.objects_of(fleet).values():
            if held.ours:
                return owner_of(held.live["metadata"].get("labels") or {})
        return None
