"""A pipeline that runs on objects of a test and keeps its outcomes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Set

import msgspec

from controller.pipeline import Outcome, Pipeline
from edgefast.api.core.selected_pod import SelectedPod, SelectedPods
from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.backend.pod_selectors import Selection
from edgefast.translate.settings import Settings
from tests.controller.waiting import running
from tests.translate import world

SETTINGS = Settings(standalone=False)


class Objects:
    """A cache that is synced when told to."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.now = snapshot
        self.synced = asyncio.Event()
        self.synced.set()
        self.taken = 0
        self.selections: Set[Selection] = frozenset()
        self.read: set[Selection] = set()  # Pods that have been

    async def ready(self) -> None:
        await self.synced.wait()

    def snapshot(self) -> Snapshot:
        self.taken += 1
        return self.now

    def select(self, selections: Set[Selection]) -> bool:
        self.selections = selections
        if selections <= self.read:
            return True
        self.synced.clear()  # `ready` waits for them
        return False

    def take_pods(self, selection: Selection, *addresses: str) -> None:
        """Have the Pods of a selection read, and all that was waited for."""
        pods = self.now.pods.edit()
        found = tuple(SelectedPod(address=one) for one in addresses)
        pods[selection] = SelectedPods(pods=found)
        self.now = msgspec.structs.replace(self.now, pods=pods.done())
        self.read.add(selection)
        self.synced.set()


class Kept:
    """Keeps all outcomes."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.fail = False
        self.more = asyncio.Event()
        self.published: Outcome

    def publish(self, outcome: Outcome) -> None:
        if self.fail:
            self.fail = False
            raise RuntimeError("a bug")
        self.published = outcome

    async def sent(self) -> None:
        pass

    def tell(self) -> None:
        self.outcomes.append(self.published)
        self.more.set()


class Room:
    """A running pipeline."""

    def __init__(self, snapshot: Snapshot, kept: Kept | None = None) -> None:
        self.objects, self.kept = Objects(snapshot), kept or Kept()
        self.settings = SETTINGS
        self.pipeline = Pipeline(self.objects, lambda: self.settings, self.kept)

    async def change(self, *objects: Object, removed: tuple[ObjectRef, ...] = ()) -> Outcome:
        """Change objects and wait for the next outcome."""
        count = len(self.kept.outcomes)
        self.objects.now = self.objects.now.replace(objects, removed)
        self.pipeline.mark()
        await self.wait_for(count + 1)
        return self.kept.outcomes[-1]

    async def wait_for(self, count: int) -> None:
        while len(self.kept.outcomes) < count:
            self.kept.more.clear()
            await self.kept.more.wait()


@contextlib.asynccontextmanager
async def running_pipeline(snapshot: Snapshot, kept: Kept | None = None) -> AsyncIterator[Room]:
    """Run a pipeline that begins with this snapshot."""
    made = Room(snapshot, kept)
    async with running(made.pipeline.run()):
        yield made


def many(count: int, host: str = "") -> Snapshot:
    routes = [world.route(i, path=f"/p{i}", host=host) for i in range(count)]
    return Snapshot.of(
        [
            world.gateway_class(),
            world.gateway(),
            world.service("web"),
            world.endpoints("web", "10.0.0.1"),
            *routes,
        ]
    )
