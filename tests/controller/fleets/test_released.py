"""Parting: a fleet that nobody answers for is told of once while it lasts; former entries are looked for once."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

import pytest

from controller.fleets.cutover import Kept
from controller.fleets.ownership import Ownership
from controller.fleets.released import ReleasedObjects
from controller.pipeline import Outcome
from controller.status.tracker import StatusTracker
from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import FleetState, Settings
from tests.controller.status.conditions import OURS
from tests.translate import world

pytestmark = pytest.mark.pure

FLEET = "edge-gateway-system/edge-default-gw-00000000"
KEY = ("default", "gw")
GATEWAY, CLASS, ROUTE = ("Gateway", *KEY), ("GatewayClass", "", "edge"), ("HTTPRoute", "a", "r")
FORMER = "example.com/former"
KEPT = Kept(frozenset({FLEET}), claims={FLEET: Ownership("the name was changed", (KEY,))})
STATES = (FleetState(name=FLEET.partition("/")[2], namespace="edge-gateway-system"),)


class Spoken:
    """Everything is our word, and one route has an entry of a former name."""

    def __init__(self) -> None:
        self.asked: list[set[str]] = []

    def is_ours(self, ref: Any, *, held: bool = False) -> bool:
        return True

    def saying(self, names: Collection[str]) -> list[Any]:
        self.asked.append(set(names))
        return [ROUTE]


class Room:
    def __init__(self) -> None:
        self.spoken, self.told = Spoken(), list[tuple[str, str]]()
        self.board = StatusTracker(OURS)
        self.has_table = True
        self.parting = ReleasedObjects(
            self.board,
            self.spoken,
            lambda fleet, claim: self.told.append((fleet, claim.why)),
            lambda fleet: self.has_table,
        )

    def take(self, kept: Kept, *objects: Object) -> set[Any]:
        snapshot = Snapshot.of(list(objects) or [world.gateway_class(FORMER), world.gateway()])
        translation = translate(snapshot, Settings(standalone=False))
        outcome = Outcome(revision=1, translation=translation, shards={}, changed=frozenset())
        return self.parting.take(outcome, kept, STATES)


def test_what_is_kept_is_told_once_and_so_is_its_end(caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    room = Room()
    assert room.take(KEPT) == {GATEWAY, CLASS, ROUTE}
    assert room.told == [(FLEET, "the name was changed")]
    assert room.take(KEPT) == set()
    assert len(room.told) == 1
    assert room.board.is_ours(GATEWAY) and room.board.is_ours(ROUTE)
    (said,) = caplog.messages
    assert said == (
        f"fleet {FLEET} serves its last table because no controller handles it: the name was "
        "changed"
    )
    room.parting.tell(anew=True)  # this replica leads from now on
    assert len(room.told) == 2
    room.take(Kept(), world.gateway_class(), world.gateway())
    assert caplog.messages[1:] == [f"fleet {FLEET} can be removed now"]
    assert not room.board.farewells.statuses


def test_that_new_pods_get_no_table_is_told(caplog: Any) -> None:
    """A controller that was started after the name was changed has never had the fleet's table."""
    room = Room()
    room.has_table = False
    room.take(KEPT)
    room.take(KEPT)
    none = "serves its last table (new pods get no table because this controller restarted after the table was made)"
    (said,) = caplog.messages
    assert said == f"fleet {FLEET} {none} because no controller handles it: the name was changed"
    status = room.board.farewells.statuses[GATEWAY]
    assert {one["message"].partition("; fleet ")[2] for one in status["conditions"]} == {
        f"{FLEET} {none}"
    }


def test_a_word_of_somebody_elses_counts_while_it_may_let_a_fleet_go() -> None:
    room = Room()
    assert not room.parting.concerns(KEY)
    room.take(KEPT)
    assert room.parting.concerns(KEY)
    room.take(Kept(), world.gateway_class(), world.gateway())
    assert not room.parting.concerns(KEY)


def test_entries_of_a_former_name_are_looked_for_when_there_is_one() -> None:
    room = Room()
    room.take(Kept(), world.gateway_class(), world.gateway())
    assert room.spoken.asked == []
    room.take(KEPT)
    room.take(KEPT)
    assert room.spoken.asked == [{FORMER}]
