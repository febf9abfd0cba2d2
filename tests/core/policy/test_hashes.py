"""Hashes of passwords: what htpasswd and OpenSSL write, and nothing else, fits."""

from __future__ import annotations

import subprocess

import bcrypt
import pytest

from core.policy.authenticators import sha
from edgefast.auth.htpasswd import is_quick, verify

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    "password", ["", "x", "opensesame", "wörd:with;signs", "a" * 15, "a" * 16, "b" * 72]
)
def test_apr1_is_what_openssl_writes(password: str) -> None:
    command = ["openssl", "passwd", "-apr1", "-salt", "zq./9Aab", "-stdin"]
    made = subprocess.run(command, input=f"{password}\n".encode(), capture_output=True, check=True)
    kept = made.stdout.strip()
    assert kept.startswith(b"$apr1$zq./9Aab$")
    assert verify(kept, password.encode())
    assert not verify(kept, password.encode() + b"x")
    assert not verify(kept[:-1] + b"/", password.encode()) or kept.endswith(b"/")
    assert not is_quick(kept)


@pytest.mark.parametrize("prefix", [b"$2a$", b"$2b$", b"$2y$"])
def test_bcrypt_by_all_its_names(prefix: bytes) -> None:
    kept = prefix + bcrypt.hashpw(b"opensesame", bcrypt.gensalt(4))[4:]
    assert verify(kept, b"opensesame") and not verify(kept, b"opensesam")
    long = prefix + bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4))[4:]
    assert verify(long, b"x" * 100)  # as htpasswd has it
    assert not is_quick(kept)


def test_sha() -> None:
    kept = sha("opensesame").encode()
    assert verify(kept, b"opensesame") and not verify(kept, b"") and is_quick(kept)


@pytest.mark.parametrize(
    "kept", [b"", b"opensesame", b"$6$salt$hash", b"{SHA}", b"$apr1$", b"$2y$"]
)
def test_what_is_no_hash_fits_nothing(kept: bytes) -> None:
    assert not verify(kept, b"opensesame") and not verify(kept, b"")
