"""Scope: a digest that tells clients apart.

In: what the clients may not share. Out: 32 bytes, for key derivation, names and cache keys.
"""

from __future__ import annotations

import hashlib

__all__ = ["scope_of"]


def scope_of(*parts: str | bytes) -> bytes:
    """Return a digest of these parts in their order, in which no part runs into the next one."""
    digest = hashlib.sha256(b"edgefast oidc scope")
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()
