"""Annotation reader: reads the values of one Ingress's annotations, and keeps the effect of each invalid one.

In: the annotations of an Ingress, the settings of the ConfigMap. Out: values; notes, and whether the Ingress is refused or closed. The
modules of the topics read their annotations with it; annotations.py makes one struct of them.
Must never: show the value of a snippet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.ingress.configmap import Globals, Note
from edgefast.translate.ingress.known import KNOWN
from edgefast.translate.ingress.values import Missing, NoValue, Rejected, Values

__all__ = ["AnnotationReader"]

_T = TypeVar("_T")

#: Texts of notes about values that ingress-nginx serves.
_LESS = re.compile(r"not served|is always|have the|decide access|\bno effect: edgefast")


class AnnotationReader:
    """The annotations of one Ingress, and what their values lead to."""

    def __init__(
        self, annotations: Mapping[str, str], settings: Globals, namespace: str = ""
    ) -> None:
        self.values = Values(annotations)
        self.settings = settings
        self.namespace = namespace
        self.notes: list[Note] = []
        #: The first annotation for which the Ingress is not served.
        self.refused = ""
        #: Annotations for which its locations answer 503.
        self.closed: dict[str, None] = {}
        self.closes_host = False  # all locations of its hosts answer 503
        self.closes_no_auth = False  # an auth-url that is not valid closes no-auth-locations, too

    def read(self, default: _T, read: Callable[..., _T], name: str, *rest: object) -> _T:
        """Return `read(name, *rest)`, as ingress-nginx does: the default in place of a value that is missing or not valid."""
        try:
            return read(name, *rest)
        except Missing:
            return default
        except NoValue:
            shown = str(default).lower() if isinstance(default, bool) else str(default)
            with_default = f"uses {shown}" if shown else "ignores it"
            self.warn(name, f"not valid; edgefast {with_default}, as ingress-nginx does")
            return default

    def require(self, name: str, check: Callable[[str], bool]) -> str:
        """Return a text, "" without one; a text that is not valid refuses the Ingress."""
        try:
            return self.values.text(name, check)
        except Rejected:
            self.refuse(name)
        except NoValue:
            pass
        return ""

    def refuse(self, name: str, message: str = "not valid", hint: str = "") -> None:
        """Serve no location of the Ingress; the first annotation counts."""
        self.refused = self.refused or name
        effect = "the Ingress is not served, as ingress-nginx serves no such Ingress"
        self.note(name, f"{message}; {effect}", hint)

    def close(self, name: str, message: str, hint: str = "") -> None:
        """Answer 503 at the locations of the Ingress."""
        self.closed[name] = None
        self.note(name, f"{message}; its locations answer 503", hint)

    def close_host(self, name: str, message: str) -> None:
        """Answer 503 at all locations of its hosts."""
        self.close(name, message)
        self.closes_host = True

    def note(self, name: str, message: str, hint: str = "") -> None:
        """Note an error."""
        self.add(Note(name=name, message=message, hint=hint, error=True))

    def warn(self, name: str, message: str, hint: str = "") -> None:
        """Note a warning."""
        self.add(Note(name=name, message=message, hint=hint))

    def add(self, note: Note) -> None:
        """Note a value; the reason is NotSupported where edgefast serves less than ingress-nginx."""
        less = _LESS.search(note.message) is not None
        reason: Word = "NotSupported" if less and note.name != self.refused else "Invalid"
        if note.name not in KNOWN:
            reason = "Ignored"
        self.notes.append(msgspec.structs.replace(note, reason=reason))
