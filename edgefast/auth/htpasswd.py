"""Password hashes in the htpasswd formats: {SHA}, $apr1$, bcrypt's $2a$, $2b$ and $2y$.

In: a hash, a password.
Out: whether they match. Both results take the same time.
Source: Apache's apr_md5_encode for $apr1$.
Must never: keep a password.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterable
from hashlib import md5, sha1

__all__ = ["find_decoys", "is_apr1", "is_quick", "verify", "work_of"]

_APR1 = b"$apr1$"
_LETTERS = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SALT_BYTES = 64  # of a salt; whoever writes $apr1$ takes 8
_BCRYPT_BYTES = 72  # of a password; all that comes after has never counted


def is_quick(kept: bytes) -> bool:
    """Tell whether a hash is made within a microsecond or so."""
    return kept.startswith(b"{SHA}")


def is_apr1(kept: bytes) -> bool:
    """Tell whether a hash is Apache's own."""
    return kept.startswith(_APR1)


def work_of(kept: bytes) -> bytes:
    """Return what a hash costs: hashes with equal keys cost the same, and cheaper kinds sort first. b"": negligible."""
    if is_quick(kept):
        return b""
    return _APR1 if is_apr1(kept) else b"bcrypt " + kept[4:6]


def find_decoys(hashes: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return one slow hash for each cost that these have, cheaper kinds first. A check of a password against all of them, with the
    user's own hash in place of the one of its cost, takes the same time for every user and for unknown users."""
    found = {work_of(one): one for one in hashes if not is_quick(one)}
    return tuple(found[work] for work in sorted(found))


def verify(kept: bytes, password: bytes) -> bool:
    """Tell whether a password is that of a hash, in the time that a wrong one takes; of a hash of no known kind none is."""
    if kept.startswith(b"{SHA}"):
        return hmac.compare_digest(b64encode(sha1(password).digest()), kept[5:])
    if is_apr1(kept):
        salt = kept[len(_APR1) :].partition(b"$")[0]
        try:
            digest = _digest_apr1(password, salt)
        except ValueError:
            return False
        return hmac.compare_digest(_write_apr1(salt, digest), kept)
    import bcrypt  # a worker without such hashes does without it

    try:
        return bcrypt.checkpw(password[:_BCRYPT_BYTES], kept)
    except ValueError:
        return False


def _digest_apr1(password: bytes, salt: bytes) -> bytes:
    """MD5 a thousand times over, as Apache has it."""
    if len(salt) > _SALT_BYTES:
        raise ValueError("no salt")
    inner = md5(password + salt + password).digest()
    text = password + _APR1 + salt
    size = len(password)
    text += (inner * (size // 16 + 1))[:size]
    while size:
        text += b"\0" if size & 1 else password[:1]
        size >>= 1
    digest = md5(text).digest()
    for turn in range(1000):
        parts = password if turn & 1 else digest
        if turn % 3:
            parts += salt
        if turn % 7:
            parts += password
        parts += digest if turn & 1 else password
        digest = md5(parts).digest()
    return digest


def _write_apr1(salt: bytes, digest: bytes) -> bytes:
    order = [(0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5)]
    written = bytearray()
    for one, other, last in order:
        written += _write(digest[one] << 16 | digest[other] << 8 | digest[last], 4)
    return _APR1 + salt + b"$" + bytes(written + _write(digest[11], 2))


def _write(number: int, letters: int) -> bytes:
    return bytes(_LETTERS[number >> 6 * at & 63] for at in range(letters))
