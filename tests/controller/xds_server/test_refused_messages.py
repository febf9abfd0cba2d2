"""Messages that end a stream whose credential is good: broken, out of order, replayed, of another node."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any

import pytest

from controller.xds_server.refusal import Cause
from edgefast.xds.limits import MESSAGE_LIMIT
from edgefast.xds.messages import METHOD, Node, Request, encode_opening, encode_request
from edgefast.xds.rejections import find_lasting
from tests.controller.xds_server.loopback import FLEET, POD, Loopback, client_pair, ended
from tests.controller.xds_server.refusing import OTHER_POD, check, opening, serving

pytestmark = pytest.mark.wire


@pytest.fixture
def loopback(tmp_path: Path) -> contextlib.AbstractAsyncContextManager[Loopback]:
    return serving(tmp_path)


@pytest.mark.parametrize(
    "message, cause",
    [
        (b"\xff", "message"),
        (opening()[:-1], "message"),  # truncated
        (b"", "message"),  # no type
        (opening().replace(b"edge.v1.Secret", b"envoy.v3.Admin"), "message"),
        (encode_request(Request(type="secret", subscribe=("*",))), "protocol"),  # no node
        (encode_request(Request(type="cluster", node=Node(POD), subscribe=("*",))), "protocol"),
        (encode_request(Request(type="secret", node=Node(POD))), "protocol"),
        (encode_request(Request(type="secret", node=Node(POD), subscribe=("a",))), "protocol"),
        (encode_request(Request(type="secret", nonce="1")), "protocol"),  # an answer to nothing
    ],
)
async def test_a_first_message_that_is_none(
    loopback: Loopback, caplog: Any, message: bytes, cause: Cause
) -> None:
    async with loopback.channel(client_pair(loopback.ring)) as channel:
        said = await ended(channel.stream_stream(METHOD)(), message)
    check(loopback, said, "INVALID_ARGUMENT", cause, caplog)


async def test_a_proxy_of_another_format_is_told_and_told_of(
    loopback: Loopback, caplog: Any
) -> None:
    """It keeps its last table: nothing is sent, the log and the leader's statuses name it and say why."""
    heard: list[str] = []
    loopback.fleets.on_ack = heard.append
    async with loopback.channel(client_pair(loopback.ring)) as channel:
        node = Node(POD, ("0123456789abcdef",), "0.0.9")
        held = {("virtual_host", f"n{i}"): "v" * 16 for i in range(10_000)}
        said = await ended(
            channel.stream_stream(METHOD)(), *encode_opening(node, held, "of-theirs")
        )
    check(loopback, said, "FAILED_PRECONDITION", "format", caplog)
    assert f"proxy {POD} does not support a table format" in said.details
    assert loopback.server.counts.messages == 0
    ack = loopback.fleets.acks(FLEET)[POD]
    assert (ack.version, ack.connected) == ("of-theirs", False)
    assert find_lasting(ack.refused) == said.details
    assert heard == [FLEET]


async def test_a_message_above_the_limit_ends_the_stream(loopback: Loopback) -> None:
    async with loopback.channel(client_pair(loopback.ring)) as channel:
        call = channel.stream_stream(METHOD)()
        said = await ended(call, bytes(MESSAGE_LIMIT + 1))
    assert said.code == "RESOURCE_EXHAUSTED"
    assert loopback.server.counts.messages == 0


async def test_a_replayed_answer_ends_the_stream(loopback: Loopback, caplog: Any) -> None:
    async with loopback.proxy() as proxy:
        batch = await proxy.take()
        await proxy.call.write(encode_request(Request(type=batch[0].type, nonce=batch[0].nonce)))
        said = await proxy.end()
    check(loopback, said, "INVALID_ARGUMENT", "replayed", caplog)


async def test_a_replayed_opening_ends_the_stream(loopback: Loopback, caplog: Any) -> None:
    async with loopback.proxy() as proxy:
        await proxy.take()
        again = Request(type="secret", node=proxy.node, subscribe=("*",))
        await proxy.call.write(encode_request(again))
        said = await proxy.end()
    check(loopback, said, "INVALID_ARGUMENT", "replayed", caplog)


async def test_the_node_of_a_later_message_is_looked_at_too(
    loopback: Loopback, caplog: Any
) -> None:
    async with loopback.proxy() as proxy:
        batch = await proxy.batch()
        answer = Request(type=batch[0].type, nonce=batch[0].nonce, node=Node(OTHER_POD))
        await proxy.call.write(encode_request(answer))
        said = await proxy.end()
    check(loopback, said, "PERMISSION_DENIED", "node", caplog)


@pytest.fixture(autouse=True)
def _has_received(caplog: Any) -> None:
    caplog.set_level(logging.INFO, logger="edgefast.controller.push")
