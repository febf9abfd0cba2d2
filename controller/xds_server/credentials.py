"""ServerKeys: the controller's certificate, key and authorities as files, checked on every handshake.

In: a folder with tls.crt, tls.key and ca.crt (a mounted Secret).
Out: the valid bytes, and a number that grows with every change. The kubelet replaces the folder by
a symlink (`..data`), so all files are read from one pinned folder. If certificate and key do not
match, the previous pair stays.
Must never: log or show a key, or combine files of two versions of a mounted Secret.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from cryptography import x509

from controller.certs.pair import read_bundle, read_pair, signed_by

__all__ = ["KeysError", "ServerKeys"]

log = logging.getLogger("edgefast.controller.push")

_FILES = ("tls.crt", "tls.key", "ca.crt")
_LIMIT = 1024 * 1024  # bytes of one file
#: The link that kubelet swaps in a mounted Secret.
_MOUNT = "..data"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class KeysError(Exception):
    """The files cannot be used; the text names them and says why."""


class _Loaded(msgspec.Struct, frozen=True):
    certificate: bytes
    key: bytes
    authorities_pem: bytes
    authorities: tuple[x509.Certificate, ...]


class ServerKeys:
    """The controller's certificate, key and CA files, checked at each handshake.

    Safe to use from gRPC's threads: a change is one assignment.
    """

    def __init__(self, folder: Path) -> None:
        """Read the files; raises KeysError."""
        self._folder = folder
        with self._pin() as pinned:
            self._stamp = self._look(pinned)
            self._loaded = self._load(pinned)
        self.number = 1  # of the present state

    @property
    def certificate(self) -> bytes:
        """The chain shown to clients (PEM)."""
        return self._loaded.certificate

    @property
    def key(self) -> bytes:
        """Its private key (PEM)."""
        return self._loaded.key

    @property
    def authorities_pem(self) -> bytes:
        """Who may sign clients' certificates (PEM)."""
        return self._loaded.authorities_pem

    def trusts(self, certificate: x509.Certificate) -> bool:
        """Tell whether one of the present authorities signed a certificate."""
        return any(signed_by(certificate, one) for one in self._loaded.authorities)

    def refresh(self) -> bool:
        """Read the files again if they are others; True when there is a new state."""
        try:
            with self._pin() as pinned:
                stamp = self._look(pinned)
                if stamp == self._stamp:
                    return False
                # Each state is tried once: a half-written one has another stamp when it is whole.
                self._stamp = stamp
                loaded = self._load(pinned)
        except KeysError as error:
            log.error("the previous certificate stays in use: %s", error)
            return False
        if loaded == self._loaded:
            return False
        self._loaded = loaded
        self.number += 1
        log.info("certificates were reloaded from %s", self._folder)
        return True

    @contextlib.contextmanager
    def _pin(self) -> Iterator[int]:
        """Open the folder that holds the files now: the target of `..data` where the Secret is mounted."""
        try:
            try:
                pinned = os.open(self._folder / _MOUNT, _FOLDER)
            except FileNotFoundError:
                pinned = os.open(self._folder, _FOLDER)
        except OSError as error:
            raise KeysError(f"{self._folder}: {error.strerror}") from None
        try:
            yield pinned
        finally:
            os.close(pinned)

    def _look(self, pinned: int) -> tuple[tuple[int, int, int], ...]:
        found = []
        for name in _FILES:
            try:
                message = os.stat(name, dir_fd=pinned)
            except OSError as error:
                raise KeysError(f"{self._folder / name}: {error.strerror}") from None
            found.append((message.st_ino, message.st_mtime_ns, message.st_size))
        return tuple(found)

    def _load(self, pinned: int) -> _Loaded:
        certificate, key, authorities = (self._read(pinned, name) for name in _FILES)
        try:
            read_pair(certificate.decode("ascii", "replace"), key.decode("ascii", "replace"))
            bundle = read_bundle(authorities.decode("ascii", "replace"))
        except ValueError as error:
            raise KeysError(f"{self._folder}: {error}") from None
        return _Loaded(certificate, key, authorities, bundle)

    def _read(self, pinned: int, name: str) -> bytes:
        path = self._folder / name
        try:
            number = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=pinned)
            with open(number, "rb") as file:
                data = file.read(_LIMIT + 1)
        except OSError as error:
            raise KeysError(f"{path}: {error.strerror}") from None
        if not data or len(data) > _LIMIT:
            raise KeysError(f"{path} is empty or larger than {_LIMIT} bytes")
        return data
