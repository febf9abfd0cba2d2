"""The chunked decoder against the slow reference, whole and cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csrc import heads, native, reference_chunk

pytestmark = pytest.mark.pure

MANY = settings(max_examples=300, deadline=None, derandomize=True, database=None)

EXTENSIONS = [b""] * 6 + [
    b";a",
    b";a=b",
    b';a="b\\"c"',
    b";a;b=c",
    b"; a",
    b";",
    b";a=",
    b';a="b',
    b" ",
]
TRAILERS = [
    b"a: b",
    b"Content-Length: 5",
    b"A_b:\t\x80",
    b"a:",
    b"bad",
    b": a",
    b" a: b",
    b"a : b",
    b"a: \x00",
]
ENDS = [b"\r\n"] * 40 + [b"\n", b"\r", b"", b"XX"]


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Mostly a chunked body."""
    parts: list[bytes] = []
    for chunk in draw(st.lists(st.binary(min_size=1, max_size=20), max_size=3)):
        size = draw(st.sampled_from([b"%x", b"%X", b"%03x", b"%x", b"0x%x", b"%x ", b"%017x"]))
        parts += [size % len(chunk), draw(st.sampled_from(EXTENSIONS)), draw(st.sampled_from(ENDS))]
        parts += [chunk, draw(st.sampled_from(ENDS))]
    parts += [
        draw(st.sampled_from([b"0"] * 6 + [b"000", b"", b"g"])),
        draw(st.sampled_from(EXTENSIONS)),
    ]
    parts.append(draw(st.sampled_from(ENDS)))
    for trailer in draw(st.lists(st.sampled_from(TRAILERS), max_size=2)):
        parts += [trailer, draw(st.sampled_from(ENDS))]
    parts += [draw(st.sampled_from(ENDS)), draw(st.sampled_from([b"", b"GET / HTTP/1.1\r\n"]))]
    return draw(heads.damaged(b"".join(parts)))


@MANY
@given(st.data(), bodies())
def test_body(data: st.DataObject, body: bytes) -> None:
    want = reference_chunk.decode(body)
    got = native.decode_chunks(body)
    assert got.verdict == want.verdict
    if (
        want.verdict != "bad"
    ):  # of a wrong body the decoder hands over what came before the fault, and no more
        assert got == want
    assert native.decode_chunks(body, data.draw(heads.cuts(body))) == got


@settings(MANY, max_examples=200)
@given(st.lists(st.binary(min_size=1, max_size=300), max_size=5), st.data())
def test_every_encoding_is_read_back(chunks: list[bytes], data: st.DataObject) -> None:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    got = native.decode_chunks(body + b"next", data.draw(heads.cuts(body)))
    assert got == reference_chunk.Body("done", b"".join(chunks), len(body))


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (b"1;" + b"a" * (16 * 1024 - 1) + b"\r\nx\r\n0\r\n\r\n", "done"),
        (b"1;" + b"a" * (16 * 1024) + b"\r\nx\r\n0\r\n\r\n", "bad"),
        (b"0\r\n" + b"a: b\r\n" * 50 + b"\r\n", "done"),
        (b"0\r\n" + b"a: b\r\n" * 51 + b"\r\n", "bad"),
    ],
    ids=["extension", "longer extension", "50 trailers", "51 trailers"],
)
def test_limits(body: bytes, want: str) -> None:
    assert reference_chunk.decode(body).verdict == native.decode_chunks(body).verdict == want
