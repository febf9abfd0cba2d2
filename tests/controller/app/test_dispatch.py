"""Handover: tables first, then fleets, then statuses; what proxies answer reaches statuses."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import pytest

from controller.dispatch import Dispatch
from controller.fleets.cutover import Kept
from controller.fleets.migration import Migration
from controller.fleets.observe import WELL, FleetProblem
from controller.pipeline import Outcome, Pipeline
from controller.status.tracker import StatusTracker
from controller.status.writer import Writer
from controller.xds_server.fleets import Ack, Fleets
from edgefast import ir
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.settings import FleetState, Settings
from edgefast.xds.proxy_problems import ProxyProblem
from edgefast.xds.rejections import COMMIT, TABLE, Refused
from tests.controller.status.conditions import OURS
from tests.translate import world
from tests.translate.world import make

pytestmark = pytest.mark.pure

ROUTE, GATEWAY = ("HTTPRoute", "default", "r0"), ("Gateway", "default", "gw")


class Infra:
    """Takes what is wanted; sees the pods it is told to."""

    def __init__(self) -> None:
        self.wanted: Mapping[str, Any] = {}
        self.pods: tuple[str, ...] = ()
        self.fleet = ""
        self.keep = Kept()
        self.plights: dict[str, FleetProblem] = {}
        self.serving: Callable[[str, str], Set[str]] = lambda fleet, version: set()

    def render(self, fleets: Iterable[ir.Infra]) -> Mapping[str, Sequence[Any]]:
        return {f"{one.namespace}/{one.name}": () for one in fleets}

    def want(self, fleets: Mapping[str, Sequence[Any]], keep: Iterable[str]) -> None:
        self.wanted = fleets

    def states(self) -> Sequence[FleetState]:
        namespace = Settings().namespace
        state = FleetState(
            name=self.fleet, namespace=namespace, ready=self.pods, addresses=("192.0.2.1",)
        )
        return (state,)

    def fleet_problem(self, fleet: str) -> FleetProblem:
        return self.plights.get(fleet, WELL)

    def kept(self, outcome: Outcome, serving: Callable[[str, str], Set[str]]) -> Kept:
        self.serving = serving
        return self.keep


class Room:
    """Handover with the real push and status rooms, and the API server's answers in `server`."""

    def __init__(self) -> None:
        self.fleets, self.infra, self.board = Fleets("me"), Infra(), StatusTracker(OURS)
        self.nacks: list[str] = []
        self.marked: set[Any] = set()
        self.writer = Writer(self.board, None, None, lambda: False)  # type: ignore[arg-type]
        self.writer.mark = self.writer.mark_soon = self.marked.update  # type: ignore[method-assign]
        self.handover = Dispatch(
            self.fleets, self.infra, self.board, self.writer, self.nacks.append
        )
        self.objects = Snapshot.of(
            [world.gateway_class(), world.gateway(), world.service("web"), world.route(0)]
        )
        self.pipeline = Pipeline(self, self.settings, self.handover)

    async def ready(self) -> None:
        """Everything is read."""

    def snapshot(self) -> Snapshot:
        return self.objects

    def select(self, selections: Set[Any]) -> bool:
        return not selections

    def settings(self) -> Settings:
        return Settings(standalone=False, fleets=tuple(self.infra.states()))

    async def run(self) -> str:
        """Run the pipeline once; returns the key of the fleet."""
        await self.pipeline._run_once()
        return next(iter(self.fleets.names()), "")

    def verdict(self, ref: Any) -> dict[str, str]:
        """Return the conditions that could be written now."""
        fields = self.board.judge(ref, {}, 1e9, "2026-01-01T00:00:00Z").fields or {}
        entries = fields.get("parents") or [fields]
        return {one["type"]: one["status"] for one in entries[0].get("conditions", ())}


@pytest.fixture
@contextlib.asynccontextmanager
async def room() -> AsyncIterator[Room]:
    yield Room()


async def answer(room: Room, key: str, node: str, version: str, *refused: Refused) -> None:
    """A proxy says what it serves; waits until that has been gathered."""
    room.fleets.tell(room.fleets.find(key), node, version, refused)
    await asyncio.sleep(0.01)


async def test_tables_fleets_and_statuses(room: Room) -> None:
    key = await room.run()
    assert key == f"edge-gateway-system/{key.partition('/')[2]}"
    assert set(room.infra.wanted) == {key}
    assert {ROUTE, GATEWAY} <= room.marked
    assert room.handover.first.is_set()
    assert room.verdict(ROUTE)["Accepted"] == "True"  # no proxies: nothing to wait for


