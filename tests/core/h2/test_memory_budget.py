"""What a request to a backend of HTTP/2 leaves behind: nothing that only the garbage collector could free."""

from __future__ import annotations

import pytest

from core.client import make_request
from core.fleets import make_cluster, make_fleet
from core.h2.backend import Answer, Ask, H2Backend, say
from core.test_memory import cycles
from core.world import World


def goes_away(ask: Ask) -> None:
    """The answer, and no more of them on this connection."""
    ask.reply(b"x")
    ask.link.goes_away()


ANSWERS: dict[str, Answer] = {
    "answer": say(b"x"),
    "nothing": lambda ask: ask.head(204, end=True),
    "reset": lambda ask: ask.refuse(2),
    "refused": lambda ask: ask.refuse(7),
    "goaway": goes_away,
    "lost": lambda ask: ask.link.close(),
}


@pytest.mark.parametrize("kind", ANSWERS)
async def test_requests_leave_no_cycle(world: World, kind: str) -> None:
    backend = H2Backend(ANSWERS[kind])
    world.keep(await backend.start())
    fleet = make_fleet(make_cluster(backend.port, protocol="h2"))
    found = await cycles(world, fleet, make_request(method="POST", body=b"x" * 1000), rounds=10)
    ours = [one for one in found if type(one).__module__.startswith("edgefast")]
    assert ours == []
