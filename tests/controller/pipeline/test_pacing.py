"""Pacing: a change after a rest is taken at once, a storm is gathered."""

from __future__ import annotations

import asyncio
import time

import pytest

from controller import pipeline as room
from tests.controller.pipeline.running import Kept, Room, many, running_pipeline
from tests.translate import world

pytestmark = pytest.mark.pure


async def test_a_storm_is_taken_in_few_runs_and_a_single_change_at_once() -> None:
    async with running_pipeline(many(5)) as made:
        await made.wait_for(1)
        await asyncio.sleep(0.15)
        began = time.monotonic()
        await made.change(world.route(0, path="/at-once"))
        assert time.monotonic() - began < 5  # against hangs only
        runs = made.pipeline.work.runs
        began = time.monotonic()
        for index in range(200):
            made.objects.now = made.objects.now.replace([world.route(index % 5, path=f"/{index}")])
            made.pipeline.mark()
            await asyncio.sleep(0)
        last = made.objects.now
        while made.kept.outcomes[-1].translation.memo.world.snapshot is not last:
            await made.wait_for(len(made.kept.outcomes) + 1)
        # One in CEILING; a machine that stands still among them makes a pause of its own.
        took = time.monotonic() - began
        assert made.pipeline.work.runs - runs < max(20, 4 * took / room.CEILING)


class Clock:
    """A clock of the pipeline that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.cpu = 0.0

    def monotonic(self) -> float:
        return self.now

    perf_counter = monotonic

    def process_time(self) -> float:
        return self.cpu

    thread_time = process_time


def _follows(made: Room, clock: Clock, seconds: float, index: int) -> None:
    """Have a route come so long after the last run."""
    clock.now += seconds
    made.objects.now = made.objects.now.replace([world.route(0, path=f"/after-{index}")])
    made.pipeline.mark()


async def test_who_changes_one_object_after_another_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An API server takes about 3 ms for each; runs of a millisecond have rested by then."""
    clock = Clock()
    monkeypatch.setattr(room, "time", clock)
    async with running_pipeline(many(5)) as made:
        await made.wait_for(1)
        for index in range(5):
            _follows(made, clock, 0.003, index)
            await made.wait_for(2 + index)  # the clock stands: no quiet would ever end


@pytest.mark.parametrize(("cpu", "rest"), [(0.0, 0.001), (0.02, 0.019), (5.0, 0.099)])
async def test_after_less_rest_than_work_changes_are_gathered(
    monkeypatch: pytest.MonkeyPatch, cpu: float, rest: float
) -> None:
    clock = Clock()
    monkeypatch.setattr(room, "time", clock)

    class Working(Kept):
        def tell(self) -> None:
            clock.cpu += cpu
            super().tell()

    async with running_pipeline(many(5), Working()) as made:
        await made.wait_for(1)
        _follows(made, clock, rest, 0)
        await asyncio.sleep(0.03)
        assert len(made.kept.outcomes) == 1
        _follows(made, clock, 0.0, 1)
        clock.now += room.QUIET
        await made.wait_for(2)
        assert len(made.kept.outcomes) == 2
