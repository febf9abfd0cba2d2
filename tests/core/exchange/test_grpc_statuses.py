"""What `edgefast explain` says of calls is what an engine does: the status of each own answer, heads of gRPC-Web."""

from __future__ import annotations

import pytest

from core.client import make_request
from core.exchange.test_grpc import grpc_head
from core.fleets import make_cluster, make_fleet, make_listener, make_rule
from core.world import World
from edgefast import ir
from edgefast.explain.client import find_client
from edgefast.explain.explanation import Answer
from edgefast.explain.forwarded import RANDOM_ID, write_head
from edgefast.explain.grpc_status import name_statuses
from edgefast.explain.head import Head, scan_head

STATUSES = (400, 401, 403, 404, 408, 413, 421, 429, 500, 501, 502, 503, 504)


@pytest.mark.parametrize("status", STATUSES)
async def test_own_answers(world: World, status: int) -> None:
    client = await world.client_of(make_fleet(make_rule(status=status), make_cluster()))
    await client.send(grpc_head())
    assert (await client.response()).status == 200
    (told,) = name_statuses([Answer(kind="status", check="rule", status=status)], grpc=True)
    assert world.lines()[0]["grpc_status"] == told.grpc_status
    (plain,) = name_statuses([told], grpc=False)
    assert plain == told


@pytest.mark.parametrize(
    "kind", ["application/grpc-web", "Application/gRPC-Web+proto;x=y", "application/grpc-web-text"]
)
@pytest.mark.parametrize("body", [b"", b"AAAAAAA="])
async def test_heads_of_browsers(world: World, kind: str, body: bytes) -> None:
    backend = await world.backend()
    http = ir.HttpSettings(connect_timeout=30_000, grpc=ir.GrpcSettings(web=True))
    port = await world.serve(make_fleet(make_listener(grpc=http.grpc), make_cluster(backend.port)))
    raw = make_request("/a.B/C", method="POST", headers=[("content-type", kind)], body=body)
    client = await world.client(port)
    await client.send(raw)
    got = "".join((await backend.call()).message.raw.decode().partition("\r\n\r\n")[:2])
    head = scan_head(raw[: raw.index(b"\r\n\r\n") + 4], http, tls=False)
    assert isinstance(head, Head)
    who = find_client(head, "127.0.0.1", http.client_address)
    said = "\r\n".join((*write_head(head, make_rule(), None, 0, who, http), "", ""))
    before, _, after = said.partition(RANDOM_ID)
    assert got.startswith(before) and got.endswith(after)
    client.close()
