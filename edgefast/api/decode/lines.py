"""Lines: the line of each field of a document: a tree of line numbers beside the tree of values.

In: the bytes of a document, again. Out: `LineTree`s; made only when a problem needs a line, so that
valid documents cost nothing. A field is where its key is, an item of a list where it begins. Lines
count from 0 here.
Must never: be needed to decode; a tree that cannot be made gives the first line.
"""

from __future__ import annotations

import bisect
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import yaml
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from edgefast.api.limits import MAX_DEPTH
from edgefast.api.loaded import Path


class LineTree(msgspec.Struct, gc=False):
    """The line of a value and of what is in it."""

    line: int
    fields: dict[str, LineTree] | None = None
    items: list[LineTree] | None = None

    def child(self, part: str | int) -> LineTree | None:
        """Return the tree of one field or item, None when there is no such thing."""
        if isinstance(part, int):
            items = self.items or ()
            return items[part] if 0 <= part < len(items) else None
        return (self.fields or {}).get(part)

    def find(self, path: Path) -> int:
        """Return the line of a path, or of the nearest part of it that exists."""
        node = self
        for part in path:
            below = node.child(part)
            if below is None:
                break
            node = below
        return node.line


class JSONLines(msgspec.Struct, frozen=True):
    """The tree of a JSON text, and the paths of its repeated keys."""

    tree: LineTree
    duplicates: list[Path]


#: What YAML 1.1 takes for the end of a line and editors do not: NEL, LS and PS.
_ODD_BREAKS = (b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")


def line_counter(text: bytes) -> Callable[[Any], int]:
    """Return a function from a mark of libyaml to the line that an editor shows, from 0."""
    odd = any(one in text for one in _ODD_BREAKS) or text.count(b"\r") != text.count(b"\r\n")
    if not odd:
        return operator.attrgetter("line")
    ends = [found.start() for found in re.finditer("\n", text.decode(errors="replace"))]
    return lambda mark: bisect.bisect_left(ends, mark.index)


def yaml_lines(text: bytes) -> list[LineTree]:
    """Return the trees of all documents of a text, up to the first that is not YAML."""
    parser, line_of = CParser(text), line_counter(text)
    trees = []
    try:
        while parser.check_event():
            if isinstance(parser.get_event(), DocumentStartEvent):
                trees.append(_yaml_tree(parser, parser.get_event(), {}, 0, line_of))
    except (yaml.YAMLError, RecursionError):
        pass
    return trees


def _yaml_tree(
    parser: Any,
    event: Any,
    anchors: dict[str, LineTree],
    depth: int,
    line_of: Callable[[Any], int],
) -> LineTree:
    line = line_of(event.start_mark)
    if isinstance(event, AliasEvent):
        known = anchors.get(event.anchor or "")
        return LineTree(line, known.fields, known.items) if known else LineTree(line)
    tree = LineTree(line)
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(event, MappingStartEvent):
        tree.fields = {}
        merged = []
        while not isinstance(key := parser.get_event(), MappingEndEvent):
            value = _yaml_tree(parser, parser.get_event(), anchors, depth + 1, line_of)
            name = key.value if isinstance(key, ScalarEvent) else ""
            if name == "<<":
                merged.append(value)
            else:
                tree.fields[name] = LineTree(line_of(key.start_mark), value.fields, value.items)
        for one in merged:
            for name, value in (one.fields or {}).items():
                tree.fields.setdefault(name, value)
    elif not isinstance(event, ScalarEvent):
        tree.items = []
        while not isinstance(item := parser.get_event(), SequenceEndEvent):
            tree.items.append(_yaml_tree(parser, item, anchors, depth + 1, line_of))
    if getattr(event, "anchor", None) is not None:
        anchors[event.anchor] = tree
    return tree


_TOKEN = re.compile(rb'[{}\[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+|\n')


def json_lines(text: bytes) -> JSONLines:
    """Return the tree of a text that has been decoded before, so that it is known to be JSON.

    RecursionError when it is nested deeper than MAX_DEPTH.
    """
    duplicates: list[Path] = []
    tokens = _json_tokens(text)
    token, line = next(tokens)
    return JSONLines(_json_tree(tokens, token, line, (), duplicates), duplicates)


def _json_tokens(text: bytes) -> Iterator[tuple[bytes, int]]:
    line = 0
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token == b"\n":
            line += 1
        elif token not in (b",", b":"):
            yield token, line


def _json_tree(
    tokens: Iterator[tuple[bytes, int]],
    token: bytes,
    line: int,
    path: Path,
    duplicates: list[Path],
) -> LineTree:
    tree = LineTree(line)
    if len(path) > MAX_DEPTH:
        raise RecursionError
    if token == b"{":
        tree.fields = {}
        for key, at in tokens:
            if key == b"}":
                break
            name = msgspec.json.decode(key, type=str)
            if name in tree.fields:
                duplicates.append((*path, name))
            value = _json_tree(tokens, *next(tokens), (*path, name), duplicates)
            tree.fields[name] = LineTree(at, value.fields, value.items)
    elif token == b"[":
        tree.items = []
        for item, at in tokens:
            if item == b"]":
                break
            below = (*path, len(tree.items))
            tree.items.append(_json_tree(tokens, item, at, below, duplicates))
    return tree
