"""Writer: few writes, none too early, conflicts retried, nothing while another leads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from controller.status.rejections import NO_REJECTIONS
from controller.status.tracker import Ref, StatusTracker
from controller.status.write_throttle import FREE, QUIET, SPACE, SPACE_MAX, WriteThrottle
from controller.status.writer import SOON, WRITES, Conflict, ObjectDeleted, Present, Writer
from edgefast.translate.conditions.status import Statuses
from tests.controller.status.conditions import OURS, entry
from tests.controller.status.test_tracker import FLEET_OF, good, route
from tests.controller.waiting import running

pytestmark = pytest.mark.pure


class Server:
    """An API server with optimistic concurrency, and a watch that shows it when told to."""

    def __init__(self, *names: str) -> None:
        self.objects: dict[Ref, tuple[int, dict[str, Any]]] = {
            ("HTTPRoute", "default", name): (1, {}) for name in names
        }
        self.seen = dict(self.objects)
        self.writes: list[Ref] = []
        self.reads = 0
        self.under_way = 0
        self.most = 0
        self.before_write: Callable[[Ref], Awaitable[None]] | None = None

    def watch(self) -> None:
        self.seen = dict(self.objects)

    def present(self, ref: Ref) -> Present | None:
        found = self.seen.get(ref)
        return found and Present(str(found[0]), msgspec.json.encode(found[1]))

    async def read(self, ref: Ref) -> Present:
        self.reads += 1
        if ref not in self.objects:
            raise ObjectDeleted
        version, status = self.objects[ref]
        return Present(str(version), msgspec.json.encode(status))

    async def write(self, ref: Ref, resource_version: str, fields: dict[str, Any]) -> Present:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if self.before_write:
            await self.before_write(ref)
        if ref not in self.objects:
            raise ObjectDeleted
        version, status = self.objects[ref]
        if str(version) != resource_version:
            raise Conflict
        self.writes.append(ref)
        self.objects[ref] = (version + 1, {**status, **fields})
        return await self.read(ref)


class Clock:
    """Time that tests move."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def stamp(self) -> str:
        return "2026-02-02T00:00:00Z"


class Room:
    """A writer over a server, with one fleet that has no proxies to wait for."""

    def __init__(self, *names: str) -> None:
        self.server, self.clock, self.board = Server(*names), Clock(), StatusTracker(OURS)
        self.leading = True
        self.revision = 0
        self.failed: list[str] = []
        self.told: list[Ref] = []
        self.writer = Writer(
            self.board,
            self.server,
            self.clock,
            lambda: self.leading,
            lambda ref, before, fields: self.told.append(ref),
            self.failed.append,
        )
        self.want(dict.fromkeys(names, 1))

    def count_judgements(self) -> list[Ref]:
        """Return a list that every judgement from now on is added to."""
        judged: list[Ref] = []
        judge = self.board.judge

        def counted(ref: Ref, *rest: Any, **more: Any) -> Any:
            judged.append(ref)
            return judge(ref, *rest, **more)

        self.board.judge = counted  # type: ignore[method-assign]
        return judged

    def want(self, generations: dict[str, int]) -> None:
        self.revision += 1
        statuses = Statuses(
            http_routes={("default", name): route(good(g)) for name, g in generations.items()}
        )
        dirty = self.board.want(statuses, self.revision, {"fleet": "a"}, FLEET_OF, self.clock.now)
        dirty |= self.board.see_proxies("fleet", (), {}, NO_REJECTIONS, self.clock.now)
        self.writer.mark(dirty)


async def settle(room: Room) -> None:
    """Return when the writer has nothing to do now."""
    calm = 0
    while calm < 5:
        await asyncio.sleep(0)
        calm = calm + 1 if room.writer.idle else 0


async def test_a_thousand_routes_are_a_thousand_writes_and_no_read() -> None:
    room = Room(*(f"r{i}" for i in range(1000)))
    async with running(room.writer.run()):
        await settle(room)
        assert len(room.server.writes) == 1000
        room.writer.mark_all()
        await settle(room)
        room.server.watch()
        room.writer.mark_all()
        await settle(room)
        assert len(room.server.writes) == len(set(room.server.writes)) == 1000
        assert 1 < room.server.most <= WRITES
        assert len(room.told) == 1000
    assert room.failed == []


async def test_a_restart_writes_nothing() -> None:
    room = Room("r0", "r1")
    async with running(room.writer.run()):
        await settle(room)
    again = Room()
    again.server = room.server
    room.server.watch()
    again.writer = Writer(again.board, again.server, again.clock, lambda: True)
    again.want({"r0": 1, "r1": 1})
    async with running(again.writer.run()):
        await settle(again)
    assert len(again.server.writes) == 2


async def test_a_conflict_is_read_and_merged_anew() -> None:
    room = Room("r0")
    foreign = {**entry("gw", "other/one"), "conditions": []}

    async def meddle(ref: Ref) -> None:
        room.server.before_write = None
        version, _ = room.server.objects[ref]
        room.server.objects[ref] = (version + 1, {"parents": [foreign]})

    room.server.before_write = meddle

    async with running(room.writer.run()):
        await settle(room)
    parents = room.server.objects["HTTPRoute", "default", "r0"][1]["parents"]
    assert [one["controllerName"] for one in parents] == ["other/one", OURS]
    assert parents[0] == foreign
    assert room.failed == ["conflict"]


async def test_an_object_that_is_gone_is_let_go() -> None:
    room = Room("r0", "r1")

    async def remove(ref: Ref) -> None:
        room.server.objects.pop(("HTTPRoute", "default", "r0"), None)

    room.server.before_write = remove
    async with running(room.writer.run()):
        await settle(room)
    assert room.server.writes == [("HTTPRoute", "default", "r1")]


