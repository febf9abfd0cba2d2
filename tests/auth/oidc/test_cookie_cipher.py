"""Cookies of one client open with its keys alone, for their purpose alone, while a key is in force."""

from __future__ import annotations

import pytest

from edgefast.auth.oidc.cookie_cipher import CookieCipher, Opened
from edgefast.auth.oidc.scope import scope_of
from tests.auth.oidc.ring import Ring, chance


def cipher(ring: Ring, scope: bytes = b"a" * 32) -> CookieCipher:
    return CookieCipher(ring, scope, chance().randbytes)


def test_what_is_sealed_opens_and_never_looks_the_same() -> None:
    one = cipher(Ring())
    first, second = one.seal(b"p", b"content"), one.seal(b"p", b"content")
    assert first != second and "content" not in first
    assert one.open(b"p", first.encode()) == Opened(b"content", False)
    assert one.open(b"q", first.encode()) is None, "another purpose"
    assert cipher(Ring(), b"b" * 32).open(b"p", first.encode()) is None, "another client"


def test_each_changed_or_missing_byte_is_seen() -> None:
    one = cipher(Ring())
    text = one.seal(b"p", b"content").encode()
    for at in range(len(text)):
        other = b"A" if text[at : at + 1] != b"A" else b"B"
        assert one.open(b"p", text[:at] + other + text[at + 1 :]) is None
        assert one.open(b"p", text[:at]) is None
    for junk in (b"", b"=", b"\xff" * 80, text + b"A", b"A" * 37, b"A" * 38):
        assert one.open(b"p", junk) is None


def test_the_previous_key_opens_and_the_one_before_does_not() -> None:
    ring = Ring()
    one = cipher(ring)
    text = one.seal(b"p", b"content").encode()
    ring.rotate()
    assert one.open(b"p", text) == Opened(b"content", True)
    again = one.seal(b"p", b"content").encode()
    assert one.open(b"p", again) == Opened(b"content", False)
    ring.rotate()
    assert one.open(b"p", text) is None
    ring.clock = 10**9
    assert one.seal(b"p", b"content") == "" and one.open(b"p", again) is None


def test_keys_that_change_while_they_are_read_are_read_again() -> None:
    ring = Ring()
    held, ring.held = ring.held, []
    one = cipher(ring)
    assert one.seal(b"p", b"content") == ""
    ring.held = held
    assert one.seal(b"p", b"content") != "", "of the same generation"


def test_replicas_with_the_same_secrets_share_cookies() -> None:
    text = cipher(Ring()).seal(b"p", b"content")
    assert cipher(Ring()).open(b"p", text.encode()) == Opened(b"content", False)


@pytest.mark.parametrize(
    ("one", "other"), [(("ab", "c"), ("a", "bc")), (("a",), ("a", "")), (("",), ())]
)
def test_no_part_of_a_scope_runs_into_the_next_one(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert scope_of(*one) != scope_of(*other)
