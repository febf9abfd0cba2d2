"""Held: what a translation selects is read before anybody is told of it; nothing is lost, and what is selected no more is not waited for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence, Set
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from aiohttp import web

from controller.fleets.inventory import Inventory
from controller.kube.cache import Cache
from controller.kube.pods import Pods
from controller.kube.throttle import RequestRate
from controller.pipeline import Outcome, Pipeline
from controller.source import ClusterSource
from edgefast.api.kinds import EXPERIMENTAL_GROUP, Object
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from tests.controller.kube.script import failure, page, scripted, stream
from tests.controller.kube.test_pods import pod
from tests.controller.pipeline.running import SETTINGS, Kept, Room, many, running_pipeline
from tests.controller.waiting import running, until
from tests.translate import world
from tests.translate.test_xbackend import pods

WEB = ("default", "app=web")


def sent_to(index: int, name: str) -> Object:
    refs = [{"group": EXPERIMENTAL_GROUP, "kind": "XBackend", "name": name}]
    return world.route(index, path=f"/{index}", backendRefs=refs)


def endpoints(outcome: Outcome, name: str) -> list[str]:
    (fleet,) = outcome.translation.ir.fleets
    found = [one for one in fleet.clusters if one.name == f"xbackend/default/{name}"]
    return [endpoint.address for one in found for endpoint in one.endpoints]


async def _until_waiting(made: Room) -> None:
    await until(lambda: not made.objects.synced.is_set(), "held")


@pytest.mark.pure
async def test_pods_are_read_before_anybody_is_told() -> None:
    async with running_pipeline(many(3)) as made:
        await made.wait_for(1)
        first = made.kept.outcomes[0]
        more = (pods("b", {"app": "web"}), sent_to(90, "b"))
        made.objects.now = made.objects.now.replace(more)
        made.pipeline.mark()
        await _until_waiting(made)
        assert made.objects.selections == {WEB} and len(made.kept.outcomes) == 1
        # What comes meanwhile is told with it, as a change of what was told before.
        made.objects.now = made.objects.now.replace([world.route(91, path="/91")])
        made.pipeline.mark()
        made.objects.take_pods(WEB, "10.0.0.7")
        made.pipeline.mark()
        await made.wait_for(2)
        second = made.kept.outcomes[1]
        assert endpoints(second, "b") == ["10.0.0.7"]
        assert second.revision == first.revision + 1 and second.changed
        assert made.pipeline.work.runs == 2
        # Those of the beginning, the two that came, and again the one that now has where to send to.
        assert made.pipeline.work.routes == 3 + 2 + 1


@pytest.mark.pure
async def test_a_run_that_fails_while_something_is_held_begins_anew() -> None:
    kept = Kept()
    async with running_pipeline(many(3), kept) as made:
        await made.wait_for(1)
        made.objects.now = made.objects.now.replace([pods("b", {"app": "web"}), sent_to(90, "b")])
        made.pipeline.mark()
        await _until_waiting(made)
        kept.fail = True
        made.objects.take_pods(WEB, "10.0.0.7")
        made.pipeline.mark()
        await made.wait_for(2)
        assert endpoints(made.kept.outcomes[-1], "b") == ["10.0.0.7"]


class _Cluster:
    """A cache of objects as a test has them, and of Pods of a server."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.now = snapshot
        self.pods: Pods
        self.pipeline: Pipeline
        self.given = 0  # snapshots

    async def wait_synced(self) -> None:
        """All there was has been read."""

    def snapshot(self) -> Snapshot:
        self.given += 1
        if self.now.pods is not self.pods.table():
            self.now = msgspec.structs.replace(self.now, pods=self.pods.table())
        return self.now

    def renew(self) -> None:
        """Nothing waits for a slice here."""

    def want(self, references: Set[Any]) -> bool:
        return not references

    def select(self, selections: Set[Any]) -> bool:
        return self.pods.want(selections)


