"""Filters of a rule and of its backendRefs together: both apply, and what both say the backendRef decides."""

from __future__ import annotations

import pytest

from core.backend import Call, say
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_rule
from core.world import World
from edgefast import ir

HOST = ir.Rewrite(hostname="backend.internal")
PATH = ir.Rewrite(path=ir.PathRewrite("full", "/new"))


@pytest.mark.parametrize(
    ("outer", "inner", "host", "path"),
    [
        (PATH, HOST, "backend.internal", "/new"),
        (HOST, PATH, "backend.internal", "/new"),
        (HOST, ir.Rewrite(hostname="other.internal"), "other.internal", "/old"),
        (PATH, ir.Rewrite(path=ir.PathRewrite("full", "/newer")), "test", "/newer"),
        (None, HOST, "backend.internal", "/old"),
        (PATH, None, "test", "/new"),
    ],
)
async def test_rewrites_add_up(
    world: World, outer: ir.Rewrite | None, inner: ir.Rewrite | None, host: str, path: str
) -> None:
    calls: list[Call] = []

    def note(call: Call) -> bytes:
        calls.append(call)
        return say("x")(call)

    backend = await world.backend(note)
    rule = make_rule(ir.BackendRef(cluster=CLUSTER, rewrite=inner), rewrite=outer)
    client = await world.client(await world.serve(make_fleet(rule, make_cluster(backend.port))))
    await client.ask(make_request("/old"))
    (call,) = calls
    assert call.message.value(b"host") == host.encode()
    assert call.message.target == path.encode()


async def test_no_star_is_exposed_with_credentials(world: World) -> None:
    """Browsers would take it for a header's name (HTTPCORSFilter.exposeHeaders)."""
    backend = await world.backend(say("x"))
    cors = ir.Cors(allow_origins=("http://a.test",), expose_headers=("*",), allow_credentials=True)
    fleet = make_fleet(make_rule(cors=cors), make_cluster(backend.port))
    client = await world.client(await world.serve(fleet))
    answer = await client.ask(make_request(headers=[("origin", "http://a.test")]))
    assert answer.value("access-control-allow-credentials") == "true"
    assert answer.value("access-control-expose-headers") is None
