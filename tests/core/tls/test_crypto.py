"""Signatures and hashes by the TLS library say what the libraries of edgefast/tokens and edgefast/htpasswd.py say."""

from __future__ import annotations

import json
import random

import pytest

from edgefast import htpasswd
from edgefast.core.engine import digest_apr1, is_signed, verify_password
from edgefast.keyset import Key, decode_base64url, parse_key_set
from edgefast.tokens import signature
from tokens.issuer import jwk, token

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


def test_apr1() -> None:
    rng = random.Random(1)
    for size in [*range(20), 31, 32, 33, 100, 1000]:
        password, salt = rng.randbytes(size), rng.randbytes(rng.randrange(65))
        assert digest_apr1(password, salt) == htpasswd._digest_apr1(password, salt)
    for digest in (digest_apr1, htpasswd._digest_apr1):
        with pytest.raises(ValueError, match="no salt"):
            digest(b"x", bytes(65))
    kept = htpasswd._write_apr1(b"salt", digest_apr1(b"opensesame", b"salt"))
    assert verify_password(kept, b"opensesame") and not verify_password(kept, b"opensesam")
    assert not verify_password(b"$apr1$" + b"s" * 65 + b"$x", b"opensesame")
