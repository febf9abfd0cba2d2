"""What `edgefast explain` says that a backend of HTTP/2 gets is what it gets."""

from __future__ import annotations

import pytest

from core.client import make_request
from core.fleets import make_rule
from core.h2.backend import H2Backend
from core.h2.test_backend import start
from core.h2.test_both import WEBSOCKET
from core.world import World
from edgefast import ir
from edgefast.explain.client import find_client
from edgefast.explain.forwarded import RANDOM_ID, to_http2, write_head
from edgefast.explain.head import Head, scan_head

HTTP = ir.HttpSettings(connect_timeout=30_000)  # as core.fleets has it
HEADS = {
    "plain": make_request("/a?b=c", headers=[("X-A", "B: c"), ("accept", "*/*")]),
    "trailers wanted": make_request("/a", headers=[("TE", "trailers"), ("connection", "te")]),
    "gRPC": make_request(
        "/a.B/C",
        method="POST",
        headers=[("te", "trailers"), ("content-type", "application/grpc")],
        body=b"x",
    ),
    "a chunked body": make_request("/a", method="POST", headers=[("transfer-encoding", "chunked")]),
    "a connection's own": make_request(
        "/a", headers=[("keep-alive", "5"), ("connection", "keep-alive, x"), ("x", "y")]
    ),
    "a WebSocket": make_request("/chat", headers=[*WEBSOCKET, ("sec-websocket-version", "13")]),
}


@pytest.mark.parametrize("kind", HEADS)
async def test_a_backend_sees_what_is_explained(world: World, kind: str) -> None:
    backend = H2Backend(connects=True)
    port = await start(world, backend)
    client = await world.client(port)
    raw = HEADS[kind]
    await client.send(raw)
    got = (await backend.ask()).fields
    head = scan_head(raw[: raw.index(b"\r\n\r\n") + 4], HTTP, tls=False)
    assert isinstance(head, Head)
    who = find_client(head, "127.0.0.1", HTTP.client_address)
    said = to_http2(write_head(head, make_rule(), None, 0, who, HTTP), head)
    seen = dict(got)
    protocol = [f":protocol: {seen[':protocol']}"] if ":protocol" in seen else []
    lines = [
        f"{seen[':method']} {seen[':path']} HTTP/2",
        f"host: {seen[':authority']}",
        *protocol,
        *(f"{name}: {value}" for name, value in got if not name.startswith(":")),
    ]
    assert lines == [one.replace(RANDOM_ID, seen["x-request-id"]) for one in said]
    client.close()
