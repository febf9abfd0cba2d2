"""Signatures and hashes by the TLS library say what the libraries of edgefast/auth/jwt and edgefast/auth/htpasswd.py say."""

from __future__ import annotations

import json
import random
import select

import pytest

from auth.jwt.issuer import jwk, token
from edgefast.auth import htpasswd
from edgefast.auth.jwt import signature
from edgefast.auth.jwt.key_set import Key, decode_base64url, parse_key_set
from edgefast.core.engine import Hasher, is_signed

pytestmark = pytest.mark.pure

ALGS = {"ES384": 48, "ES512": 66}


def _make(alg: str) -> tuple[Key, bytes, bytes]:
    """A key, and what it signed."""
    (key,) = parse_key_set(json.dumps({"keys": [jwk(alg)]}).encode()).keys.keys
    signed, _, written = token(alg).rpartition(b".")
    proof = decode_base64url(written)
    assert proof is not None
    return key, proof, signed


@pytest.mark.parametrize("alg", sorted(ALGS))
def test_signatures(alg: str) -> None:
    key, proof, signed = _make(alg)
    assert len(proof) == 2 * ALGS[alg]
    assert is_signed(alg, key, proof, signed)
    rng = random.Random(alg)
    half = ALGS[alg]
    wrong = [b"", proof[:-1], proof + b"\0", bytes(2 * half), b"\xff" * 2 * half]
    wrong += [proof[half:] + proof[:half], proof[:half] + bytes(half), bytes(half) + proof[half:]]
    for _ in range(40):
        at = rng.randrange(len(proof))
        bad = bytearray(proof)
        bad[at] ^= 1 << rng.randrange(8)
        wrong.append(bytes(bad))
    for one in wrong:
        assert not is_signed(alg, key, one, signed)
        assert not signature.is_signed(alg, key, one, signed)
    assert not is_signed(alg, key, proof, signed + b"x")
    assert not is_signed(alg, key, proof, b"")


def test_keys_of_other_kinds_verify_nothing() -> None:
    for alg in ("ES256", "RS256", "EdDSA"):
        key, proof, signed = _make(alg)
        with pytest.raises(ValueError, match="no such key"):
            is_signed("ES384", key, proof, signed)
    key, proof, signed = _make("ES384")
    for spki in (b"", b"x", key.spki[:-1], key.spki + b"\0", b"\x30" * 5000):
        with pytest.raises(ValueError, match="no such key"):
            is_signed("ES384", key._replace(spki=spki), proof, signed)


def tried(hasher: Hasher, count: int) -> list[bool]:
    """What comes of so many."""
    found: list[bool] = []
    while len(found) < count:
        assert select.select([hasher.fileno()], [], [], 20)[0]
        found += hasher.take()
    return found


def make_apr1(password: bytes, salt: bytes) -> bytes:
    return htpasswd._write_apr1(salt, htpasswd._digest_apr1(password, salt))


def test_apr1() -> None:
    rng = random.Random(1)
    letters = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    hasher = Hasher()
    assert hasher.take() == []
    for size in [*range(20), 31, 32, 33, 100, 1000]:
        password, salt = rng.randbytes(size), bytes(rng.choices(letters, k=rng.randrange(65)))
        kept = make_apr1(password, salt)
        other = bytes([password[0] ^ 1]) + password[1:] if size else b"x"
        at = rng.randrange(len(kept))
        asked = [
            (kept, password),
            (kept, other),
            (kept[:at] + bytes([kept[at] ^ 1]) + kept[at + 1 :], password),
            (kept[:-1], password),
            (kept + b".", password),
        ]
        for one in asked:
            hasher.submit(*one)
        assert tried(hasher, len(asked)) == [htpasswd.verify(*one) for one in asked]
        assert [htpasswd.verify(*one) for one in asked] == [True] + [False] * 4


@pytest.mark.parametrize(
    "kept",
    [b"", b"$apr1", b"$apr1$", b"$apr1$salt", b"$apr1$salt$", b"$apr1$" + b"s" * 65 + b"$x"],
)
def test_what_is_no_hash_fits_nothing(kept: bytes) -> None:
    hasher = Hasher()
    hasher.submit(kept, b"opensesame")
    assert tried(hasher, 1) == [False]
    assert not htpasswd.verify(kept, b"opensesame")
    salt = b"s" * 65  # a byte too long
    assert not htpasswd.verify(make_apr1(b"opensesame", salt[1:])[:6] + salt, b"opensesame")


def test_as_many_as_may_be() -> None:
    """Answers come in the order of their questions; who ends meanwhile leaves nothing behind."""
    right = make_apr1(b"right", b"salt")
    hasher = Hasher()
    for turn in range(3):
        words = [b"right" if number % (turn + 2) == 0 else b"wrong" for number in range(64)]
        for word in words:
            hasher.submit(right, word)
        with pytest.raises(RuntimeError):
            hasher.submit(right, b"right")
        assert tried(hasher, 64) == [word == b"right" for word in words]
    for _ in range(64):
        hasher.submit(right, b"right")
    del hasher
