"""Which endpoint an explanation names is the one that an engine chooses, by whatever requests are told apart."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from core.backend import Backend, make_response
from core.fleets import PORT
from core.world import World
from edgefast import ir
from edgefast.explain import RequestSpec, Served
from edgefast.explain.explain import explain
from tests.explain.balancers import BALANCERS
from tests.explain.test_load_balancer import fleet_of, make_endpoints

KEYED = [one for one in BALANCERS if one.hash is not None]


def asks(seed: int, count: int) -> list[RequestSpec]:
    pick = random.Random(seed).choice
    made = []
    for at in range(count):
        value = pick(["1", f"v{at}", f"w{at}", "", "a b"])
        headers = [
            (pick(["x-a", "X-B", "x-user", "x_b", "X-Forwarded-For", "x-real-ip", "Accept"]), value)
            for _ in range(pick([0, 1, 2, 3]))
        ]
        if pick([True, False]):
            cookie = pick([f"c={value}", f"d=1; c={value}", f"a=b;d={value}", "c=; c=7", "c"])
            headers.append(("Cookie", cookie))
        if pick([True, False, False]):
            headers.append(("Connection", pick(["x-a", "keep-alive", "x-b, x-user"])))
        query = pick(
            ["", "?", f"?q={value}".replace(" ", "+"), "?%71=%31&r", "?q=1&q=2", "?x-a=%20"]
        )
        host = pick(["a.test", "A.test", "a.test:8080"])
        made.append(RequestSpec(port=PORT, host=host, target=f"/{query}", headers=tuple(headers)))
    return made


@pytest.mark.parametrize("number", range(len(KEYED)))
@pytest.mark.parametrize("underscores", ["Allow", "Drop"])
async def test_an_engine_chooses_what_is_told(world: World, number: int, underscores: Any) -> None:
    backend = await Backend(
        lambda call: make_response(
            call.link.transport.get_extra_info("sockname")[0].encode(),
        )
    ).start(host="0.0.0.0")
    world.keep(backend)
    fleet = fleet_of(KEYED[number], make_endpoints(backend.port))
    (listener,) = fleet.listeners
    http = msgspec.structs.replace(
        listener.http,
        underscores=underscores,
        client_address=ir.ClientAddress(trusted_hops=number % 2),
    )
    fleet = msgspec.structs.replace(
        fleet, listeners=(msgspec.structs.replace(listener, http=http),)
    )
    hashed = KEYED[number].hash
    assert hashed is not None
    port, served = await world.serve(fleet), Served(fleet)
    client, told = await world.client(port), set()
    for ask in asks(number, 100):
        (part,) = explain(served, ask).backends
        answer = await client.ask(ask.head())
        assert answer.status == 200
        if part.chosen:
            told.add(part.chosen)
            assert f"{answer.body.decode()}:{backend.port}" == part.chosen, ask
    if underscores == "Drop" and "x_b" in hashed.headers:
        assert not told  # it goes no further, and is not there
    else:
        assert told  # of which how many depends on the port, which keys are hashed with
