"""Credentials: the files that a proxy presents and trusts, read again for every connection.

In: paths.
Out: bytes, or CredentialsError with the file and its error. The kubelet replaces mounted Secrets
and tokens under a running proxy (it replaces the symlink `..data`), so nothing is cached. All files
of one folder are read from the same target of this link.
Must never: log or show the content of these files.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

__all__ = ["CredentialFiles", "Credentials", "CredentialsError"]

_PEM_LIMIT = 1024 * 1024
_TOKEN_LIMIT = 64 * 1024
#: The link that kubelet swaps in a mounted Secret.
_MOUNT = "..data"


class CredentialsError(Exception):
    """A file cannot be read or is empty."""


class Credentials(msgspec.Struct, frozen=True):
    """PEM bytes, and a bearer token; the pair or the token, or both."""

    ca: bytes
    certificate: bytes = b""
    key: bytes = b""
    token: str = ""

    def __repr__(self) -> str:
        return "Credentials(<redacted>)"


class CredentialFiles(msgspec.Struct, frozen=True):
    """Where they are."""

    ca: Path
    certificate: Path | None = None
    key: Path | None = None
    token: Path | None = None

    def read(self) -> Credentials:
        """Read all of them; blocks. Raises CredentialsError."""
        targets: dict[Path, Path] = {}
        token = _read(self.token, _TOKEN_LIMIT, targets).strip()
        if not token.isascii() or any(byte <= 0x20 for byte in token):
            raise CredentialsError(
                f"{self.token} is not a token: it contains spaces or non-ASCII characters"
            )
        return Credentials(
            ca=_read(self.ca, _PEM_LIMIT, targets),
            certificate=_read(self.certificate, _PEM_LIMIT, targets),
            key=_read(self.key, _PEM_LIMIT, targets),
            token=token.decode("ascii"),
        )


def _pin(path: Path, targets: dict[Path, Path]) -> Path:
    """Return where a file is read from; `targets`: of the mounted folders that were met, each resolved once."""
    folder = path.parent
    try:
        link = os.readlink(path)
    except OSError:  # a file
        return path
    if not link.startswith(f"{_MOUNT}/"):
        return path
    if folder not in targets:
        targets[folder] = Path(os.path.realpath(folder / _MOUNT))
    return targets[folder] / link.removeprefix(f"{_MOUNT}/")


def _read(path: Path | None, limit: int, targets: dict[Path, Path]) -> bytes:
    if path is None:
        return b""
    try:
        with _pin(path, targets).open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise CredentialsError(f"{path}: {error.strerror}") from None
    if not data or len(data) > limit:
        raise CredentialsError(f"{path} is empty or larger than {limit} bytes")
    return data
