"""The decoder of a gRPC service's answer against protobuf's own: whatever the bytes, never more is read than it reads."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from core.policy.checkmessages import RawCheckResponse, denying, passing
from edgefast.core.engine import read_check

pytestmark = pytest.mark.pure

UNSAID = 4
LINES = 128

_bytes = st.binary(max_size=12)
_code = st.integers(-(2**31), 2**31 - 1)


@st.composite
def header(draw: st.DrawFn) -> dict[str, Any]:
    made: dict[str, Any] = {"header": {"key": draw(_bytes), "value": draw(_bytes)}}
    if draw(st.booleans()):
        made["header"]["raw_value"] = draw(_bytes)
    if draw(st.booleans()):
        made["append_action"] = draw(st.integers(-2, 6))
    if draw(st.booleans()):
        made["append"] = {"value": draw(st.booleans())}
    return made


_headers = st.lists(header(), max_size=4)


@st.composite
def answer(draw: st.DrawFn) -> bytes:
    """Fields in any order, known or not, some of them twice."""
    parts: list[bytes] = []
    for _ in range(draw(st.integers(0, 4))):
        made = RawCheckResponse()
        what = draw(st.sampled_from(["status", "denied", "ok", "unknown"]))
        if what == "status":
            made.status.code = draw(_code)
            made.status.message = draw(_bytes)
        elif what == "denied":
            made.denied_response.SetInParent()
            if draw(st.booleans()):
                made.denied_response.status.code = draw(_code)
            made.denied_response.body = draw(_bytes)
            for one in draw(_headers):
                made.denied_response.headers.add(**one)
        elif what == "ok":
            made.ok_response.SetInParent()
            for one in draw(_headers):
                made.ok_response.headers.add(**one)
            for one in draw(_headers):
                made.ok_response.response_headers_to_add.add(**one)
            made.ok_response.headers_to_remove.extend(draw(st.lists(_bytes, max_size=3)))
            if draw(st.booleans()):
                made.ok_response.query_parameters_to_remove.append(b"x")
        else:
            parts.append(draw(st.sampled_from(UNKNOWN)))
        parts.append(made.SerializeToString())
    return b"".join(parts)


UNKNOWN = (
    b"\x22\x02\x0a\x00",  # dynamic_metadata
    b"\x50\x96\x01",  # 10, a varint
    b"\x51" + bytes(8),
    b"\x55" + bytes(4),
    b"\x08\x07",  # 1, as a number: no status
    b"\xfa\xff\xff\xff\x0f\x00",  # the highest number there is
)


def oracle(data: bytes) -> tuple[Any, ...] | None:
    try:
        found = RawCheckResponse.FromString(data)
    except DecodeError:
        return None
    side = {None: 0, "denied_response": 2, "ok_response": 3}[found.WhichOneof("http_response")]
    denied, ok = found.denied_response, found.ok_response
    return (
        found.status.code if found.HasField("status") else None,
        side,
        denied.status.code,
        denied.body,
        _told(denied.headers if side == 2 else ok.headers),
        [one.lower() for one in ok.headers_to_remove],
        _told(ok.response_headers_to_add),
        bool(ok.query_parameters_to_set or ok.query_parameters_to_remove),
    )


def _told(headers: Any) -> list[tuple[bytes, bytes, int]]:
    found = []
    for one in headers:
        if one.HasField("append"):
            action = 0 if one.append.value else 2
        elif one.append_action == 0:
            action = UNSAID
        else:
            action = one.append_action if 0 < one.append_action <= 3 else 2
        value = one.header.value or one.header.raw_value
        found.append((one.header.key.lower(), value, action))
    return found


@settings(max_examples=200, deadline=None)
@given(answer())
def test_what_is_one_is_read_as_protobuf_reads_it(data: bytes) -> None:
    assert read_check(data) == oracle(data)


@settings(max_examples=250, deadline=None)
@given(answer(), st.data())
def test_what_is_none_is_never_one(data: bytes, draw: st.DataObject) -> None:
    """Bytes that were changed: what we take for a message protobuf takes for the same."""
    spoilt = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 3))):
        if not spoilt:
            break
        at = draw.draw(st.integers(0, len(spoilt) - 1))
        match draw.draw(st.sampled_from(["change", "drop", "insert"])):
            case "change":
                spoilt[at] = draw.draw(st.integers(0, 255))
            case "drop":
                del spoilt[at]
            case _:
                spoilt.insert(at, draw.draw(st.integers(0, 255)))
    found = read_check(bytes(spoilt))
    assert found is None or found == oracle(bytes(spoilt))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=64))
def test_any_bytes(data: bytes) -> None:
    found = read_check(data)
    assert found is None or found == oracle(data)


def test_a_part_of_one_is_no_leave() -> None:
    """Of what has not come whole, only fields that have count; and a message that is whole has no part."""
    for whole in (passing(("x-user", "me"), remove=("cookie",)), denying(("x", "y"), status=401)):
        for n in range(len(whole)):
            found = read_check(whole[:n], False)
            assert found is not None
            if n < len(whole) and found[1]:
                assert found[1] == 0 or found == read_check(whole)
            assert read_check(whole[:n]) is None or n in _ends(whole)


def _ends(whole: bytes) -> set[int]:
    """Where its fields end: one that ends there is whole, too."""
    at, found = 0, {0}
    while at < len(whole):
        size, at = whole[at + 1], at + 2
        assert size < 128
        at += size
        found.add(at)
    return found


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",  # a length that is not there
        b"\x0a\x05\x08\x07",  # ... that is too long
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # ... that is all there could be
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x00\x00",  # no field has number 0
        b"\x0b\x0c",  # a group
        b"\x0e\x00\x0f\x00",  # no such wire type
        b"\x80" * 11 + b"\x01",  # a varint without end
        b"\x8a\x80\x80\x80\x80\x80\x80\x80\x80\x02\x00",  # a tag of 65 bits
        b"\x0a\x02\x08\x80",  # a code that is cut off
        b"\x12\x02\x0a\x05",
        b"\x1a\x04\x12\x02\x0a\x05",
    ],
)
def test_what_is_no_message(data: bytes) -> None:
    assert read_check(data) is None


def test_its_lines_have_a_bound() -> None:
    assert read_check(passing(*[("x", "y")] * LINES)) is not None
    assert read_check(passing(*[("x", "y")] * (LINES + 1))) is None
    assert read_check(passing(*[("x", "y")] * LINES, remove=("z",))) is None
    assert read_check(passing(remove=("z",) * (LINES + 1))) is None
    assert read_check(denying(*[("x", "y")] * (LINES + 1), status=401)) is None
