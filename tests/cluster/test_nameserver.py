"""The name server of the worlds answers over both transports, and nothing that is no question."""

from __future__ import annotations

import struct

import pytest

from cluster.world.nameserver import answer

pytestmark = pytest.mark.pure

_QUESTION = (
    struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + b"\x03foo\x03bar\x00" + struct.pack("!HH", 1, 1)
)


def test_who_asked_is_said() -> None:
    said = answer(_QUESTION, ("10.0.0.1", 5353))
    assert struct.unpack_from("!HHHHHH", said) == (7, 0x8500, 1, 0, 0, 2)
    assert bytes((10, 0, 0, 1)) in said
    assert struct.pack("!H", 5353) in said


@pytest.mark.parametrize("data", [b"", _QUESTION[:11], _QUESTION[:-1], b"\xff" * 40])
def test_what_is_no_question_has_no_answer(data: bytes) -> None:
    assert answer(data, ("10.0.0.1", 5353)) == b""
