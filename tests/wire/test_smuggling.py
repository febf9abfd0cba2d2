"""Thousands of generated framing tricks: every one is refused, or forwarded as the one message the reference reads.

Cases are written by hand, these are products: every known way of disguising a framing header, times where it stands,
times what stands beside it, times the body that would profit. The rule is the oracle; no row says what must happen.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.client import Client, NoResponse
from wire.harness.oracle import settle
from wire.harness.reference import observed, parse_until_fault
from wire.harness.responses import Response
from wire.harness.site import Site

CODINGS = [
    "Transfer-Encoding: chunked", "Transfer-Encoding : chunked", "Transfer-Encoding:chunked",
    "Transfer-Encoding:\tchunked", "Transfer-Encoding: chunked\t", " Transfer-Encoding: chunked",
    "X: X\nTransfer-Encoding: chunked", "X: X\rTransfer-Encoding: chunked",
    "Transfer-Encoding\r\n : chunked", "Transfer-Encoding:\r\n chunked",
    "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity, chunked", "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: \x00chunked", "Transfer-Encoding: chunked\x00", "Transfer-Encoding: \x0bchunked",
    "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: 'chunked'", "Transfer-Encoding: chunked;x",
    "Transfer-Encoding: ,chunked", "Transfer_Encoding: chunked", "Transfer.Encoding: chunked",
    "Transfer-Encoding\x00: chunked", "\x00Transfer-Encoding: chunked", "TRANSFER-ENCODING: CHUNKED",
    "Transfer-Encoding: chunk", "Transfer-Encoding: cow", "Transfer-Encoding: gzip, chunked",
    "Content-Encoding: chunked", "Transfer-encoding: identity", "Transfer-Encoding:",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
    "Foo: bar\r\n\rTransfer-Encoding: chunked", "Trailer: x\r\nTransfer-Encoding: chunked",
    "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked", "TE: chunked", "\xa0Transfer-Encoding: chunked",
]  # fmt: skip
LENGTHS = [
    "", "Content-Length: {n}", "Content-Length: 0", "Content-Length: {n}\r\nContent-Length: 0",
    "Content-Length: 0\r\nContent-Length: {n}", "Content-Length : {n}", "Content-Length: +{n}",
    "Content-Length: {n}, {n}", "Content-Length: 0{n}", "Content-Length: {n} ", "Content_Length: {n}",
    "Content-Length: {n}\x00", "\tContent-Length: {n}", "Content-Length:\r\n {n}", "Content-Length: {n}.0",
    "Content-Length\t: {n}", "X-Content-Length: {n}", "Content-Length: 0x{n}", "Content-Length:{n}",
    "Connection: Content-Length\r\nContent-Length: {n}",
]  # fmt: skip
BODIES = [
    b"0\r\n\r\n", b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n",
    b"5;x\nhello\r\n0\r\n\r\n", b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", b"0\r\nX: GET /smuggled HTTP/1.1\r\n\r\n",
    b"00\r\n\r\n", b"0;a\r\n\r\nG", b"",
]  # fmt: skip
STARTS = [
    "POST / HTTP/1.1\r\nHost: a",
    "GET / HTTP/1.1\r\nHost: a",
    "POST / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive",
]
FOLLOWING = b"GET /following HTTP/1.1\r\nHost: a\r\n\r\n"
SEED = 20_240


def build_inputs() -> list[bytes]:
    """A deterministic sample of the products, each family member at least once."""
    found: list[bytes] = []
    for coding, length, body in itertools.product(["", *CODINGS], LENGTHS, BODIES):
        lines = [STARTS[len(found) % len(STARTS)]]
        extra = [line for line in (coding, length.format(n=len(body))) if line]
        lines += extra if len(found) % 2 else extra[::-1]
        found.append("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
    chooser = random.Random(SEED)
    chooser.shuffle(found)
    return found


INPUTS = build_inputs()
GROUPS = 8


@pytest.fixture(scope="module")
def site(origin: RecordingOrigin) -> Iterator[Site]:
    objects = [make.route("all", [make.rule("origin")])]
    objects += make.service("origin", [("127.0.0.1", origin.port)])
    with Site(objects) as running:
        yield running


def answers_to(client: Client, data: bytes) -> list[Response]:
    """All answers to an input that a good request follows, until the connection ends or that one is answered."""
    client.expect(*["GET"] * 8)
    client.send(data + FOLLOWING)
    found: list[Response] = []
    while True:
        try:
            found.append(client.read_response(5))
        except NoResponse:
            assert client.ended == "eof", f"{client.ended} after {found}"
            return found
        if found[-1].closes or found[-1].body == b"/following":
            return found


@pytest.mark.parametrize("group", range(GROUPS))
def test_generated_framing(group: int, site: Site, origin: RecordingOrigin) -> None:
    """Refused and closed, or exactly the reference's messages, answered in order."""
    origin.take()
    for data in INPUTS[group::GROUPS]:
        with site.client() as client:
            found = answers_to(client, data)
            if found[-1].closes:
                client.finish()
                assert client.read_to_end(5) == []
        received = origin.take() if found[-1].status == 200 else None
        served = [item for item in found if item.status == 200]
        context = f"{data!r}: {[item.status for item in found]}"
        assert all(item.status in (200, 400, 501, 413) for item in found), context
        assert all(item.status == 200 for item in found[:-1]), f"a refusal that goes on: {context}"
        if found[-1].status != 200:
            assert found[-1].closes, context
        if served:
            reference, fault = parse_until_fault(data + FOLLOWING)
            assert len(reference) >= len(served), f"h11 refuses it ({fault}): {context}"
            assert [item.body for item in served] == [
                message.target for message in reference[: len(served)]
            ], context
            received = received or settle(origin, ("127.0.0.1", site.port))
            got = [observed(message) for message in received.messages]
            assert Counter(got) == Counter(reference[: len(served)]), context
            assert not received.faults, context
    received = settle(origin, ("127.0.0.1", site.port))
    assert not received.messages and not received.open_partials
    assert not received.faults
