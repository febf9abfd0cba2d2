"""JSON that nobody can read in two ways: what is refused, and that all the rest is as the library of the language has it."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast.auth.jwt.strict_json import JsonError, parse_json

pytestmark = pytest.mark.pure

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values, st.booleans())
def test_what_json_writes_is_read_as_it_was(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert parse_json(text, 64, 999) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"a":1,"a":1}', "twice"),
        (b'[{"b":{"a":1,"\\u0061":2}}]', "twice"),
        (b"NaN", "finite"),
        (b"[-Infinity]", "finite"),
        (b"1e999", "too large"),
        (b"9" * 5000, "too long"),
        (b'"\xff"', "UTF-8"),
        (b'"\\ud800"', "Unicode"),
        (b'{"\\udc00x":1}', "Unicode"),
        (b'"\x00"', "control character"),
        (b"{'a':1}", "line 1 column 2"),
        (b"\xef\xbb\xbf{}", "line 1 column 1"),
        (b"[1,]", "line 1"),
        (b"{} x", "Extra data"),
        (b"", "Expecting value"),
        (b"\xc2\xa01", "Expecting value"),
        (b"[" * 100_000, "too many"),
        (b"[" * 99, "too deeply"),
        (b"[" + b"[]," * 99 + b"[]]", "too many"),
        (b'{"a":' * 9 + b"1" + b"}" * 9, "too deeply"),
        (b'["\\"]",' + b"[" * 8 + b"]" * 9, "too deeply"),
    ],
)
def test_what_is_refused(text: bytes, said: str) -> None:
    with pytest.raises(JsonError, match=said):
        parse_json(text, 8, 99)


@pytest.mark.parametrize(
    "text", [b'["[[[[[[[[[[[["]', b'["\\"[[[[[[[[[[[",[]]', b"[[],[],[],[],[],[],[],[],[],[]]"]
)
def test_depth_is_of_what_is_open_outside_of_text(text: bytes) -> None:
    assert parse_json(text, 2, 99) == json.loads(text)


def test_a_string_without_an_end_is_gone_through_once() -> None:
    began = time.process_time()
    with pytest.raises(JsonError):
        parse_json(b'["' + b'\\"' * 200_000 + b"[" * 20, 8, 99)
    assert time.process_time() - began < 5, (
        "a ceiling: going through it again and again takes minutes"
    )


def test_a_pair_of_surrogates_is_a_character() -> None:
    assert parse_json(b'"\\ud83d\\ude00"', 1, 1) == "\U0001f600"
