"""Requests that come in one piece have turns: a client that sends a thousand of them does not keep others waiting for all of them."""

from __future__ import annotations

from core.client import make_request
from core.fleets import make_fleet, make_host, make_listener, make_rule
from core.world import World

MANY = 400
TURN = 16  # PIPELINE_TURN


async def test_others_come_in_between(world: World) -> None:
    """Everything is there before the engine looks: who sent one request waits for one turn of who sent many."""
    port = await world.serve(make_fleet(make_listener(), make_host(make_rule(status=404))))
    many, one = await world.client(port), await world.client(port)
    for client in (many, one):  # both are accepted
        assert (await client.get("/first")).status == 404
    many.sock.send(make_request("/many") * MANY)
    one.sock.send(make_request("/one"))
    for _ in range(MANY):
        assert (await many.response()).status == 404
    assert (await one.response()).status == 404
    paths = [line["path"] for line in world.lines()][2:]
    assert paths.count("/many") == MANY
    assert paths.index("/one") <= TURN
