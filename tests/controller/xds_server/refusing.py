"""What the tests of refusals share: a server with two fleets, and what every refusal has to be."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from controller.xds_server.refusal import Cause
from edgefast.xds.messages import METHOD, Node, Request, encode_request
from tests.controller.xds_server.loopback import (
    FLEET,
    POD,
    SYSTEM,
    Ended,
    Loopback,
    ended,
    shards_of,
)

TABLE = shards_of({"a": "secret-of-the-table"})
OTHER = f"{SYSTEM}/edge-tenant-b-gw-0ac91f5a"
OTHER_POD = "edge-tenant-b-gw-0ac91f5a-5d9c7-zzzzz"
STREAM = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
UNARY = "/envoy.service.cluster.v3.ClusterDiscoveryService/FetchClusters"


@contextlib.asynccontextmanager
async def serving(folder: Path, **more: Any) -> AsyncIterator[Loopback]:
    """Open a server that serves two fleets."""
    async with Loopback(folder / "keys", **more) as loopback:
        loopback.fleets.publish(FLEET, TABLE)
        loopback.fleets.publish(OTHER, TABLE)
        yield loopback


def check(loopback: Loopback, said: Ended, code: str, cause: Cause, caplog: Any) -> None:
    """The peer was told, it was counted, and it was logged."""
    assert said.code == code, said
    assert loopback.server.refusals.counts[cause] == 1
    assert sum(loopback.server.refusals.counts.values()) == 1
    assert [one for one in caplog.messages if f"({cause})" in one]
    for text in (*caplog.messages, said.details):
        assert "eyJ" not in text and "c2VjcmV0" not in text and "secret-of" not in text
        assert "PRIVATE" not in text


async def with_token(loopback: Loopback, token: str, *messages: bytes) -> Ended:
    """Return how a call with this token ends."""
    async with loopback.channel(None, loopback.tokens) as channel:
        call = channel.stream_stream(METHOD)(metadata=(("authorization", f"Bearer {token}"),))
        return await ended(call, *messages)


def opening(node: str = POD) -> bytes:
    return encode_request(Request(type="secret", node=Node(node), subscribe=("*",)))
