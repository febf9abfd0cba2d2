"""Events: once an hour each, a burst at most, only while leading, and never in anybody's way."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from controller.events import _BURST, About, Events
from controller.status.event_filter import select_events
from tests.controller.waiting import running

pytestmark = pytest.mark.pure

ROUTE = About("gateway.networking.k8s.io/v1", "HTTPRoute", "shop", "r", "uid-1")


class Desk:
    """Events over a list."""

    def __init__(self, fail: bool = False) -> None:
        self.made: list[dict[str, Any]] = []
        self.leading = True
        self.outcomes: Counter[str] = Counter()
        self.fail = fail
        self.events = Events(
            self.create, lambda: self.leading, "me", lambda one: self.outcomes.update([one])
        )

    async def create(self, manifest: dict[str, Any]) -> None:
        if self.fail:
            raise OSError("unreachable")
        self.made.append(manifest)

    def drain(self) -> None:
        async def main() -> None:
            async with running(self.events.run()):
                # A turn of the loop for each that can be queued, one to begin and one to end.
                for _ in range(_BURST + 2):
                    await asyncio.sleep(0)
                assert self.events._queue.empty()

        asyncio.run(main())


def test_an_event_says_what_about_what() -> None:
    desk = Desk()
    desk.events.warn(ROUTE, "BackendNotFound", "no Service x")
    desk.drain()
    (made,) = desk.made
    assert made["regarding"] == {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "name": "r",
        "namespace": "shop",
        "uid": "uid-1",
    }
    assert (made["type"], made["reason"], made["note"]) == (
        "Warning",
        "BackendNotFound",
        "no Service x; more about it: edgefast problem BackendNotFound",
    )
    assert made["metadata"]["namespace"] == "shop"


def test_the_same_is_told_once() -> None:
    desk = Desk()
    for text in ("a", "a", "b", "a"):
        desk.events.warn(ROUTE, "R", text)
    desk.drain()
    assert [one["note"] for one in desk.made] == ["a", "b"]
    assert desk.outcomes == {"written": 2, "repeated": 2}


def test_a_thousand_are_a_burst() -> None:
    desk = Desk()
    for index in range(1000):
        desk.events.warn(ROUTE, "R", str(index))
    desk.drain()
    assert _BURST <= len(desk.made) <= _BURST + 2
    assert desk.outcomes["dropped"] + len(desk.made) == 1000


def test_only_the_leader_tells() -> None:
    desk = Desk()
    desk.events.warn(ROUTE, "R", "queued")
    desk.leading = False
    desk.events.warn(ROUTE, "R", "refused")
    desk.drain()
    assert desk.made == []


def test_a_failure_is_counted_and_no_more() -> None:
    desk = Desk(fail=True)
    desk.events.warn(ROUTE, "R", "a")
    desk.drain()
    assert desk.outcomes == {"failed": 1}


def test_long_texts_are_cut_and_cluster_scoped_objects_have_a_place() -> None:
    desk = Desk()
    desk.events.warn(About("v1", "GatewayClass", "", "edge"), "R", "x" * 5000)
    desk.drain()
    assert len(desk.made[0]["note"]) == 1024
    assert desk.made[0]["metadata"]["namespace"] == "default"
    assert "namespace" not in desk.made[0]["regarding"]


def test_a_text_that_is_cut_keeps_the_way_to_more() -> None:
    desk = Desk()
    desk.events.warn(ROUTE, "FleetFailed", f"Service x: Forbidden {'x' * 5000}")
    desk.drain()
    (made,) = desk.made
    assert made["note"].endswith("x ...; more about it: edgefast problem FleetFailed Forbidden")
    assert len(made["note"]) == 1024


def test_the_limit_of_texts_is_bytes() -> None:
    """The API server counts bytes; an Event that is too long for it would be lost."""
    desk = Desk()
    desk.events.warn(ROUTE, "R", "ä" * 600)
    desk.drain()
    (made,) = desk.made
    assert made["note"] == "ä" * 510 + " ..."


def test_news_is_what_has_become_bad() -> None:
    def one(type_: str, status: str, reason: str, message: str = "m") -> dict[str, Any]:
        return {"type": type_, "status": status, "reason": reason, "message": message}

    old = one("ResolvedRefs", "False", "BackendNotFound", "no x")
    new = one("ResolvedRefs", "False", "BackendNotFound", "no y")
    passing = one("Programmed", "False", "Pending")
    fine = one("Accepted", "True", "Accepted")
    conflict = one("Conflicted", "True", "HostnameConflict", "taken")

    def parents(*conditions: dict[str, Any]) -> dict[str, Any]:
        return {"parents": [{"conditions": list(conditions)}]}

    assert select_events(parents(old), parents(old, fine)) == []
    assert select_events(parents(old), parents(new)) == [("BackendNotFound", "no y")]
    assert select_events({}, {"conditions": [passing, fine]}) == []
    listeners = {"listeners": [{"conditions": [conflict, conflict]}]}
    assert select_events({}, listeners) == [("HostnameConflict", "taken")]
