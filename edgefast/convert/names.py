"""Names: of the objects in the output: those of their Ingresses where that is possible.

In: pieces, made objects, the names that are taken. Out: one name for each, valid in Kubernetes and unique for its kind and namespace.
Must never: use the name of an object that exists already.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from edgefast.api.edge.httproutefilter import HTTPRouteFilterSpec
from edgefast.api.model.origin import MARK
from edgefast.api.snapshot import Key, Snapshot
from edgefast.convert.pieces import Piece

__all__ = ["Names", "name_filter", "name_pieces", "plain_name"]

_LONGEST = 253
_OTHER = re.compile(r"[^a-z0-9]+")
_LONGEST_PART = 40


class Names:
    """Gives names that are free; `table` is one of the Snapshot's."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._given: set[tuple[str, Key]] = set()

    def is_free(self, table: str, key: Key) -> bool:
        """Tell whether a name can be given."""
        return (table, key) not in self._given and key not in getattr(self._snapshot, table)

    def take(self, table: str, namespace: str, *wanted: str) -> str:
        """Return the first name that is free, else the last one with a number."""
        for one in chain(wanted, _count(wanted[-1])):
            name = _shorten(one)
            if self.is_free(table, (namespace, name)):
                self._given.add((table, (namespace, name)))
                return name
        raise AssertionError("unreachable: the numbers have no end")


def _count(name: str) -> Iterator[str]:
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _shorten(name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.blake2s(name.encode(), digest_size=4).hexdigest()
    return f"{name[: _LONGEST - 9].rstrip('.-')}-{digest}"


def plain_name(name: str) -> str:
    """Return the name of a made object without its mark: "web.Ingress-80" becomes "web-80"."""
    return name.replace(MARK, "").lower()


def name_pieces(pieces: Iterable[Piece], names: Names) -> None:
    """Name the routes: the main one of an Ingress has the name of the Ingress."""
    by_ingress: dict[Key, list[Piece]] = {}
    for piece in pieces:
        by_ingress.setdefault((piece.namespace, piece.ingress.name), []).append(piece)
    for (namespace, name), own in sorted(by_ingress.items()):
        main = max(own, key=lambda one: (one.has_backends, one.is_encrypted, len(one.rules)))
        main.name = names.take("http_routes", namespace, name)
    for (namespace, name), own in sorted(by_ingress.items()):
        for piece in own:
            if not piece.name:
                piece.name = names.take("http_routes", namespace, *_suggest(name, piece))


def _suggest(name: str, piece: Piece) -> Iterator[str]:
    what = "https" if piece.is_encrypted else "http"
    if piece.is_redirect:
        what = "redirect"
    yield f"{name}-{what}"
    host = piece.hostnames[0].replace("*", "any") if piece.hostnames else "all"
    yield f"{name}-{what}-{host}"


def name_filter(spec: HTTPRouteFilterSpec) -> str:
    """Return a name after the effect of a filter."""
    if spec.direct_response is not None:
        return f"answer-{spec.direct_response.status_code}"
    if spec.url_rewrite is not None and spec.url_rewrite.path.replace_regex_match is not None:
        return _join("rewrite", spec.url_rewrite.path.replace_regex_match.substitution)
    if spec.redirect is not None:
        form = spec.redirect
        if form.location is not None:
            return _join("redirect", form.location.template)
        parts = (
            "no-slash" if form.trailing_slash == "Remove" else "",
            "port" if form.port == "Always" else "",
            "no-query" if form.query == "Remove" else "",
        )
        return "-".join(("redirect", *filter(None, parts)))
    if spec.backend_protocol is not None:
        return "backend-http2"
    cookies = [one for match in spec.matches for one in match.cookies]
    return _join("cookie", "-".join(f"{one.name}-{one.value}" for one in cookies))


def _join(word: str, text: str) -> str:
    part = _OTHER.sub("-", text.lower()).strip("-")[:_LONGEST_PART].rstrip("-")
    return f"{word}-{part}" if part else word
