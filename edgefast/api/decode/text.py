"""Text: splits the text of a file into documents, and keeps the text of each one for its line numbers.

In: bytes. Out: `Piece`s, each decoded on its own. A syntax error therefore loses one document, and
a document with unchanged bytes is not decoded again.
Must never: decode a field; see `decode.py`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from edgefast.api.decode.lines import LineTree, json_lines, yaml_lines
from edgefast.api.loaded import Path

Syntax = Literal["yaml", "json"]

#: `---` at the start of a line begins a document wherever it stands (YAML 1.2, 9.1.2: no scalar
#: may contain it there); directives belong to the document that follows.
_BEGIN = re.compile(
    rb"^(?:%[^\n]*\n(?:[#%][^\n]*\n|[ \t\r]*\n)*)?---(?=[ \t\r\n]|\Z)", re.MULTILINE
)


class Piece(msgspec.Struct, frozen=True):
    """Some bytes of a file and the line (from 0) at which they begin."""

    text: bytes
    line: int


def split_documents(data: bytes) -> Iterator[Piece]:
    """Cut YAML text before every document; the pieces together are the text."""
    starts = [0, *(found.start() for found in _BEGIN.finditer(data)), len(data)]
    line = 0
    for begin, end in zip(starts, starts[1:], strict=False):
        if begin == end:
            continue
        piece = data[begin:end]
        yield Piece(piece, line)
        line += piece.count(b"\n")


class PieceLines:
    """The lines of the documents of one piece, found when first asked for."""

    def __init__(self, text: bytes, syntax: Syntax) -> None:
        self._text = text
        self._syntax = syntax

    @functools.cached_property
    def _trees(self) -> list[LineTree]:
        if self._syntax == "yaml":
            return yaml_lines(self._text)
        try:
            return [json_lines(self._text).tree]
        except RecursionError:
            return []

    def line_of(self, document: int, path: Path) -> int:
        """Return the line, from 0 within the piece, of a path in one of its documents."""
        trees = self._trees
        return trees[document].find(path) if document < len(trees) else 0


class DocumentMarks(msgspec.Struct, frozen=True, eq=False):
    """Lines of one object of a file: which document, where in it, and where the piece begins."""

    lines: PieceLines
    document: int
    prefix: Path
    base: int

    def line_of(self, path: Path) -> int:
        """Return the line, from 1 within the file, of a path in the object."""
        return 1 + self.base + self.lines.line_of(self.document, (*self.prefix, *path))
