"""farewell: what has left does not go on saying Accepted and Programmed, and nobody else's word is touched."""

from __future__ import annotations

from typing import Any

import pytest

from controller.fleets.ownership import Ownership
from controller.status.shape import Json
from controller.status.stale import Held, StaleStatuses, find_stale_statuses
from controller.status.tracker import StatusTracker
from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from tests.controller.status.conditions import OURS
from tests.translate import world

pytestmark = pytest.mark.pure

FORMER = "example.com/former"
KEY = ("default", "gw")
GATEWAY, CLASS, SET = (
    ("Gateway", *KEY),
    ("GatewayClass", "", "edge"),
    ("ListenerSet", "default", "s"),
)
ROUTE = ("HTTPRoute", "default", "r")
STAMP = "2026-02-02T00:00:00Z"


def farewells(*objects: Object, held: tuple[Held, ...] = (), ours: Any = None) -> StaleStatuses:
    """Return the farewells of a controller that answers for none of a former name's classes."""
    snapshot = Snapshot.of(list(objects))
    settings = Settings(standalone=False)
    statuses = translate(snapshot, settings).statuses

    def is_ours(ref: Any, *, held: bool = False) -> bool:
        return ours is None or ref in ours or (held and ("unsigned", ref) in ours)

    return find_stale_statuses(snapshot, settings, statuses, held, is_ours)


def listener_set() -> Object:
    return world.make(
        "ListenerSet default/s",
        {"parentRef": {"name": "gw"}, "listeners": [{"name": "l", "port": 81, "protocol": "HTTP"}]},
    )


def judge(said: StaleStatuses, ref: Any, present: Json, **options: Any) -> Json | None:
    board = StatusTracker(OURS)
    assert ref in board.take_leave(said) or ref[0] == "HTTPRoute"
    board.disown(ref)
    return board.judge(ref, present, 0.0, STAMP, **options).fields


def conditions(fields: Json | None) -> dict[str, tuple[str, str]]:
    assert fields is not None
    return {one["type"]: (one["status"], one["reason"]) for one in fields["conditions"]}


UNKNOWN = ("Unknown", "Pending")
PRESENT: Json = {
    "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}],
    "attachedListenerSets": 1,
    "conditions": [
        {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "ok"},
        {"type": "Programmed", "status": "True", "reason": "Programmed", "message": "up"},
        {"type": "ResolvedRefs", "status": "True", "reason": "ResolvedRefs", "message": "ok"},
        {"type": "example.com/Theirs", "status": "True", "reason": "X", "message": "y"},
    ],
    "listeners": [{"name": "http", "attachedRoutes": 1, "conditions": []}],
}


def test_what_is_answered_for_is_left_alone() -> None:
    assert farewells(world.gateway_class(), world.gateway()) == StaleStatuses()


def test_a_gateway_whose_fleet_goes_on_says_where_and_that_nobody_answers_for_it() -> None:
    held = Held("ns/fleet", Ownership("why", (KEY,)), ("192.0.2.1", "lb.example"))
    said = farewells(world.gateway_class(FORMER), world.gateway(), held=(held,))
    fields = judge(said, GATEWAY, PRESENT)
    assert fields is not None
    assert conditions(fields) == {
        "Accepted": UNKNOWN,
        "Programmed": UNKNOWN,
        "example.com/Theirs": ("True", "X"),
    }
    assert fields["addresses"] == [
        {"type": "IPAddress", "value": "192.0.2.1"},
        {"type": "Hostname", "value": "lb.example"},
    ]
    assert fields["listeners"] == [] and fields["attachedListenerSets"] == 0
    assert "fleet ns/fleet serves its last table" in fields["conditions"][0]["message"]
    assert FORMER in fields["conditions"][0]["message"]
    # Once written it is not written again.
    assert judge(said, GATEWAY, {**PRESENT, **fields}) is None


def test_without_a_fleet_no_address_is_left() -> None:
    fields = judge(farewells(world.gateway_class(FORMER), world.gateway()), GATEWAY, PRESENT)
    assert fields is not None and fields["addresses"] == []
    assert "this controller does not serve it" in fields["conditions"][0]["message"]


def test_the_word_of_another_one_stays() -> None:
    """Seen before the decision, or between it and the write."""
    objects = (world.gateway_class(FORMER), world.gateway(), listener_set())
    assert farewells(*objects, ours=()) == StaleStatuses()
    assert judge(farewells(*objects), GATEWAY, PRESENT, ours=False) is None


def test_an_unsigned_word_is_taken_back_where_our_fleet_is() -> None:
    objects = (world.gateway_class(FORMER), world.gateway(), listener_set())
    unsigned = {("unsigned", ref) for ref in (GATEWAY, CLASS, SET)}
    assert farewells(*objects, ours=unsigned) == StaleStatuses()
    held = Held("ns/fleet", Ownership("why", (KEY,)))
    said = farewells(*objects, held=(held,), ours=unsigned)
    assert set(said.statuses) == {GATEWAY, CLASS, SET}


def test_classes_and_listener_sets_are_told_too() -> None:
    said = farewells(world.gateway_class(FORMER), world.gateway(), listener_set())
    assert set(said.statuses) == {GATEWAY, CLASS, SET}
    accepted = {"conditions": [PRESENT["conditions"][0]], "supportedFeatures": [{"name": "x"}]}
    fields = judge(said, CLASS, accepted)
    assert conditions(fields) == {"Accepted": UNKNOWN}
    assert fields is not None and fields["supportedFeatures"] == []
    of_set = {"conditions": PRESENT["conditions"][:2], "listeners": PRESENT["listeners"]}
    fields = judge(said, SET, of_set)
    assert fields is not None and fields["listeners"] == []
    assert conditions(fields) == {"Accepted": UNKNOWN, "Programmed": UNKNOWN}


def test_entries_of_the_former_name_go_and_those_of_others_stay() -> None:
    said = farewells(world.gateway_class(FORMER), world.gateway(), listener_set())

    def entry(controller: str, name: str, **ref: str) -> Json:
        condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "ok"}
        return {
            "parentRef": {"name": name, **ref},
            "controllerName": controller,
            "conditions": [condition],
        }

    others = [
        entry("example.com/third", "gw"),
        entry(FORMER, "another"),
        entry(FORMER, "gw", namespace="elsewhere"),
    ]
    stale = [entry(FORMER, "gw"), entry(FORMER, "s", kind="ListenerSet")]
    fields = judge(said, ROUTE, {"parents": [*stale, *others]})
    assert fields == {"parents": others}
    assert judge(said, ROUTE, {"parents": others}) is None
    # While the Gateway's status is another one's word, its entries are too.
    theirs = farewells(world.gateway_class(FORMER), world.gateway(), ours={CLASS})
    assert theirs.former == {}
