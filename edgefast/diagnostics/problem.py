"""Problem: one user mistake, with the same text in every output.

In: the object, the full field path, a reason word and the allowed values.
Out: `Problem` values with the same text on the command line, in a status condition and in the
console. User mistakes are values, never exceptions; the component that finds one collects it and
continues.
Must never: read files, depend on a resource model, or contain a secret's content in a message.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

from edgefast.diagnostics.reasons.word import Word

Severity = Literal["error", "warning"]

#: Characters; a longer word is no slip of the pen, and comparing takes quadratic time.
_LONGEST_GUESS = 64
_MOST_ASKED = 4


class ObjectRef(msgspec.Struct, frozen=True, order=True):
    """Names one object; `namespace` is "" for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str
    group: str = ""

    def __str__(self) -> str:
        # The place in the file replaces a missing name, after a "?".
        name = "(no name)" if self.name.startswith("?") else self.name
        if not self.namespace:
            return f"{self.kind} {name}".rstrip()
        return f"{self.kind} {self.namespace}/{name}"


class Source(msgspec.Struct, frozen=True):
    """A place in a file; `line` counts from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Problem(msgspec.Struct, frozen=True):
    """One mistake in one field of one object.

    `reason` is a word of the Kubernetes field errors (Required, Invalid, NotSupported, Forbidden,
    Duplicate, TooMany, TooLong) or a Gateway API condition reason (BackendNotFound, ...); each has
    its page in docs/problems, made from edgefast/diagnostics/reasons.
    `object` is None when the text is not an object at all; `path` is "" for the whole object.
    `condition` is the reason of the status condition where the API asks for another word there;
    it is no part of the text.
    """

    object: ObjectRef | None
    path: str
    reason: Word
    message: str
    hint: str = ""
    source: Source | None = None
    severity: Severity = "error"
    condition: Word | Literal[""] = ""

    def text(self) -> str:
        """Give the problem without its place: what a status condition says."""
        subject = " ".join(part for part in (str(self.object or ""), self.path) if part)
        message = f"{self.reason} {self.message}" if self.message else self.reason
        text = f"{subject}: {message}" if subject else message
        return _printable(f"{text}, {self.hint}" if self.hint else text)

    def line(self) -> str:
        """Give the problem as one line for a terminal: place first, then `text()`."""
        return f"{_printable(str(self.source))} {self.text()}" if self.source else self.text()


def _printable(text: str) -> str:
    """Escape what would break the line or steer a terminal; names and values come from users."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def page_of(reason: Word) -> str:
    """Return the page about a reason, as a path in the repository."""
    return f"docs/problems/{reason}.md"


def ask_for_more(problems: Iterable[Problem]) -> str:
    """Return the command that explains the reasons of problems, those that come first first; "" without problems."""
    return ask_about(problem.reason for problem in problems)


def ask_about(reasons: Iterable[str]) -> str:
    """Return the command that explains these reasons; words without a page are left out."""
    known = get_args(Word)
    words = [one for one in dict.fromkeys(reasons) if one in known][:_MOST_ASKED]
    return f"edgefast problem {' '.join(words)}" if words else ""


def did_you_mean(value: str, allowed: Iterable[str], *, alike: float = 0.6) -> str:
    """Return "did you mean X?" for the allowed word nearest to `value`, or "".

    `alike`: which part of the letters must agree.
    """
    if len(value) > _LONGEST_GUESS:
        return ""
    words = sorted(set(allowed))
    folded = {word.casefold(): word for word in reversed(words)}
    if value.casefold() in folded:
        return f"did you mean {folded[value.casefold()]}?"
    near = difflib.get_close_matches(value.casefold(), folded, n=1, cutoff=alike)
    return f"did you mean {folded[near[0]]}?" if near else ""


def supported_text(value: str, allowed: Iterable[str]) -> str:
    """Say which value was given and which are supported."""
    return f'"{value}" (supported: {", ".join(allowed)})'
