"""apply(): tables come and go between two requests."""

from __future__ import annotations

from core.backend import say
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World


async def test_serves_what_was_applied(world: World) -> None:
    backend = await world.backend(say("one"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    client = await world.client(port)
    answer = await client.get()
    assert (answer.status, answer.body) == (200, b"one")
