"""Keys of session tickets are HKDF-Expand of RFC 5869 over HMAC-SHA256: csrc/ticket.h beside Python's hmac."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest

from edgefast._csrc import ffi, lib

NOW = 5

pytestmark = pytest.mark.pure


def expand(secret: bytes, info: bytes, length: int) -> bytes:
    out, block, number = b"", b"", 0
    while len(out) < length:
        number += 1
        block = hmac.digest(secret, block + info + bytes([number]), "sha256")
        out += block
    return out[:length]


def test_expand_is_that_of_the_rfc() -> None:
    """RFC 5869, A.1."""
    prk = bytes.fromhex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5")
    info = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9")
    assert expand(prk, info, 42).hex() == (
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    )


@pytest.fixture(scope="module")
def real_hmac() -> Callable[..., int]:
    @ffi.callback("ef_ticket_hmac")  # type: ignore[untyped-decorator]
    def call(key: Any, data: Any, length: int, out: Any) -> int:
        digest = hmac.digest(bytes(ffi.buffer(key, 32)), bytes(ffi.buffer(data, length)), "sha256")
        ffi.memmove(out, digest, 32)
        return 0

    return call  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", range(20))
def test_keys(seed: int, real_hmac: Any) -> None:
    secret, rule = (hashlib.sha256(text % seed).digest() for text in (b"secret %d", b"rule %d"))
    ring = ffi.new("uint8_t[]", lib.ef_ticket_size())
    assert lib.ef_ticket_init(ring, len(ring)) == 0
    secrets = ffi.new("ef_ticket_secret[1]", [(secret, 0, 10, 20)])
    opened = ffi.cast("ef_ticket_ring *", ring)
    assert lib.ef_ticket_write(opened, secrets, 1) == 0
    of_port, key = ffi.new("ef_ticket_rule *"), ffi.new("ef_ticket_key *")
    lib.ef_ticket_rule_init(of_port, rule, real_hmac)
    assert lib.ef_ticket_encrypt_key(opened, of_port, NOW, key) == 1
    assert bytes(ffi.buffer(key)) == expand(secret, b"edgefast ticket 1" + rule, 80)
    found = ffi.new("ef_ticket_key *")
    known = lib.ef_ticket_decrypt_key(opened, of_port, key.name, NOW, found)
    assert known == lib.EF_TICKET_USE
    assert bytes(ffi.buffer(found)) == bytes(ffi.buffer(key))
