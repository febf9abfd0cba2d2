"""Snippet annotations: configuration-snippet, server-snippet and the other annotations with directives of nginx.

In: the annotations of an Ingress, the risk level of the ConfigMap. Out: the `Snippet` of its locations; snippet.py reads the text. A
directive that can decide access closes the locations, of a server-snippet all locations of the hosts.
Source: ingress-nginx internal/ingress/annotations (snippet, serversnippet, streamsnippet, modsecurity).
Must never: show the value of a snippet.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.snippet import (
    Refused,
    Snippet,
    read_server_snippet,
    read_snippet,
)
from edgefast.translate.ingress.unserved import CRITICAL

__all__ = ["read_snippets"]


def read_snippets(reader: AnnotationReader) -> Snippet:
    """Return the configuration-snippet; without one, or where ingress-nginx ignores it, an empty Snippet."""
    found = Snippet()
    for name in CRITICAL:
        reader.values.seen.add(name)
        if not reader.values.has(name):
            continue
        if not reader.settings.critical:
            message = "needs annotations-risk-level Critical in the ConfigMap of ingress-nginx"
            reader.refuse(name, message, "remove the annotation")
        elif not reader.settings.allow_snippets:
            message = "ingress-nginx ignores it without allow-snippet-annotations; so does edgefast"
            reader.warn(name, message)
        elif name == "configuration-snippet":
            found = _read_configuration(reader, name)
        elif name == "server-snippet":
            refused = read_server_snippet(_read_text(reader, name))
            reader.closes_host = reader.closes_host or bool(refused)
            _note_refused(reader, name, refused)
        else:
            reader.close(name, "directives of nginx are not served and can decide access")
    return found


def _read_configuration(reader: AnnotationReader, name: str) -> Snippet:
    found = read_snippet(_read_text(reader, name))
    settings = reader.settings
    lists = ("allowlist-source-range", "whitelist-source-range", "denylist-source-range")
    others = any(reader.values.has(one) for one in lists)
    others = others or bool(settings.allow or settings.deny or settings.block)
    if (found.allow or found.deny) and others:
        message = "allow and deny beside other lists of addresses are not served"
        reader.close(name, message, "write one list of addresses")
    _note_refused(reader, name, found.refused)
    return found


def _note_refused(reader: AnnotationReader, name: str, refused: Iterable[Refused]) -> None:
    for one in refused:
        what = f"{one.directive} " if one.directive else ""
        message = f"line {one.line}: {what}is not served; {one.effect}"
        fix = one.fix or ("remove the line, or write an object of edgefast" if one.closes else "")
        if one.closes:
            reader.closed[name] = None
            reader.note(name, message, fix)
        else:
            reader.warn(name, message, fix)


def _read_text(reader: AnnotationReader, name: str) -> str:
    return reader.read("", reader.values.text, name, lambda _: True)
