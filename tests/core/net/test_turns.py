"""What a worker tells of its turns: how many, how long in all, the longest."""

from __future__ import annotations

from core.backend import say
from core.fleets import make_cluster, make_fleet
from core.world import World


async def test_turns_are_told(world: World) -> None:
    backend = await world.backend(say("x"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    assert world.counters["turns"] == 0
    client = await world.client(port)
    for _ in range(20):
        assert (await client.get()).status == 200
    counters = world.counters
    assert counters["turns"] >= 20
    assert counters["turn_events"] >= 40, "the client's and the backend's bytes"
    assert counters["faults"] == 0
    assert 0 < counters["turn_longest_us"] <= counters["turns_us"]
    assert counters["turn_longest_us"] * counters["turns"] >= counters["turns_us"]
