"""Shadowed match: matches that never take a request, because an earlier one takes all of theirs.

In: entries of virtual hosts in order of precedence. Out: for each such entry the one that covers
it. A match covers another when its path, method and every predicate match wherever the other's do.
Every reported cover is true. Not found: a cover by several matches together, or by a regular
expression in a way that its text does not show.
Cost: a few probes per entry, however many there are: an index by value finds matches on the same
names.
Must never: change what is served.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice

from edgefast import ir
from edgefast.api.model.regex import compile_regex
from edgefast.api.snapshot import Key
from edgefast.translate.match.literal import literal_prefix
from edgefast.translate.match.precedence import Age, MatchOrder

#: Age of the route that it comes with or (0) before, and of its own (tie_break.py).
Turn = tuple[int, str, int, Age]
#: order, turn, rule, place in its matches, match, number of the rule in its host, route
HostEntry = tuple[MatchOrder, Turn, int, int, ir.Match, int, Key]

#: Shapes that are looked at for one name of one entry: a hostile author of routes must not cost seconds.
_MOST = 64
_MOST_REGEXES = 8  # of them with regular expressions, which are evaluated

_Name = tuple[bool, str]  # is it a query parameter, its name
_Shape = tuple[tuple[_Name, str | None], ...]  # what predicates look at, and the pattern of a regex
_Values = tuple[str, ...]
_NONE: dict[_Shape, dict[_Values, dict[str, HostEntry]]] = {}


def find_shadows(entries: Iterable[HostEntry]) -> list[tuple[HostEntry, HostEntry]]:
    """Return (entry, what covers it) pairs; entries come in order of precedence."""
    covers, found = Covers(), []
    for entry in entries:
        winner = covers.find(entry[4])
        if winner is None:
            covers.add(entry)
        else:
            found.append((entry, winner))
    return found


class Covers:
    """The entries so far, by what they may cover. `across`: they are of hosts before the one that is asked for."""

    __slots__ = ("_across", "_below", "_exact", "_lengths", "_open", "_patterns", "_prefix")

    def __init__(self, *, across: bool = False) -> None:
        self._across = across
        self._exact: dict[str, _Group] = {}
        self._prefix: dict[str, _Group] = {}
        self._patterns: dict[str, _Group] = {}
        self._open: dict[str, _Group] = {}  # regexes "literal.*", by the literal
        self._below: dict[str, _Group] = {}  # regexes "literal(/.*)?": a prefix in other words
        self._lengths: tuple[int, ...] = ()  # of the keys of _open

    def add(self, entry: HostEntry) -> None:
        """Take an entry that nothing covers."""
        match = entry[4]
        if match.kind == "exact":
            _group(self._exact, match.path).add(entry)
        elif match.kind == "prefix":
            _group(self._prefix, match.path).add(entry)
        else:
            _group(self._patterns, match.path).add(entry)
            kind, literal = _read_pattern(match.path)
            if kind == "open":
                _group(self._open, literal).add(entry)
                self._lengths = tuple(sorted({*self._lengths, len(literal)}))
            elif kind == "below":
                _group(self._below, literal).add(entry)

    def find(self, match: ir.Match) -> HostEntry | None:
        """Return an entry that takes every request of a match, the first where there are several."""
        found: HostEntry | None = None
        for group in self._groups(match):
            entry = group.find(match)
            if entry is not None and (found is None or entry < found):
                found = entry
        return found

    def _groups(self, match: ir.Match) -> Iterator[_Group]:
        """Those whose path holds wherever the match's does."""
        path, kind = match.path, match.kind
        if kind == "exact":
            if path in self._exact:
                yield self._exact[path]
            begin = path
            for pattern, group in islice(self._patterns.items(), _MOST_REGEXES):
                if _full_match(pattern, path):
                    yield group
        elif kind == "regex":
            if path in self._patterns:
                yield self._patterns[path]
            begin = literal_prefix(path)
        else:
            begin = path or "/"
        if not begin:
            begin = "/"  # every path begins so
        for length in self._lengths:
            if length <= len(begin) and begin[:length] in self._open:
                yield self._open[begin[:length]]
        if not self._across and not self._below:  # in one host, prefixes above come later
            if kind == "prefix" and path in self._prefix:
                yield self._prefix[path]
        elif self._prefix or self._below:
            for prefix in _prefixes(begin, whole=kind != "regex"):
                if prefix in self._prefix:
                    yield self._prefix[prefix]
                if prefix in self._below:
                    yield self._below[prefix]