async def test_good_news_waits_for_the_answer(room: Room) -> None:
    key = await room.run()
    room.infra.fleet, room.infra.pods = key.partition("/")[2], ("pod",)
    room.objects = room.objects.replace([world.route(1)])
    await room.run()
    route = ("HTTPRoute", "default", "r1")
    assert "Accepted" not in room.verdict(route)
    assert room.verdict(GATEWAY)["Programmed"] == "False"
    room.marked.clear()
    await answer(room, key, "pod", room.fleets.version(key))
    assert {route, GATEWAY} <= room.marked
    assert room.verdict(route)["Accepted"] == "True"
    assert room.verdict(GATEWAY)["Programmed"] == "True"


async def test_what_a_proxy_refuses_is_told_to_whom_it_concerns(room: Room) -> None:
    key = await room.run()
    room.infra.fleet, room.infra.pods = key.partition("/")[2], ("pod",)
    name = "default/gw/http/h0.example.com"
    version = room.fleets.version(key)
    refused = Refused("virtual_host", name, "no memory")
    await answer(room, key, "pod", version, refused)
    assert room.nacks == ["virtual_host"]
    assert room.verdict(ROUTE)["Programmed"] == "False"
    await answer(room, key, "pod", version, refused)
    assert room.nacks == ["virtual_host"]  # once, not with every answer
    await answer(room, key, "pod", version)
    assert "Programmed" not in room.verdict(ROUTE)


async def test_keys_that_a_proxy_cannot_fetch_are_told_of_their_policy(room: Room) -> None:
    remote = {"uri": "https://idp.example/keys"}
    policy = make(
        "SecurityPolicy default/p",
        {
            "targetRefs": [{"group": GATEWAY_GROUP, "kind": "Gateway", "name": "gw"}],
            "jwt": {"providers": [{"name": "idp", "issuer": "i", "remoteJWKS": remote}]},
        },
    )
    room.objects = room.objects.replace([policy])
    key = await room.run()
    room.infra.fleet, room.infra.pods = key.partition("/")[2], ("pod",)
    fleet, version = room.fleets.find(key), room.fleets.version(key)
    ref = ("SecurityPolicy", "default", "p")
    trouble = ProxyProblem(*ref, "spec.jwt", "KeysNotFetched", "404", "warning")
    for troubles in ((), (trouble,), ()):
        room.marked.clear()
        room.fleets.tell(fleet, "pod", version, (), troubles)
        await asyncio.sleep(0.01)
        assert ref in room.marked
        fields = room.board.judge(ref, {}, 1e9, "2026-01-01T00:00:00Z").fields or {}
        types = [one["type"] for one in fields["ancestors"][0]["conditions"]]
        assert ("KeysAvailable" in types) == bool(troubles)


@pytest.mark.parametrize("told", ["too large", "late: 1 of 2 workers serve an older table"])
async def test_a_straggler_is_told_with_what_keeps_it(room: Room, told: str) -> None:
    key = await room.run()
    room.infra.fleet, room.infra.pods = key.partition("/")[2], ("good", "bad")
    room.objects = room.objects.replace([world.route(1)])
    await room.run()
    version = room.fleets.version(key)
    room.fleets.tell(room.fleets.find(key), "good", version, ())
    await answer(room, key, "bad", "older", Refused(COMMIT, TABLE, told))
    assert room.verdict(GATEWAY)["Programmed"] == "False"  # not yet: it is given time
    room.board.look(1e9)
    fields = room.board.judge(GATEWAY, {}, 1e9, "2026-01-01T00:00:00Z").fields or {}
    (one,) = (c for c in fields["conditions"] if c["type"] == "Programmed")
    assert one["status"] == "True"
    reason = " (too large)" if told == "too large" else ""
    assert one["message"].endswith(f"1/2 proxies at version 0, behind: bad{reason}")


async def test_a_fleet_that_is_gone_is_removed_unless_it_is_kept(room: Room) -> None:
    key = await room.run()
    gateway = ObjectRef("Gateway", "default", "gw", GATEWAY_GROUP)
    room.objects = room.objects.replace(removed=[gateway])
    room.infra.keep = Kept(frozenset({key}))
    await room.run()
    assert room.fleets.names() == (key,)
    assert room.infra.wanted == {}
    room.infra.keep = Kept()
    await room.run()
    assert room.fleets.names() == ()


