"""What the scan accepts, llhttp (httptools) and h11 must accept too, and read the same: method, target, body, keep-alive.

The scan may refuse more. Known differences are named where they are passed over.
"""

from __future__ import annotations

import h11
import httptools
import pytest
from hypothesis import HealthCheck, assume, given, settings

from csrc import heads, native
from csrc.reference import Head, Limits

pytestmark = pytest.mark.pure

MANY = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
CHUNKED = b"5;a=b\r\nhello\r\n0\r\nX-Trailer: c\r\n\r\n"


class Witness:
    """The callbacks of httptools; keep-alive is only known while the head is fresh."""

    def __init__(self) -> None:
        self.parser: httptools.HttpRequestParser | httptools.HttpResponseParser | None = None
        self.keep_alive: list[bool] = []
        self.done = 0
        self.body = b""

    def on_headers_complete(self) -> None:
        assert self.parser is not None
        self.keep_alive.append(self.parser.should_keep_alive())

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.done += 1


def make_body(head: Head) -> tuple[bytes, bytes]:
    """A body as announced: on the wire, decoded."""
    if head.body == "chunked":
        return CHUNKED, b"hello"
    plain = b"x" * head.content_length
    return plain, plain


def accepted(data: bytes, method: bytes | None = None) -> Head:
    """The scan's reading of a head that it accepts and whose body is small."""
    head = native.scan(data, Limits(underscore="allow", raw=True, http10="allow"), method)
    assume(isinstance(head, Head) and head.content_length < 1000)
    assert isinstance(head, Head)
    return head


def speaks_of_upgrade(head: Head) -> bool:
    """llhttp leaves HTTP for any Upgrade, h2c too, and on Proxy-Connection's word: the scan does not."""
    return any(f.name.lower() == b"upgrade" for f in head.fields)


@MANY
@given(heads.requests())
def test_llhttp_request(data: bytes) -> None:
    head = accepted(data)
    witness = Witness()
    witness.parser = parser = httptools.HttpRequestParser(witness)
    wire, plain = make_body(head)
    try:
        parser.feed_data(data[: head.length])
        if (
            head.minor == 0
        ):  # the scan closes more: Proxy-Connection, a body without a length, also close
            assert head.keep_alive <= witness.keep_alive[0]
        else:
            assert witness.keep_alive == [head.keep_alive]
        assert witness.done == (head.body == "none")
        parser.feed_data(wire)
    except httptools.HttpParserUpgrade:
        assert speaks_of_upgrade(head)
        return
    assert (witness.done, witness.body) == (1, plain)
    assert parser.get_method() == head.method
    assert parser.get_http_version() == f"1.{head.minor}"


@MANY
@given(heads.responses())
def test_llhttp_response(data: bytes) -> None:
    head = accepted(data, b"GET")
    assume(head.status not in (100, 101, 103))  # llhttp goes on with the final response
    witness = Witness()
    witness.parser = parser = httptools.HttpResponseParser(witness)
    wire, plain = make_body(head)
    parser.feed_data(data[: head.length])
    assert len(witness.keep_alive) == 1
    if head.status == 204 or head.minor == 0:
        # The scan gives a connection up that llhttp would keep: after a 204 that announces a body, and after an
        # HTTP/1.0 response with both close and keep-alive (RFC 9112 9.3: close comes first). Never the other way.
        assert head.keep_alive <= witness.keep_alive[0]
    else:
        assert witness.keep_alive == [head.keep_alive]
    assert parser.get_status_code() == head.status
    assert parser.get_http_version() == f"1.{head.minor}"
    if head.body == "eof":
        parser.feed_data(b"until the end")
        assert (witness.done, witness.body) == (0, b"until the end")
    elif head.status not in (204, 304):
        parser.feed_data(wire)
        assert (witness.done, witness.body) == (1, plain)


@MANY
@given(heads.requests())
def test_h11_request(data: bytes) -> None:
    head = accepted(data)
    peer = h11.Connection(h11.SERVER)
    wire, plain = make_body(head)
    # h11 does not ignore an empty line before the request (RFC 9112 2.2).
    peer.receive_data(data[: head.length].removeprefix(b"\r\n") + wire)
    event = peer.next_event()
    assert isinstance(event, h11.Request)
    assert event.method == head.method
    assert event.http_version == b"1.%d" % head.minor
    if not head.scheme:
        assert event.target == head.target
    values = [value.lower() for _, value in event.headers]  # h11 lowers Transfer-Encoding
    assert values == [f.value.lower() for f in head.fields]
    body = b""
    while isinstance(event := peer.next_event(), h11.Data):
        body += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    assert body == plain


@MANY
@given(heads.responses())
def test_h11_response(data: bytes) -> None:
    head = accepted(data, b"GET")
    assume(head.status >= 200)
    peer = h11.Connection(h11.CLIENT)
    peer.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
    peer.send(h11.EndOfMessage())
    wire, plain = make_body(head)
    if head.body == "eof":
        wire = plain = b"until the end"
    peer.receive_data(data[: head.length] + wire)
    event = peer.next_event()
    assert isinstance(event, h11.Response)
    assert event.status_code == head.status
    body = b""
    if head.body == "eof":
        peer.receive_data(b"")
    while isinstance(event := peer.next_event(), h11.Data):
        body += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    assert body == plain
