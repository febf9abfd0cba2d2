"""Pipeline: nothing before everything is synced, and after that a change costs what it touches."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from controller import pipeline as room
from controller.pipeline import Outcome, Pipeline
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.settings import FleetState
from tests.controller.pipeline.running import SETTINGS, Kept, Objects, Room, many, running_pipeline
from tests.controller.waiting import running
from tests.translate import world

pytestmark = pytest.mark.pure


async def test_tables_are_on_their_way_before_anything_is_told() -> None:
    """A stream that waits for a table writes all of it before manifests and statuses take their time."""
    order: list[str] = []

    class Streams(Kept):
        def __init__(self) -> None:
            super().__init__()
            self.over = asyncio.Event()
            self.written = asyncio.Event()

        def publish(self, outcome: Outcome) -> None:
            self.more.set()

        async def sent(self) -> None:
            await self.written.wait()

        def tell(self) -> None:
            order.append("told")
            self.over.set()

    async def stream(kept: Streams) -> None:
        await kept.more.wait()
        for message in ("puts", "commit"):
            await asyncio.sleep(0)
            order.append(message)
        kept.written.set()

    kept = Streams()
    pipeline = Pipeline(Objects(many(1)), lambda: SETTINGS, kept)
    async with running(pipeline.run()):
        await stream(kept)
        await kept.over.wait()
    assert order == ["puts", "commit", "told"]


async def test_nothing_happens_before_everything_is_synced() -> None:
    made = Room(many(3))
    made.objects.synced.clear()
    async with running(made.pipeline.run()):
        made.pipeline.mark()
        await asyncio.sleep(0.02)
        assert made.objects.taken == 0
        made.objects.synced.set()
        await made.wait_for(1)
    (outcome,) = made.kept.outcomes
    assert outcome.revision == 1
    (fleet,) = outcome.changed
    assert outcome.fleet_of() == {("default", "gw"): fleet}


async def test_a_reference_that_is_not_read_yet_holds_the_next_run() -> None:
    async with running_pipeline(many(1)) as made:
        await made.wait_for(1)
        made.objects.synced.clear()
        made.pipeline.mark()
        await asyncio.sleep(0.02)
        assert len(made.kept.outcomes) == 1
        made.objects.synced.set()
        await made.wait_for(2)


@pytest.mark.parametrize("count", [10, 1000])
async def test_one_route_costs_the_same_among_many(count: int) -> None:
    """D2: work done, not time. Each route has a host of its own."""
    async with running_pipeline(many(count)) as made:
        await made.wait_for(1)
        before = msgspec.structs.asdict(made.pipeline.work)
        outcome = await made.change(world.route(5, path="/elsewhere"))
        after = msgspec.structs.asdict(made.pipeline.work)
        cost = {name: after[name] - before[name] for name in after}
        assert cost.pop("bytes") < 1000
        assert cost == {"runs": 1, "routes": 1, "virtual_hosts": 1, "clusters": 0, "resources": 1}
        assert len(outcome.changed) == 1


async def test_one_route_among_many_on_one_host_sends_a_part_of_it() -> None:
    async with running_pipeline(many(1000, host="one.example.com")) as made:
        await made.wait_for(1)
        whole = made.pipeline.work.bytes
        before = made.pipeline.work.bytes
        await made.change(world.route(500, path="/elsewhere", host="one.example.com"))
        assert made.pipeline.work.routes == 1001
        assert made.pipeline.work.bytes - before < whole / 2


async def test_endpoints_change_a_cluster_and_no_table() -> None:
    async with running_pipeline(many(100)) as made:
        await made.wait_for(1)
        before = msgspec.structs.asdict(made.pipeline.work)
        await made.change(world.endpoints("web", "10.0.0.2"))
        after = msgspec.structs.asdict(made.pipeline.work)
        assert after["routes"] == before["routes"]
        assert after["clusters"] - before["clusters"] == 1
        assert after["resources"] - before["resources"] == 1


async def test_nothing_changed_is_nothing_published() -> None:
    async with running_pipeline(many(5)) as made:
        await made.wait_for(1)
        first = made.kept.outcomes[0]
        second = await made.change()
        assert (second.changed, second.revision) == (frozenset(), 2)
        assert second.shards == first.shards
        assert made.pipeline.work.resources == len(next(iter(first.shards.values())).resources)


async def test_what_is_seen_of_fleets_changes_statuses_only() -> None:
    async with running_pipeline(many(5)) as made:
        await made.wait_for(1)
        (fleet,) = made.kept.outcomes[0].changed
        seen = FleetState(name=fleet, addresses=("192.0.2.1",), replicas=1, ready=("pod",))
        made.settings = msgspec.structs.replace(SETTINGS, fleets=(seen,))
        routes = made.pipeline.work.routes
        outcome = await made.change()
        assert outcome.changed == frozenset()
        assert made.pipeline.work.routes == routes
        status = outcome.translation.statuses.gateways["default", "gw"]
        assert {one.type: one.status for one in status.conditions}["Programmed"] == "True"


async def test_fleets_come_and_go() -> None:
    async with running_pipeline(many(5)) as made:
        await made.wait_for(1)
        (first,) = made.kept.outcomes[0].changed
        outcome = await made.change(world.gateway("two"))
        (second,) = outcome.changed
        assert second != first and set(outcome.shards) == {first, second}
        ref = ObjectRef("Gateway", "default", "two", GATEWAY_GROUP)
        outcome = await made.change(removed=(ref,))
        assert (outcome.changed, set(outcome.shards)) == (frozenset(), {first})


async def test_a_bug_neither_ends_the_loop_nor_what_is_served(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_PAUSE", 0.01)
    async with running_pipeline(many(5)) as made:
        await made.wait_for(1)
        made.kept.fail = True
        made.objects.now = made.objects.now.replace([world.route(1, path="/new")])
        made.pipeline.mark()
        await made.wait_for(2)
        first, second = made.kept.outcomes
        assert second.revision == 3  # that of the failed run is not used again
        # What the failed run has not published is published now.
        assert second.changed == first.changed
    assert "could not be processed" in caplog.text


@pytest.mark.parametrize("kind", ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"])
async def test_routes_of_every_kind_are_kept_from_the_garbage_collector(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[bool] = []
    monkeypatch.setattr(room, "keep_all", lambda: kept.append(True))
    monkeypatch.setattr(room, "_GROWTH_LEAST", 3)
    more = [
        world.make(
            f"{kind} default/r{at}",
            {
                "parentRefs": [{"name": "gw"}],
                **({"hostnames": ["a.example"]} if kind == "TLSRoute" else {}),
                "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
            },
        )
        for at in range(9)
    ]
    async with running_pipeline(many(1)) as made:
        await made.wait_for(1)
        await made.change(*more)
    assert len(kept) == 2