async def test_while_a_fleet_is_kept_it_is_told_when_another_one_serves_its_table(
    room: Room,
) -> None:
    told: list[int] = []
    room.handover.on_served = lambda: told.append(1)
    room.infra.fleet, room.infra.pods = "", ("a", "b")
    key = await room.run()
    room.infra.fleet = key.partition("/")[2]
    version = room.fleets.version(key)
    await answer(room, key, "a", version)
    await answer(room, key, "b", version)
    assert not told  # nothing is kept

    room.infra.keep = Kept(frozenset({"edge-gateway-system/before"}))
    await room.run()
    await answer(room, key, "b", "older")
    assert not told
    assert room.infra.serving(key, version) == {"a"}
    await answer(room, key, "b", version)
    assert told
    assert room.infra.serving(key, version) == {"a", "b"}


async def test_the_end_of_an_overlap_is_looked_at(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else need happen then: it is a matter of time."""
    over = asyncio.Event()
    room.handover.on_served = over.set
    await room.run()
    assert not over.is_set()
    monkeypatch.setattr(Migration, "next_end", lambda self: time.monotonic() + 0.01)
    await room.run()
    await over.wait()
    # A later outcome decides anew.
    over.clear()
    await room.run()
    monkeypatch.setattr(Migration, "next_end", lambda self: 0.0)
    await room.run()
    await asyncio.sleep(0.03)
    assert not over.is_set()


def said_of(room: Room) -> str:
    """Return the message of Programmed that could be written now."""
    fields = room.board.judge(GATEWAY, {}, 1e9, "2026-01-01T00:00:00Z").fields or {}
    return str(next(c["message"] for c in fields["conditions"] if c["type"] == "Programmed"))


async def test_what_keeps_a_fleet_from_serving_is_told(room: Room) -> None:
    """At its Gateway while it lasts, and once as an event; a new leader tells it again."""
    told: list[tuple[str, str]] = []
    room.handover.on_trouble = lambda fleet, text: told.append((fleet, text))
    key = await room.run()
    room.infra.fleet = key.partition("/")[2]
    why = "Deployment x: FailedCreate: exceeded quota"
    room.infra.plights = {key: FleetProblem(why)}
    room.infra.keep = Kept(frozenset({"ns/old"}), waiting={key: ("fleet ns/old goes on",)})
    room.marked.clear()
    await room.run()
    assert GATEWAY in room.marked
    assert said_of(room).startswith(f"0/0 proxies available; {why}; fleet ns/old goes on")
    room.handover.look_at_all()
    assert told == [(key, why)]
    room.handover.report_again()
    assert told == [(key, why)] * 2
    room.infra.plights, room.infra.keep = {}, Kept(let_go={key: "it went at once"})
    await room.run()
    assert said_of(room).startswith("0/0 proxies available; it went at once")
    assert len(told) == 2


async def test_a_proxy_that_is_turned_away_is_told_while_it_is_there(room: Room) -> None:
    """It has no table and is not ready: nothing else would say why."""
    told: list[str] = []
    room.handover.on_trouble = lambda fleet, text: told.append(text)
    key = await room.run()
    room.infra.fleet, room.infra.pods = key.partition("/")[2], ("good",)
    await room.run()
    fleet = room.fleets.find(key)
    room.fleets.tell(fleet, "good", room.fleets.version(key), ())
    room.fleets.turn_away(fleet, "bad", "", "reads other formats")
    await asyncio.sleep(0.01)
    assert "bad" not in said_of(room)  # nobody knows whether there is still such a pod
    room.infra.plights = {key: FleetProblem(unready=frozenset({"bad", "slow"}))}
    room.handover.look_at_all()
    why = "bad is not ready: reads other formats"
    assert said_of(room).endswith(f"1/1 proxies at version 0; {why}")
    assert told == [why]
    room.infra.plights = {}
    room.handover.look_at_all()
    assert said_of(room).endswith("1/1 proxies at version 0")


async def test_many_answers_are_gathered(room: Room) -> None:
    key = await room.run()
    looks = 0
    look_at = room.handover.look_at

    def count(keys: Iterable[str]) -> None:
        nonlocal looks
        looks += 1
        look_at(keys)

    room.handover.look_at = count  # type: ignore[method-assign]
    fleet = room.fleets.find(key)
    for index in range(1000):
        room.fleets.tell(fleet, f"pod-{index}", "v", ())
    await asyncio.sleep(0.05)
    assert looks == 1
    assert room.fleets.acks(key)["pod-999"] == Ack("v", (), True, "me")
