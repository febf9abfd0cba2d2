"""Every reason to refuse a head has a counter, and a request that has it."""

from __future__ import annotations

import pytest

from core.fleets import make_cluster, make_fleet, make_listener
from core.world import World
from edgefast.core.cells import HEAD_ERRORS

GET = b"GET / HTTP/1.1\r\n"
HOST = b"host: test\r\n"
END = b"\r\n"
POST = b"POST / HTTP/1.1\r\n" + HOST

HEADS = {
    "line": b"GET  / HTTP/1.1\r\n" + HOST + END,
    "bare_lf": b"GET / HTTP/1.1\n" + HOST + END,
    "method": b"G(T / HTTP/1.1\r\n" + HOST + END,
    "unknown_method": b"BREW / HTTP/1.1\r\n" + HOST + END,
    "refused_method": b"TRACE / HTTP/1.1\r\n" + HOST + END,
    "target": b"GET /<> HTTP/1.1\r\n" + HOST + END,
    "version": b"GET / HTTP/x.1\r\n" + HOST + END,
    "http09": b"GET /\r\n",
    "http10": b"GET / HTTP/1.0\r\n" + HOST + END,
    "version_unsupported": b"GET / HTTP/2.0\r\n" + HOST + END,
    "line_too_long": b"GET /" + b"x" * 300,
    "head_too_large": GET + HOST + b"".join(b"x-%03d: %s\r\n" % (i, b"v" * 200) for i in range(5)),
    "too_many_headers": GET + HOST + b"".join(b"x-%d: 1\r\n" % i for i in range(12)) + END,
    "name": GET + HOST + b"a b: 1\r\n" + END,
    "value": GET + HOST + b"a: \x01\r\n" + END,
    "fold": GET + HOST + b"a: 1\r\n 2\r\n" + END,
    "underscore": GET + HOST + b"a_b: 1\r\n" + END,
    "no_host": GET + END,
    "many_hosts": GET + HOST + HOST + END,
    "host": GET + b"host: a b\r\n" + END,
    "authority": b"GET http://other/ HTTP/1.1\r\n" + HOST + END,
    "content_length": POST + b"content-length: +1\r\n" + END,
    "many_content_lengths": POST + b"content-length: 1\r\ncontent-length: 1\r\n" + END,
    "transfer_encoding": POST + b"transfer-encoding: chunked, chunked\r\n" + END,
    "coding_unknown": POST + b"transfer-encoding: gzip, chunked\r\n" + END,
    "both_lengths": POST + b"content-length: 1\r\ntransfer-encoding: chunked\r\n" + END,
    "expect": POST + b"content-length: 1\r\nexpect: magic\r\n" + END,
}


@pytest.mark.parametrize("name", HEADS)
async def test_refused(world: World, name: str) -> None:
    listener = make_listener(request_line=256, request_head=1024, header_count=10)
    client = await world.client_of(make_fleet(listener, make_cluster(1)))
    await client.send(HEADS[name])
    answer = await client.response()
    assert answer.status in (400, 405, 414, 417, 426, 431, 501, 505)
    moved = {error for error in HEAD_ERRORS if world.counters[f"head_refused_{error}"]}
    assert moved == {name}
    assert world.counters[f"head_refused_{name}"] == 1
    assert world.counters["requests_active"] == 0


def test_every_reason_has_a_request() -> None:
    of_responses = {"status"}  # counted as upstream_protocol_errors
    assert HEADS.keys() | of_responses == set(HEAD_ERRORS)
