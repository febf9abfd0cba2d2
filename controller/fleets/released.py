"""ReleasedObjects: reports fleets and objects for which this controller is no longer responsible.

In: outcomes, fleets that stay although they are not wanted, the owners of present statuses.
Out: final statuses to the StatusTracker, a log line and an Event for each such fleet, once while
the state lasts. Operators must not discover by accident a serving fleet without a responsible
controller.
Must never: decide which fleets stay (fleets/ownership.py), or the content of a final status
(status/stale.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

import msgspec

from controller.fleets.cutover import Kept
from controller.fleets.ownership import Ownership
from controller.pipeline import Outcome
from controller.status.stale import Held, find_stale_statuses
from controller.status.tracker import Ref, StatusTracker
from edgefast.api.snapshot import Key
from edgefast.translate.settings import FleetState

__all__ = ["ReleasedObjects", "StatusOwner"]

log = logging.getLogger(__name__)


class StatusOwner(Protocol):
    """What present statuses say, and who said it."""

    def is_ours(self, ref: Ref, *, held: bool = False) -> bool:
        """Tell whether what the status of an object says is this controller's word; `held`: a fleet of ours serves it."""

    def saying(self, names: Collection[str]) -> Iterable[Ref]:
        """Return the routes and policies with an entry of one of these controllerNames."""


class ReleasedObjects:
    """Reports fleets and objects that this controller no longer handles."""

    def __init__(
        self,
        board: StatusTracker,
        spoken: StatusOwner | None = None,
        on_claim: Callable[[str, Ownership], None] = lambda fleet, claim: None,
        has_table: Callable[[str], bool] = lambda fleet: True,
    ) -> None:
        """`spoken` None: nothing has been said before. `on_claim`: told of a fleet ("namespace/name") and why it stays.

        `has_table`: tells whether a pod of a fleet can be given its last table.
        """
        self._tracker = board
        self._spoken = spoken
        self._on_claim = on_claim
        self._has_table = has_table
        self._claims: Mapping[str, Ownership] = {}
        self._reported: dict[str, Ownership] = {}
        self._gateways: frozenset[Key] = frozenset()

    def concerns(self, gateway: Key) -> bool:
        """Tell whether a word of somebody else's about a Gateway may let a fleet of ours go."""
        return gateway in self._gateways

    def take(self, outcome: Outcome, kept: Kept, states: Iterable[FleetState]) -> set[Ref]:
        """Update the released objects; returns the objects to check. Call after StatusTracker.want."""
        claims = {
            fleet: msgspec.structs.replace(claim, table=self._has_table(fleet))
            for fleet, claim in kept.claims.items()
        }
        self._log(claims, {f"{one.namespace}/{one.name}" for one in outcome.translation.infra})
        self._claims = claims
        self.tell()
        if self._spoken is None:
            return set()
        world = outcome.translation.memo.world
        at = {}
        if claims:
            at = {f"{one.namespace}/{one.name}": one.addresses for one in states}
        held = [Held(fleet, claim, at.get(fleet, ())) for fleet, claim in claims.items()]
        before = self._tracker.farewells
        stale = find_stale_statuses(
            world.snapshot,
            world.settings,
            outcome.translation.statuses,
            held,
            self._spoken.is_ours,
        )
        self._gateways = frozenset(
            {
                *(key for one in held for key in one.claim.gateways),
                *(ref[1:] for ref in stale.statuses if ref[0] == "Gateway"),
            }
        )
        dirty = self._tracker.take_leave(stale)
        if stale.former and stale.former != before.former:
            entries = set(self._spoken.saying(stale.former.keys()))
            for ref in entries:
                self._tracker.disown(ref)
            dirty |= entries
        return dirty

    def tell(self, *, anew: bool = False) -> None:
        """Tell of fleets that stay, if they have not been told of; `anew`: of all, for this replica leads from now on."""
        reported = {} if anew else self._reported
        for fleet, claim in self._claims.items():
            if reported.get(fleet) != claim:
                self._on_claim(fleet, claim)
        self._reported = dict(self._claims)

    def _log(self, claims: Mapping[str, Ownership], wanted: Collection[str]) -> None:
        for fleet, claim in claims.items():
            before = self._claims.get(fleet)
            if before is None or before.tell(fleet) != claim.tell(fleet):
                log.warning("%s", claim.tell(fleet))
        for fleet in self._claims.keys() - claims.keys():
            log.info(
                "fleet %s %s",
                fleet,
                "is handled again" if fleet in wanted else "can be removed now",
            )
