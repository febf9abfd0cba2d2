"""YAML text: YAML to plain values, straight from libyaml's events.

In: the bytes of one or more documents. Out: a `ParsedDocument` each: dicts, lists and scalars. It
builds no node tree and nothing recurses in C: a limit here bounds nesting, not the stack. Aliases
count as often as they are used; a repeated key is reported, not dropped.
Must never: construct anything but plain values, for any tag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import yaml
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from edgefast.api.decode.lines import line_counter
from edgefast.api.decode.scalar import resolve_plain, resolve_tagged
from edgefast.api.limits import MAX_ALIAS_VALUES, MAX_DEPTH
from edgefast.api.loaded import Path

_MERGE = object()
_PLAIN_TAGS = frozenset({None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_TOO_DEEP = "exceeded maximum nesting depth"
"""libyaml's word, since 0.2.6, for brackets it reads ahead of its first event: 1,000 of them."""


class SyntaxProblem(Exception):
    """The text is not a document; `line` counts from 0 within it."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class ParsedDocument(msgspec.Struct, frozen=True):
    """One document's value, and the paths of keys that are given twice."""

    value: Any
    duplicates: tuple[Path, ...] = ()


def read_yaml(text: bytes) -> Iterator[ParsedDocument]:
    """Yield the documents of a text; SyntaxProblem where it is not YAML, then no more."""
    reader = _Reader(text)
    while True:
        try:
            document = reader.document()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            # At the end of the text the mark is past the last line.
            last = text.rstrip().count(b"\n")
            line = min(line_counter(text)(mark), last) if mark else 0
            if _is_tabbed(text, line):
                message = "a tab indents the line (YAML allows only spaces)"
                raise SyntaxProblem(f"YAML: {message}", line) from None
            if error.problem == _TOO_DEEP:
                raise SyntaxProblem(f"nested deeper than {MAX_DEPTH} levels", line) from None
            raise SyntaxProblem(f"YAML: {error.problem}", line) from None
        except yaml.reader.ReaderError as error:
            line = text.count(b"\n", 0, int(error.position))
            raise SyntaxProblem(f"YAML: {error.reason}", line) from None
        if document is None:
            return
        yield document


def _is_tabbed(text: bytes, line: int) -> bool:
    """Tell whether a tab is in the indentation of a line."""
    found = text.split(b"\n", line + 1)[line]
    return b"\t" in found[: len(found) - len(found.lstrip())]


class _Reader:
    """Builds values from events; one for a text."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._parser = CParser(text)
        self._next: Callable[[], Any] = self._parser.get_event
        self._values = 0
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._duplicates: list[Path] = []
        self._path: list[str | int] = []

    def document(self) -> ParsedDocument | None:
        event = self._next()
        while isinstance(event, StreamStartEvent | DocumentEndEvent):
            event = self._next()
        if isinstance(event, StreamEndEvent):
            return None
        assert isinstance(event, DocumentStartEvent)
        self._values = 0
        self._anchors.clear()
        self._duplicates.clear()
        value = self._value(self._next())
        return ParsedDocument(value, tuple(self._duplicates))

    def _wrong(self, event: Any, message: str) -> SyntaxProblem:
        return SyntaxProblem(message, line_counter(self._text)(event.start_mark))

    def _value(self, event: Any) -> Any:
        kind = event.__class__
        if kind is ScalarEvent:
            value = self._scalar(event)
            if event.anchor is not None:
                self._anchors[event.anchor] = (value, 1)
            return value
        if kind is AliasEvent:
            return self._alias(event)
        if len(self._path) >= MAX_DEPTH:
            raise self._wrong(event, f"nested deeper than {MAX_DEPTH} levels")
        if event.tag not in _PLAIN_TAGS:
            raise self._wrong(event, f"YAML: tag {event.tag} is not supported")
        before = self._values
        value = self._mapping() if kind is MappingStartEvent else self._sequence()
        if event.anchor is not None:
            # Registered only now: an alias inside of its own anchor finds nothing.
            self._anchors[event.anchor] = (value, self._values - before + 1)
        return value

    def _scalar(self, event: Any) -> Any:
        self._values += 1
        tag = event.tag
        if tag is None:
            return resolve_plain(event.value) if event.implicit[0] else event.value
        try:
            return resolve_tagged(event.value, tag)
        except ValueError as error:
            raise self._wrong(event, f"YAML: {error}") from None

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise self._wrong(event, f"YAML: the anchor &{event.anchor} is not defined")
        value, size = self._anchors[event.anchor]
        self._values += size
        if self._values > MAX_ALIAS_VALUES:
            raise self._wrong(event, f"aliases expand to more than {MAX_ALIAS_VALUES} values")
        return value

    def _sequence(self) -> list[Any]:
        self._values += 1
        items: list[Any] = []
        path, following, read = self._path, self._next, self._value
        path.append(0)
        event = following()
        while event.__class__ is not SequenceEndEvent:
            path[-1] = len(items)
            items.append(read(event))
            event = following()
        path.pop()
        return items

    def _mapping(self) -> dict[str, Any]:
        self._values += 1
        entries: dict[str, Any] = {}
        merged: list[Any] = []
        path, following, read = self._path, self._next, self._value
        path.append("")
        event = following()
        while event.__class__ is not MappingEndEvent:
            key = self._key(event)
            if key is _MERGE:
                path[-1] = "<<"
                merged.append(self._merge_source(following()))
            else:
                path[-1] = key
                if key in entries:
                    self._duplicates.append(tuple(path))
                entries[key] = read(following())
            event = following()
        path.pop()
        for source in merged:
            for name, value in source.items():
                entries.setdefault(name, value)
        return entries

    def _key(self, event: Any) -> Any:
        if event.__class__ is AliasEvent:
            value = self._alias(event)
            if isinstance(value, str):
                return value
        elif event.__class__ is ScalarEvent:
            self._values += 1
            if event.anchor is not None:
                self._anchors[event.anchor] = (event.value, 1)
            if event.value == "<<" and event.implicit[0]:
                return _MERGE
            return event.value
        raise self._wrong(event, "YAML: a key must be text")

    def _merge_source(self, event: Any) -> dict[str, Any]:
        value = self._value(event)
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(one, dict) for one in sources):
            raise self._wrong(event, "YAML: << needs a mapping or a list of them")
        merged: dict[str, Any] = {}
        for one in sources:
            for name, item in one.items():
                merged.setdefault(name, item)
        return merged
