"""Path normalisation and query decoding against the slow reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csrc import native, reference_path

pytestmark = pytest.mark.pure

MANY = settings(max_examples=300, deadline=None, derandomize=True, database=None)

PIECES = b"/ / / / // . .. . .. a b.c %2e %2E. %2f %2F %5c %5C %41 %7e %c3%a4 %C3 %25 %252e ; ..; .; %3b %3B".split()
PIECES += b"... ..a .a %00 % %4 %zz \\ + %20 %2B = & ~".split()

PATHS = st.builds(
    lambda first, pieces: first + b"".join(pieces),
    st.sampled_from([b"/"] * 30 + [b"", b"a"]),
    st.lists(st.sampled_from(PIECES), max_size=12),
)


@MANY
@given(PATHS)
def test_normalize(path: bytes) -> None:
    want = reference_path.normalize(path)
    got, escaped = native.normalize(path)
    assert got == want
    if want is not None:
        assert escaped == reference_path.holds_escaped_slash(path)
        assert native.normalize(want)[0] == want
        assert want.startswith(b"/") and not want.startswith(b"//")


@MANY
@given(PATHS)
def test_unescape_slashes(path: bytes) -> None:
    got = native.unescape_slashes(path)
    assert got == reference_path.normalize(path, unescape=True)
    if got is not None:
        assert not reference_path.holds_escaped_slash(got)


@MANY
@given(PATHS, st.integers(0, 6))
def test_strip_parameters(path: bytes, start: int) -> None:
    normal = native.normalize(path)[0]
    if normal is None:
        return
    start = min(start, len(normal))
    assert native.strip_parameters(normal, start) == reference_path.strip_parameters(normal, start)
    bare = native.strip_parameters(normal)
    assert b";" not in bare and native.normalize(bare)[0] == bare


@MANY
@given(st.lists(st.sampled_from([*PIECES, b"|"]), max_size=12).map(b"".join))
def test_encode_raw(path: bytes) -> None:
    assert native.encode_raw(path) == reference_path.encode_raw(path)


@MANY
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=12).map(b"".join))
def test_decode_query(text: bytes) -> None:
    assert native.decode_query(text) == reference_path.decode_query(text)
