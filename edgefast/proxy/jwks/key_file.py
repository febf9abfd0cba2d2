"""Key files: the last fetched keys on disk, for a start while an issuer is not reachable.

In: keys of a source in the format of edgefast/auth/jwt/key_set.py, and the time of their fetch.
Out: one file for each source, mode 0600, replaced atomically; its content while it is younger than
`LAST`. The keys are public, but write access to them would allow forged tokens, so the folder
belongs to the proxy alone.
Must never: raise for a disk error, or trust a file that is incomplete, of another source, or dated
in the future.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from edgefast.auth.jwt.key_set import SET_LIMIT, KeySetError, read
from edgefast.auth.oidc.provider_metadata import read_provider
from edgefast.diagnostics.redact import show_query

__all__ = ["FILES", "LAST", "KeptKeys", "KeyFiles", "Source"]

log = logging.getLogger(__name__)

#: Seconds that keys are believed after they were fetched, on disk or in memory.
LAST = 24 * 3600.0
#: Files that stay, the newest ones.
FILES = 1024
_MAGIC = b"edgefast keys 2\n"  # and a digest of the rest
_DIGEST = 32
_SUFFIX = ".keys"
_FRESH = ".new"

#: RemoteKeys.uri, RemoteKeys.cluster, RemoteKeys.issuer.
Source = tuple[str, str, str]


class KeptKeys(msgspec.Struct, frozen=True, array_like=True):
    """What a file has."""

    uri: str
    cluster: str
    issuer: str
    fetched_at: float  # Unix seconds
    keys: bytes

    @property
    def source(self) -> Source:
        """The source of the keys."""
        return self.uri, self.cluster, self.issuer


_DECODER: msgspec.msgpack.Decoder[KeptKeys] = msgspec.msgpack.Decoder(KeptKeys)


class KeyFiles:
    """A folder. All methods block: call them in a thread, one at a time."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock
        self._last_problem = ""  # that is told

    def load(self, source: Source) -> KeptKeys | None:
        """Read what was fetched last, if it is still to be believed."""
        try:
            with self._path(source).open("rb") as file:
                data = file.read(2 * SET_LIMIT)
        except OSError:
            return None
        start = len(_MAGIC) + _DIGEST
        payload = data[start:]
        if data[:start] != _MAGIC + _digest(payload):
            log.warning(
                "jwt: the file with keys of %s is incomplete and is not used", show_query(source[0])
            )
            return None
        try:
            kept = _DECODER.decode(payload)
            read(read_provider(kept.keys)[1])
        except (msgspec.MsgspecError, KeySetError):
            return None
        age = self._clock() - kept.fetched_at
        return kept if kept.source == source and -60 <= age < LAST else None

    def save(self, kept: KeptKeys) -> bool:
        """Write keys; False when the disk does not take them."""
        payload = msgspec.msgpack.encode(kept)
        path = self._path(kept.source)
        fresh = path.with_suffix(_FRESH)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            try:
                with os.fdopen(os.open(fresh, flags, 0o600), "wb") as file:
                    file.write(_MAGIC + _digest(payload) + payload)
                    file.flush()
                    os.utime(file.fileno(), (kept.fetched_at, kept.fetched_at))
                    os.fsync(file.fileno())
                os.replace(fresh, path)
            except OSError:
                fresh.unlink(missing_ok=True)
                raise
        except OSError as error:
            if self._last_problem != (problem := str(error.strerror)):
                self._last_problem = problem
                log.warning(
                    "jwt: keys of issuers cannot be stored in %s: %s", self._folder, problem
                )
            return False
        self._last_problem = ""
        return True

    def tidy(self) -> None:
        """Remove what nobody would believe any more, and what a process that was killed has left."""
        with contextlib.suppress(OSError):
            files = sorted(
                ((path.stat().st_mtime, path) for path in self._folder.iterdir()), reverse=True
            )
            oldest = self._clock() - LAST
            for number, (written_at, path) in enumerate(files):
                ours = path.suffix == _SUFFIX and (written_at < oldest or number >= FILES)
                if ours or path.suffix == _FRESH:
                    path.unlink(missing_ok=True)

    def _path(self, source: Source) -> Path:
        name = hashlib.blake2b("\0".join(source).encode(), digest_size=16).hexdigest()
        return self._folder / (name + _SUFFIX)


def _digest(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_DIGEST).digest()
