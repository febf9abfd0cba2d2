"""Headers that are added to answers of success and redirection alone: of backends and of the proxy, over both versions of HTTP."""

from __future__ import annotations

import pytest

from core.backend import Call, make_response
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.asking import Asker
from core.world import World
from edgefast import ir

OPS = ir.HeaderOps(add=(("x-all", "1"),), on_success=(("x-ok", "1"),))
WITH = (200, 201, 204, 206, 301, 302, 303, 304, 307, 308)


def answer(call: Call) -> bytes:
    status = int(call.path[1:4])
    return make_response(b"" if status in (204, 304) else b"x", status)


@pytest.mark.parametrize("status", [*WITH, 202, 300, 400, 404, 500, 503])
async def test_answers_of_backends(world: World, status: int) -> None:
    backend = await world.backend(answer)
    rule = make_rule(response_headers=OPS)
    fleet = make_fleet(make_listener(), make_host(rule), make_cluster(backend.port))
    client = await world.client_of(fleet)
    found = await client.ask(make_request(f"/{status}"))
    wanted = (status, "1", "1" if status in WITH else None)
    assert (found.status, found.value("x-all"), found.value("x-ok")) == wanted


@pytest.mark.parametrize(("status", "value"), [(200, "1"), (403, None), (503, None)])
async def test_answers_of_the_proxy(world: World, status: int, value: str | None) -> None:
    rule = make_rule(response_headers=OPS, direct=ir.DirectResponse(status=status, body=b"x"))
    client = await world.client_of(make_fleet(make_listener(), make_host(rule)))
    found = await client.ask(make_request())
    assert (found.status, found.value("x-all"), found.value("x-ok")) == (status, "1", value)


async def test_http2(world: World) -> None:
    backend = await world.backend(answer)
    rule = make_rule(response_headers=ir.HeaderOps(on_success=(("x-ok", "1"),)))
    fleet = make_fleet(make_listener(), make_host(rule), make_cluster(backend.port))
    asker = Asker(await world.client(await world.serve(fleet)))
    for status, value in ((200, "1"), (404, None)):
        head = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a.test")]
        found = await asker.ask([*head, (b":path", b"/%d" % status)])
        assert (found.status, found.value("x-ok")) == (status, value)
