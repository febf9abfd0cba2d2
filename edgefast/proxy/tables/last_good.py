"""LastGood: the table's bytes on disk, for a start while its source cannot be read.

In: shards that all workers applied.
Out: one file, mode 0600, replaced atomically and synced, and beside it the previous one; on load
the same shards, or LastGoodError without a complete file of this release's format. The file
contains keys: keep the folder on a memory-backed or encrypted volume.
Must never: stop the service (a full disk is a warning and a counter), or leave a copy of keys
behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from edgefast import ir
from edgefast.table import BlobError, Resource, Shards
from edgefast.table.blob import open_blob
from edgefast.table.format import table_format
from edgefast.table.shards import TYPES

__all__ = ["LastGood", "LastGoodError"]

log = logging.getLogger(__name__)

_MAGIC = (
    b"edgefast table 2\n"  # then the format of what is in it, a line too, and a digest of the rest
)
_DIGEST = 32
_PART = 100  # resources that are encoded at a time
_NAME = "last-good.table"
_BEFORE = "last-good.before.table"
_FRESH = "last-good.new"

#: What reads a resource of each type; it raises for bytes that a worker would not take.
_READERS: Mapping[str, Callable[[bytes], Any]] = {
    "listener": msgspec.msgpack.Decoder(ir.Listener).decode,
    "cluster": msgspec.msgpack.Decoder(ir.Cluster).decode,
    "policy": msgspec.msgpack.Decoder(ir.PolicyUnit).decode,
    "secret": msgspec.msgpack.Decoder(ir.Secret).decode,
    "proxies": msgspec.msgpack.Decoder(ir.Proxies).decode,
    "stream_route": msgspec.msgpack.Decoder(ir.StreamRoute).decode,
    "virtual_host": open_blob,
    "fragment": open_blob,
}


_ENCODE = msgspec.msgpack.Encoder().encode
_PAIR = b"\x92"  # MessagePack's array of two, and
_MANY = b"\xdd"  # the one whose length is in four bytes


class LastGoodError(Exception):
    """There is no file that is whole and of this release's format; the text says what there is."""


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    version: str
    resources: tuple[tuple[str, str, str, bytes], ...]  # type, name, version, data


class LastGood:
    """One folder's file. All methods block: call them in a thread, any number at once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _NAME
        self.failures = 0
        self.saved_at: float | None = None  # Unix seconds
        self._last_problem = ""  # that is told
        self._lock = threading.Lock()

    def save(self, shards: Shards) -> bool:
        """Write a table; False (logged, counted) when the disk does not take it."""
        payload: list[bytes] = []
        digest = hashlib.blake2b(digest_size=_DIGEST)
        for part in _encode(shards):
            digest.update(
                part
            )  # without the interpreter's lock: whoever serves goes on between two parts
            payload.append(part)
        try:
            with self._lock:
                self._replace(_head(), digest.digest(), *payload)
        except OSError as error:
            self.failures += 1
            if self._last_problem != (problem := str(error.strerror)):
                self._last_problem = problem
                log.warning(
                    "the table cannot be stored in %s: %s; traffic is not affected; a restart "
                    "without readable sources would use an older table; retrying",
                    self.path,
                    problem,
                )
            return False
        if self._last_problem:
            self._last_problem = ""
            log.warning("the table is stored in %s again", self.path)
        self.saved_at = time.time()
        return True

    def _replace(self, *parts: bytes) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self.path.with_name(_FRESH)
        self._sweep()
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            with os.fdopen(os.open(fresh, flags, 0o600), "wb") as file:
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            # A crash between the two leaves the one before, and `load` knows it.
            with contextlib.suppress(FileNotFoundError):
                os.replace(self.path, self.path.with_name(_BEFORE))
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

    def _sweep(self) -> None:
        """Remove what a process that was killed while it saved has left: it has keys in it."""
        for leftover in self.path.parent.glob("last-good*.new"):
            with contextlib.suppress(FileNotFoundError):
                leftover.unlink()

    def tidy(self) -> None:
        """Remove leftovers of an earlier process; nothing to remove is fine."""
        with self._lock, contextlib.suppress(OSError):
            self._sweep()

    def load(self) -> Shards:
        """Read the newest whole table back; raises LastGoodError for the newest when there is none."""
        try:
            return self._load(self.path)
        except LastGoodError as error:
            try:
                shards = self._load(self.path.with_name(_BEFORE))
            except LastGoodError:
                raise error from None
            log.warning("%s; the previous one is used", error)
            return shards

    def _load(self, path: Path) -> Shards:
        try:
            data = path.read_bytes()
            saved_at = path.stat().st_mtime
        except OSError as error:
            raise LastGoodError(f"{path}: {error.strerror}") from None
        head = _head()
        if not data.startswith(head):
            if data.startswith(_MAGIC[:-2]):
                raise LastGoodError(f"{path} was written by another release, in another format")
            raise LastGoodError(f"{path} is an incomplete table file")
        start = len(head) + _DIGEST
        payload = data[start:]
        digest = hashlib.blake2b(payload, digest_size=_DIGEST).digest()
        if data[len(head) : start] != digest:
            raise LastGoodError(f"{path} is an incomplete table file")
        try:
            kept = msgspec.msgpack.decode(payload, type=_Kept)
            for type_, name, _, content in kept.resources:
                if type_ not in TYPES:
                    raise LastGoodError(f"{path}: {type_} {name} is of no known type")
                if type_ in _READERS:
                    _READERS[type_](content)
        except (msgspec.MsgspecError, BlobError) as error:
            raise LastGoodError(f"{path}: {error}") from None
        resources = {
            (type_, name): Resource(type_, name, version, content)
            for type_, name, version, content in kept.resources
        }
        self.saved_at = saved_at
        return Shards(resources=resources, version=kept.version)


def _encode(shards: Shards) -> Iterator[bytes]:
    """Give a `_Kept` in parts: a large table must not keep the interpreter from those who serve."""
    resources = shards.resources
    yield _PAIR + _ENCODE(shards.version) + _MANY + len(resources).to_bytes(4, "big")
    entries = ((one.type, one.name, one.version, one.data) for one in resources.values())
    while part := b"".join(map(_ENCODE, islice(entries, _PART))):
        yield part


def _head() -> bytes:
    return _MAGIC + table_format().encode() + b"\n"
