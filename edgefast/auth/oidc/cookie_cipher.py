"""Cookie cipher: AES-256-GCM for the cookies of one client, with keys from the ring of ticket secrets.

In: secrets that all workers and replicas share (csrc/ticket.h), the client's scope, random bytes.
Out: `seal` returns text for a cookie, `open` returns its content. The text has the id of its key,
so that a previous key still decrypts; `Opened.stale` marks one that a newer key should encrypt.
`base64url(version | key id[8] | nonce[12] | ciphertext | tag[16])`, key and id by HKDF-Expand
(RFC 5869 2.3) from a secret and the scope.
Must never: use a secret itself, or decrypt a text of another purpose or scope.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from edgefast.auth.jwt.key_set import decode_base64url

__all__ = ["CookieCipher", "Opened", "RingSecret", "SecretRing"]

_VERSION = b"\x01"
_ID = 8
_NONCE = 12
_TAG = 16
_LABEL = b"edgefast oidc 1"


class RingSecret(Protocol):
    """One secret of the ring; the times are milliseconds of the ring's clock."""

    @property
    def secret(self) -> bytes: ...
    @property
    def begins(self) -> int: ...
    @property
    def ends(self) -> int: ...
    @property
    def forgotten(self) -> int: ...


class SecretRing(Protocol):
    """The secrets that all workers share."""

    def generation(self) -> int:
        """Return a number that changes with the secrets."""

    def secrets(self) -> Sequence[RingSecret]:
        """Return the secrets in force."""

    def now(self) -> int:
        """Return the time of the ring's clock, in milliseconds."""


class Opened(NamedTuple):
    """Content of a cookie."""

    content: bytes
    stale: bool  # a newer key encrypts now


class _Key(NamedTuple):
    id: bytes
    cipher: AESGCM
    begins: int
    ends: int
    forgotten: int


class CookieCipher:
    """Encrypts and decrypts the cookies of one scope."""

    def __init__(self, ring: SecretRing, scope: bytes, random: Callable[[int], bytes]) -> None:
        """`scope`: `scope_of` what may decrypt the same cookies; `random`: a source for nonces."""
        self._ring = ring
        self._scope = scope
        self._random = random
        self._generation = -1
        self._keys: tuple[_Key, ...] = ()

    def seal(self, purpose: bytes, content: bytes) -> str:
        """Encrypt for a purpose. Returns "" if no secret is in force."""
        key = self._current()
        if key is None:
            return ""
        nonce = self._random(_NONCE)
        head = _VERSION + key.id
        text = head + nonce + key.cipher.encrypt(nonce, content, head + purpose)
        return urlsafe_b64encode(text).rstrip(b"=").decode()

    def open(self, purpose: bytes, text: bytes) -> Opened | None:
        """Decrypt what was sealed for the same purpose; None for anything else."""
        data = decode_base64url(text) or b""
        head = data[: 1 + _ID]
        if len(data) < len(head) + _NONCE + _TAG or head[:1] != _VERSION:
            return None
        now, current = self._ring.now(), self._current()
        for key in self._keys:
            if key.id == head[1:] and now < key.forgotten:
                nonce = data[len(head) : len(head) + _NONCE]
                try:
                    content = key.cipher.decrypt(nonce, data[len(head) + _NONCE :], head + purpose)
                except InvalidTag:
                    return None
                return Opened(content, current is not None and current is not key)
        return None

    def _current(self) -> _Key | None:
        generation = self._ring.generation()
        if generation != self._generation:
            self._keys = tuple(map(self._derive, self._ring.secrets()))
            self._generation = generation if self._keys else -1  # none: they changed meanwhile
        now = self._ring.now()
        live = [one for one in self._keys if one.begins <= now < one.ends]
        return max(live, key=lambda one: one.begins) if live else None

    def _derive(self, one: RingSecret) -> _Key:
        made = HKDFExpand(SHA256(), _ID + 32, _LABEL + self._scope).derive(one.secret)
        return _Key(made[:_ID], AESGCM(made[_ID:]), one.begins, one.ends, one.forgotten)
