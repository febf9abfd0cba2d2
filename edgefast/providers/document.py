"""Document: Kubernetes objects that a command makes, served like a file.

In: files that the objects depend on, such as a certificate.
Out: YAML for `FileSource`, which decodes it like the content of a file.
Must never: return half of an object. An error keeps the last valid content.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

__all__ = ["Document", "TextDocument"]


class Document(Protocol):
    """A source of YAML. `name` appears in problems in place of a file name; changes of `paths` are applied."""

    @property
    def name(self) -> str:
        """Name in problems."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Files that the text depends on."""

    def read(self) -> bytes:
        """Return the YAML; raises OSError with the cause and the path."""


class TextDocument(msgspec.Struct, frozen=True):
    """A document with a fixed text."""

    name: str
    text: bytes
    paths: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        """Leave out the text, which may contain keys."""
        return f"TextDocument({self.name!r})"

    def read(self) -> bytes:
        """Return the text."""
        return self.text
