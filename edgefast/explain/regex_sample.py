"""Regex sample: a text that a regular expression matches, for example requests.

In: an RE2 pattern. Out: a short value that fully matches it, or None. A small parser of the usual
syntax reads the pattern. RE2 itself checks the result. A construct that the parser does not know
therefore costs an example and nothing else.
Must never: return a text that does not match.
"""

from __future__ import annotations

import re

from edgefast.api.model.regex import compile_regex

_CLASSES = {"d": "0", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a"}
_NAMED = {
    "alnum": "a", "alpha": "a", "digit": "0", "lower": "a", "upper": "A", "punct": "-",
    "space": " ", "word": "a", "xdigit": "0", "graph": "a", "print": "a", "ascii": "a",
}  # fmt: skip
_PLAIN = "a0-A_./ ~b1zZ9"
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_GROUP = re.compile(r"\?(?:P?<[A-Za-z_]\w*>|[imsU-]*:)")
_FLAGS = re.compile(r"\?[imsU-]+\)")
_LONGEST = 1000


class _Unknown(Exception):
    """A construct that the parser does not know."""


def sample_pattern(pattern: str) -> str | None:
    """Return a text that a pattern fully matches; None when none can be made."""
    if len(pattern) > _LONGEST:
        return None
    candidates = []
    try:
        reader = _Reader(pattern)
        made = reader.alternatives()
        if reader.at == len(pattern):
            candidates.append(made)
    except (_Unknown, IndexError, RecursionError):
        pass
    candidates += ["/", "/a", "a", "0", "1", ""]
    compiled = compile_regex(pattern)
    return next((one for one in candidates if compiled.fullmatch(one) is not None), None)


class _Reader:
    """Reads a pattern and writes the text of it on the way."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0

    def _peek(self) -> str:
        return self._pattern[self.at : self.at + 1]

    def _next(self) -> str:
        char = self._pattern[self.at]
        self.at += 1
        return char

    def alternatives(self) -> str:
        """Return the first alternative; the others are read over."""
        first = self._sequence()
        while self._peek() == "|":
            self._next()
            self._sequence()
        return first

    def _sequence(self) -> str:
        text = ""
        while self._peek() not in ("", "|", ")"):
            text += self._repeated(self._atom())
        return text

    def _repeated(self, atom: str) -> str:
        least = 1
        while self._peek() in ("*", "+", "?", "{"):
            found = _REPEAT.match(self._pattern, self.at)
            if self._peek() == "{":
                if found is None:
                    break
                least *= int(found[1])
                self.at = found.end()
            else:
                least = least if self._next() == "+" else 0
        return atom * least

    def _atom(self) -> str:
        char = self._next()
        if char in "^$":
            return ""
        if char == ".":
            return "a"
        if char == "(":
            return self._group()
        if char == "[":
            return self._bracket()
        return self._escape() if char == "\\" else char

    def _group(self) -> str:
        flags = _FLAGS.match(self._pattern, self.at)
        if flags is not None:  # (?i): for what follows; letters are taken as they stand
            self.at = flags.end()
            return ""
        named = _GROUP.match(self._pattern, self.at)
        if named is not None:
            self.at = named.end()
        elif self._peek() == "?":
            raise _Unknown
        text = self.alternatives()
        if self._next() != ")":
            raise _Unknown
        return text

    def _escape(self) -> str:
        char = self._next()
        if char in _CLASSES:
            return _CLASSES[char]
        if char in "AzbB":
            return ""
        if char.isalnum():
            raise _Unknown
        return char

    def _bracket(self) -> str:
        start = self.at
        negated = self._peek() == "^"
        if negated:
            self._next()
        chosen = ""
        first = True
        while first or self._peek() != "]":
            first = False
            # Without an end it is two characters of the set.
            if (
                self._pattern.startswith("[:", self.at)
                and (end := self._pattern.find(":]", self.at)) >= 0
            ):
                chosen = chosen or _NAMED.get(self._pattern[self.at + 2 : end], "")
                self.at = end + 2
                continue
            char = self._next()
            one = self._escape() if char == "\\" else char
            chosen = chosen or one
        self._next()
        if not negated:
            return chosen
        whole = compile_regex("[" + self._pattern[start : self.at])
        for char in _PLAIN:
            if whole.fullmatch(char) is not None:
                return char
        raise _Unknown