class _Group:
    """Entries of one path, by method and predicates."""

    __slots__ = ("_plain", "_shapes")

    def __init__(self) -> None:
        self._plain: dict[str, HostEntry] = {}  # without predicates, by method
        # By the first name that a shape looks at; then by shape, values and method.
        self._shapes: dict[_Name, dict[_Shape, dict[_Values, dict[str, HostEntry]]]] = {}

    def add(self, entry: HostEntry) -> None:
        match = entry[4]
        if not match.headers and not match.query:
            self._plain.setdefault(match.method, entry)
            return
        shape, values = _shape_of(match)
        by_values = self._shapes.setdefault(shape[0][0], {}).setdefault(shape, {})
        by_values.setdefault(values, {}).setdefault(match.method, entry)

    def find(self, match: ir.Match) -> HostEntry | None:
        plain = self._plain
        found = plain.get("") or plain.get(match.method) if plain else None
        if not self._shapes:
            return found
        known = {(False, one.name): one for one in match.headers}
        known.update(((True, one.name), one) for one in match.query)
        regexes = 0
        for name in known:
            for shape, by_values in islice(self._shapes.get(name, _NONE).items(), _MOST):
                if any(pattern is not None for _, pattern in shape):
                    regexes += 1
                    if regexes > _MOST_REGEXES:
                        continue
                values = _values_for(shape, known)
                methods = by_values.get(values) if values is not None else None
                if methods:
                    entry = methods.get("") or methods.get(match.method)
                    if entry is not None and (found is None or entry < found):
                        found = entry
        return found


def _group(groups: dict[str, _Group], path: str) -> _Group:
    group = groups.get(path)
    if group is None:
        group = groups[path] = _Group()
    return group


def _shape_of(match: ir.Match) -> tuple[_Shape, _Values]:
    """Take a match's predicates apart: what they look at, regexes included, and which exact values they want."""
    shape: list[tuple[_Name, str | None]] = []
    values = []
    for is_query, predicates in ((False, match.headers), (True, match.query)):
        for one in predicates:
            shape.append(((is_query, one.name), one.value if one.regex else None))
            if not one.regex:
                values.append(one.value)
    return tuple(shape), tuple(values)


def _values_for(shape: _Shape, known: Mapping[_Name, ir.ValueMatch]) -> _Values | None:
    """Return the exact values of a match at a shape's names; None when the shape asks for more than the match."""
    values = []
    for name, pattern in shape:
        has = known.get(name)
        if has is None:
            return None
        if pattern is None:
            if has.regex:
                return None
            values.append(has.value)
        elif has.regex:
            if has.value != pattern:
                return None
        elif not _full_match(pattern, has.value):
            return None
    return tuple(values)


def _prefixes(begin: str, *, whole: bool) -> Iterator[str]:
    """Prefixes that hold for every path that begins so; `whole`: at a boundary after it, too."""
    yield ""
    at = begin.find("/", 1)
    while at > 0:
        yield begin[:at]
        at = begin.find("/", at + 1)
    if whole and begin != "/" and not begin.endswith("/"):
        yield begin


@lru_cache(maxsize=4096)
def _read_pattern(pattern: str) -> tuple[str, str]:
    """Tell what a pattern takes: ("open", "/a") all that begins so, ("below", "/a") that path and those below; else ""."""
    text = pattern.removeprefix("^")
    text = text[:-1] if text.endswith((".*$", ")?$")) else text
    for end, kind in (("(/.*)?", "below"), ("(?:/.*)?", "below"), (".*", "open")):
        if text.endswith(end):
            body = text.removesuffix(end)
            literal = _unescape(body)
            if literal is not None and (literal.startswith("/") or (kind == "open" and not body)):
                return kind, literal
    return "", ""


def _unescape(body: str) -> str | None:
    """Return the text that a pattern without operators stands for, None when it has some."""
    literal = []
    rest = iter(body)
    for char in rest:
        if char == "\\":
            char = next(rest, "a")
            if char.isalnum():
                return None
        elif char in ".[]()*+?{}|^$":
            return None
        literal.append(char)
    return "".join(literal)


def _full_match(pattern: str, text: str) -> bool:
    return compile_regex(pattern).fullmatch(text) is not None
