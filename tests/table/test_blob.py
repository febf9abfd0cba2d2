"""The gate and the reader: damaged blobs are refused or harmless, never a crash, and every refusal says why.

In: good blobs and mutations of them. Out: BlobError or values. Must never: need a sanitizer to mean something; the same
is done under ASan by csrc/tests/test_table.c and csrc/fuzz/fuzz_table.c.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast import ir
from edgefast._csrc import ffi, lib
from edgefast.table import (
    BlobError,
    Matcher,
    Request,
    Resource,
    compile_fleet,
    decode_blob,
    decode_virtual_host,
    describe_blob,
)
from edgefast.table.build import BlobBuilder
from edgefast.table.fragment import compile_cut
from tests.table import tables
from tests.table.tables import LISTENER, make_fleet, prefix_host

pytestmark = pytest.mark.pure


def sample() -> bytes:
    rules = (ir.Rule(route="ns/a", index=0), ir.Rule(route="ns/b", index=1))
    value = (
        ir.ValueMatch(name="x-a", value="1"),
        ir.ValueMatch(name="x-b", value=".*", regex=True),
    )
    pairs = [
        (ir.Match(kind="exact", path="/a", method="GET", headers=value), 0),
        (ir.Match(kind="regex", path="/[a-z]", query=value[:1]), 1),
        (ir.Match(kind="prefix", path="/a/path/that/needs/more/than/a/slot/has"), 1),
        (ir.Match(kind="prefix", path=""), 0),
    ]
    shards = compile_fleet(make_fleet(tables.make_host("h", rules, pairs)))
    return shards.resources["virtual_host", f"{LISTENER}/h"].data


SAMPLE = sample()


def with_checksum(data: bytes) -> bytes:
    """The same bytes with the size and the checksum that fit them: what a broken or hostile sender would send."""
    memory = ffi.new("uint64_t[]", (len(data) + 7) // 8)
    ffi.memmove(memory, data, len(data))
    blob = ffi.cast("struct ef_blob *", memory)
    blob.size = len(data)  # the checksum covers that many bytes
    blob.checksum = lib.ef_table_checksum(blob)
    return bytes(ffi.buffer(memory, len(data)))


def use(data: bytes) -> None:
    """Read and match everything in a blob that passed the gate."""
    decoded = describe_blob(data)
    matcher = Matcher(
        {("virtual_host", f"{LISTENER}/h"): Resource("virtual_host", f"{LISTENER}/h", "", data)}
    )
    for path in ("/a", "/", "/a/path/that/needs/more/than/a/slot/has/x", "/z"):
        request = Request(path=path, query="x-a=1", headers=(("X-A", "1"), ("x-b", "")))
        assert len(list(matcher.matches(LISTENER, "h", request))) <= len(decoded["entries"])


def test_the_sample_is_good() -> None:
    use(SAMPLE)
    assert with_checksum(SAMPLE) == SAMPLE


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    st.lists(
        st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(1, 255)), min_size=1, max_size=4
    )
)
def test_flipped_bytes(changes: list[tuple[int, int]]) -> None:
    data = bytearray(SAMPLE)
    for place, bits in changes:
        data[place] ^= bits
    if bytes(data) == SAMPLE:
        return
    with pytest.raises(BlobError):
        decode_blob(bytes(data))
    hostile = with_checksum(bytes(data))
    try:
        use(hostile)
    except BlobError:
        pass
    except (
        UnicodeDecodeError,
        ValueError,
    ):  # harmless contents: text that is none, a payload that is no rule
        assert lib.ef_table_check(ffi.from_buffer(hostile), len(hostile)) == lib.EF_T_OK


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.binary(max_size=400))
def test_arbitrary_bytes(data: bytes) -> None:
    with pytest.raises(BlobError):
        decode_blob(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut short"),
        (SAMPLE[:100], "cut short"),
        (SAMPLE[:-8], "cut short"),
        (SAMPLE + bytes(8), "a part is out of range"),
        (b"EFB2" + SAMPLE[4:], "not a table"),
        (SAMPLE[:4] + bytes([SAMPLE[4] + 1]) + SAMPLE[5:], "another version"),
        (SAMPLE[:-1] + b"\xff", "checksum"),
    ],
)
def test_refusals_say_why(data: bytes, why: str) -> None:
    with pytest.raises(BlobError, match=why):
        decode_blob(data)


def test_any_alignment() -> None:
    for shift in range(8):
        view = memoryview(bytes(shift) + SAMPLE)[shift:]
        assert decode_blob(view) == decode_blob(SAMPLE)


def test_pieces_must_belong_together() -> None:
    one = compile_cut(prefix_host("a", ["/a", "/b", "/c"]), 2, None, BlobBuilder()).resources
    two = compile_cut(prefix_host("b", ["/a", "/b", "/c"]), 2, None, BlobBuilder()).resources
    four = compile_cut(prefix_host("a", ["/a", "/b", "/c"]), 4, None, BlobBuilder()).resources
    whole = compile_cut(prefix_host("a", ["/a"]), 1, None, BlobBuilder()).resources
    assert decode_virtual_host(one[0].data, [one[1].data, one[2].data]).hostname == "a"
    for pieces in (
        (one[0], one[1]),
        (one[0], one[1], one[1]),
        (one[0], one[1], two[2]),
        (one[0], one[1], four[2]),
        (one[1], one[2]),
        (whole[0], one[1]),
        (one[0],),
    ):
        with pytest.raises(BlobError):
            decode_virtual_host(pieces[0].data, [piece.data for piece in pieces[1:]])


def test_description_is_plain() -> None:
    described = describe_blob(SAMPLE)
    assert described["fragments"] == 1
    assert described["rules"][0]["route"] == "ns/a"
    assert described["entries"][0]["match"]["kind"] == "regex"
    fragment = compile_cut(prefix_host("a", ["/a"]), 2, None, BlobBuilder()).resources[1]
    assert describe_blob(fragment.data)["fragment"] == 0
