"""Last known good: the table's bytes on disk, for a start at which its source cannot be read.

In: shards that all workers took. Out: one file, mode 0600, replaced atomically and synced; on load
the same shards, or None with a logged reason when there is no whole one. Keys are in it: keep the
folder on a memory-backed or encrypted volume. Must never stop the service: a full disk is a warning
and a counter.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from pathlib import Path

import msgspec

from edgefast.table import Resource, Shards

__all__ = ["LastGood", "LastGoodError"]

log = logging.getLogger(__name__)

_MAGIC = b"edgefast table 1\n"
_DIGEST = 32
_NAME = "last-good.table"


class LastGoodError(Exception):
    """The file cannot be read or is not whole."""


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    version: str
    resources: tuple[tuple[str, str, str, bytes], ...]  # type, name, version, data


class LastGood:
    """One folder's file. `save` and `load` block: call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _NAME
        self.failures = 0
        self.saved_at: float | None = None  # Unix seconds

    def save(self, shards: Shards) -> bool:
        """Write a table; False (logged, counted) when the disk does not take it."""
        kept = _Kept(
            shards.version,
            tuple((one.type, one.name, one.version, one.data) for one in shards.resources.values()),
        )
        payload = msgspec.msgpack.encode(kept)
        digest = hashlib.blake2b(payload, digest_size=_DIGEST).digest()
        try:
            self._replace(_MAGIC, digest, payload)
        except OSError as error:
            self.failures += 1
            log.warning(
                "the table cannot be kept in %s: %s; serving goes on, a restart without readable "
                "sources would start from an older table",
                self.path,
                error.strerror,
            )
            return False
        self.saved_at = time.time()
        return True

    def _replace(self, *parts: bytes) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self.path.with_suffix(f".{os.getpid()}.new")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            with os.fdopen(os.open(fresh, flags, 0o600), "wb") as file:
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def load(self) -> Shards:
        """Read the table back; raises LastGoodError."""
        try:
            data = self.path.read_bytes()
            self.saved_at = self.path.stat().st_mtime
        except OSError as error:
            raise LastGoodError(f"{self.path}: {error.strerror}") from None
        start = len(_MAGIC) + _DIGEST
        payload = data[start:]
        digest = hashlib.blake2b(payload, digest_size=_DIGEST).digest()
        if not data.startswith(_MAGIC) or data[len(_MAGIC) : start] != digest:
            raise LastGoodError(f"{self.path} is not a whole table file")
        try:
            kept = msgspec.msgpack.decode(payload, type=_Kept)
        except msgspec.MsgspecError as error:
            raise LastGoodError(f"{self.path}: {error}") from None
        resources = {
            (type_, name): Resource(type_, name, version, data)
            for type_, name, version, data in kept.resources
        }
        return Shards(resources=resources, version=kept.version)