async def test_a_failure_is_tried_again_later() -> None:
    room = Room("r0")

    async def fail(ref: Ref) -> None:
        room.server.before_write = None
        raise OSError("unreachable")

    room.server.before_write = fail
    async with running(room.writer.run()):
        await settle(room)
        assert room.failed == ["OSError"]
        assert room.server.writes == []
        room.clock.now += 1.0
        room.writer.mark(())
        room.writer._wake.set()
        await settle(room)
        assert len(room.server.writes) == 1


async def test_nobody_writes_while_another_leads() -> None:
    room = Room("r0", "r1")
    room.leading = False
    async with running(room.writer.run()):
        await settle(room)
        assert room.server.writes == []
        room.leading = True
        room.writer.mark_all()
        await settle(room)
        assert len(room.server.writes) == 2


async def test_leading_is_asked_right_before_each_write() -> None:
    room = Room("r0")

    async def meddle(ref: Ref) -> None:
        room.leading = False
        version, status = room.server.objects[ref]
        room.server.objects[ref] = (version + 1, status)

    room.server.before_write = meddle
    async with running(room.writer.run()):
        await settle(room)
    assert room.server.writes == []


async def test_a_change_during_a_write_is_not_lost() -> None:
    room = Room("r0")

    async def change(ref: Ref) -> None:
        room.server.before_write = None
        room.want({"r0": 2})

    room.server.before_write = change
    async with running(room.writer.run()):
        await settle(room)
    (parent,) = room.server.objects["HTTPRoute", "default", "r0"][1]["parents"]
    assert parent["conditions"][0]["observedGeneration"] == 2
    assert len(room.server.writes) == 2
    assert room.failed == []  # our own write is known before the watch shows it


def test_an_object_that_keeps_changing_is_written_ever_more_seldom() -> None:
    spacing, now, writes = WriteThrottle(), 0.0, 0
    ref = ("Gateway", "default", "gw")
    while now < 60.0:
        if spacing.wait(ref, now) == 0.0:
            spacing.note(ref, now)
            writes += 1
        now += 0.05
    assert FREE + 60 / SPACE_MAX <= writes <= FREE + 60 / SPACE_MAX + 5
    assert spacing.wait(ref, now) <= SPACE_MAX
    assert spacing.wait(ref, now + QUIET) == 0.0
    assert spacing.wait(("Gateway", "default", "other"), now) == 0.0
    assert SPACE > 0


def test_of_objects_that_rest_nothing_is_remembered() -> None:
    spacing = WriteThrottle()
    for number in range(1000):
        spacing.note(("HTTPRoute", "default", f"r{number}"), number / 1000)
    spacing.note(("HTTPRoute", "default", "later"), 1.0 + QUIET)
    assert len(spacing._last) == 1


async def test_what_we_have_written_is_not_judged_again() -> None:
    room = Room("r0")
    ref = ("HTTPRoute", "default", "r0")
    async with running(room.writer.run()):
        judged = room.count_judgements()

        async def show(ref: Ref) -> None:
            """The watch is sometimes faster than the answer."""
            room.server.watch()
            room.writer.see(ref)

        await settle(room)
        assert judged == [ref]
        room.server.watch()
        room.writer.see(ref)
        await settle(room)
        assert judged == [ref]
        room.want({"r0": 2})
        write = room.server.write

        async def write_and_show(*what: Any) -> Present:
            written = await write(*what)
            await show(ref)
            return written

        room.server.write = write_and_show  # type: ignore[method-assign]
        await settle(room)
        assert judged == [ref, ref]
        assert len(room.server.writes) == 2


async def test_what_others_write_is_judged() -> None:
    room = Room("r0")
    ref = ("HTTPRoute", "default", "r0")
    async with running(room.writer.run()):
        await settle(room)
        version, _ = room.server.objects[ref]
        room.server.objects[ref] = (version + 1, {"parents": []})
        room.server.watch()
        room.writer.see(ref)
        await settle(room)
        assert room.server.objects[ref][1]["parents"]
        assert len(room.server.writes) == 2


async def test_what_is_taken_away_is_looked_at_once_more_and_forgotten() -> None:
    room = Room("r0")
    ref = ("HTTPRoute", "default", "r0")
    async with running(room.writer.run()):
        await settle(room)
        room.server.watch()
        room.writer.see(ref)
        room.want({})
        await settle(room)
        assert room.server.objects[ref][1]["parents"] == []
        room.server.watch()
        room.writer.see(ref)
        await settle(room)
        assert not room.board.is_ours(ref)


async def test_new_statuses_are_judged_when_proxies_have_answered_or_soon() -> None:
    room = Room()
    ref = ("HTTPRoute", "default", "r0")
    room.server.objects[ref] = (1, {})
    room.server.watch()
    async with running(room.writer.run()):
        statuses = Statuses(http_routes={("default", "r0"): route(good(1))})
        judged = room.count_judgements()
        dirty = room.board.want(statuses, 9, {"fleet": "b"}, FLEET_OF, room.clock.now)
        room.writer.mark_soon(dirty)
        for _ in range(20):
            await asyncio.sleep(0)
        assert judged == []
        room.writer.mark_now()
        await settle(room)
        assert judged == [ref]
        room.writer.mark_soon([ref])
        room.clock.now += SOON
        room.writer.mark([])  # whatever wakes it
        await settle(room)
        assert judged == [ref, ref]
