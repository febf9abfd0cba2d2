"""The stream's version: both ends speak the same one, and what a message looks like does not change without it."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from edgefast.table.shards import make_resource
from edgefast.xds import protobuf
from edgefast.xds.messages import (
    COMMIT,
    STREAM_VERSION,
    Node,
    Request,
    decode_request,
    encode_commit,
    encode_item,
    encode_opening,
    encode_request,
    encode_response,
)
from edgefast.xds.rejections import Refused

pytestmark = pytest.mark.pure

NODE = Node("edge-1", formats=("aa",), version="1.0", workers=3, tickets=True)


def test_who_speaks_another_version_reads_none_of_our_tables() -> None:
    opening = next(iter(encode_opening(NODE, {}, "")))
    ours = f"edgefast.stream/{STREAM_VERSION}/aa"
    assert decode_request(opening).node == NODE
    for other in (
        "edgefast.table/aa",
        "edgefast.stream/1/aa",
        f"edgefast.stream/{STREAM_VERSION}0/aa",
    ):
        told = protobuf.DeltaDiscoveryRequest.FromString(opening)
        assert ours in told.node.client_features
        told.node.client_features[:] = [other]
        node = decode_request(told.SerializeToString()).node
        assert node is not None and not node.formats


def test_messages_look_as_this_version_has_them() -> None:
    """When this fails, a message has changed: raise STREAM_VERSION if the other end would read it otherwise."""
    one = make_resource("cluster", "a", b"x")
    messages = [
        *encode_opening(NODE, {("cluster", "a"): "v"}, "w"),
        encode_response("cluster", [encode_item(one)], ["b"], "1", "w"),
        encode_response("cluster", [], ["b"], "1", "w", commits=True),
        encode_commit("w", "2"),
        encode_request(
            Request(type="cluster", nonce="1", refused=(Refused("cluster", "a", "no"),))
        ),
        encode_request(Request(type=COMMIT, nonce="2")),
    ]
    seen = blake2b(digest_size=8)
    for message in messages:
        # Of each map one entry: their order is nobody's.
        seen.update(message)
    assert (STREAM_VERSION, seen.hexdigest()) == (5, "4154bd4744d598af")