@contextlib.asynccontextmanager
async def pods_pipeline(
    serve: Callable[[web.Request], Any], *more: Object
) -> AsyncIterator[tuple[_Cluster, Kept, Callable[[], None]]]:
    """Run a pipeline that begins with one route, and `more`."""
    async with scripted(serve) as kube:
        cluster, kept = _Cluster(many(1).replace(more)), Kept()
        holdings = SimpleNamespace(synced=True, on_synced=[])
        source = ClusterSource(cast(Cache, cluster), cast(Inventory, holdings), lambda: SETTINGS)
        pipeline = Pipeline(source, lambda: SETTINGS, kept)

        def mark() -> None:
            source.mark()
            pipeline.mark()

        pace = RequestRate(backoff_first=0.001, backoff_most=0.01, silence=5.0, patience=0.3)
        cluster.pods, cluster.pipeline = Pods(kube, mark, pace), pipeline
        async with running(cluster.pods.run(), pipeline.run()):
            yield cluster, kept, mark


@pytest.mark.wire
@pytest.mark.parametrize("answers", [True, False], ids=["quick", "silent"])
async def test_who_selects_ever_other_pods_holds_up_nobody_for_ever(answers: bool) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await stream(request)
        if not answers and request.query["labelSelector"].startswith("app=v"):
            await asyncio.Event().wait()
        return page(5, pod("a", 1, "10.0.0.1"))

    async with pods_pipeline(serve) as (cluster, kept, mark):
        await until(lambda: kept.outcomes, "begun")
        cluster.now = cluster.now.replace([sent_to(90, "busy"), world.route(91, path="/91")])
        numbers = count()

        def edit() -> bool:
            cluster.now = cluster.now.replace([pods("busy", {"app": f"v{next(numbers)}"})])
            mark()
            return any("/91" in str(one.translation.ir.fleets) for one in kept.outcomes)

        await until(edit, "told in spite of all edits", seconds=10.0)


GONE = (
    ObjectRef("XBackend", "default", "slow", EXPERIMENTAL_GROUP),
    ObjectRef("HTTPRoute", "default", "r90"),
)


@pytest.mark.wire
@pytest.mark.parametrize(
    ("news", "removed"),
    [((), GONE), ([pods("slow", {"app": "other"})], ())],
    ids=["removed", "corrected"],
)
async def test_what_nobody_selects_any_more_is_not_waited_for(
    news: Sequence[Object], removed: Sequence[ObjectRef]
) -> None:
    """At the start Pods are waited for without end: who takes the XBackend away that selects them, or corrects it, has to be heard."""
    asked: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await stream(request)
        asked.append(request.query["labelSelector"])
        return failure(429, "TooManyRequests", **{"Retry-After": "0.02"})

    async with pods_pipeline(serve, pods("slow", {"app": "web"}), sent_to(90, "slow")) as (
        cluster,
        kept,
        mark,
    ):
        await until(lambda: len(asked) > 3, "asked again and again")
        cluster.now = cluster.now.replace([world.route(91, path="/91")])
        mark()
        await until(
            lambda: cluster.pipeline.work.routes > 2, "all are translated, one of them later"
        )
        given, seen = cluster.given, len(asked)
        await until(lambda: len(asked) > seen + 3, "asked again and again")
        assert not kept.outcomes and cluster.given == given  # nobody looks without a cause
        cluster.now = cluster.now.replace(news, removed)
        mark()
        await until(lambda: kept.outcomes, "told")
        (outcome,) = kept.outcomes
        assert "/91" in str(outcome.translation.ir.fleets)
        assert WEB not in cluster.pods.table()


@pytest.mark.wire
async def test_what_is_told_before_its_pods_are_read_says_so() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await stream(request)
        await asyncio.Event().wait()
        raise AssertionError

    def told(kept: Kept) -> set[str]:
        found = kept.outcomes[-1].translation.problems
        return {one.object.name for one in found if one.object and one.reason == "PodsNotRead"}

    async with pods_pipeline(serve) as (cluster, kept, mark):
        await until(lambda: kept.outcomes, "begun")
        cluster.now = cluster.now.replace([sent_to(90, "busy"), pods("busy", {"app": "v0"})])
        mark()
        await until(lambda: told(kept) == {"busy"}, "patience is over")
        # Now it is waited for no more: what it selects next is told of at once, and nobody has to change anything for that.
        cluster.now = cluster.now.replace([sent_to(91, "more"), pods("more", {"app": "v1"})])
        mark()
        await until(lambda: told(kept) == {"busy", "more"}, "told", seconds=10.0)
