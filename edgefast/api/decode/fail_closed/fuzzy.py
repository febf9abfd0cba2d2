"""Fuzzy: reads misspelt fields, values, names and hostnames of an object with a mistake.

In: plain values, and a Struct with the known fields and values.
Out: the value under a misspelt name, the value that was perhaps meant, hostnames without what
people write around them.
Must never: raise for what a user wrote, or read more of it than an object may have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from edgefast.api.decode.walk import Walk
from edgefast.api.limits import MAX_CLOSED_PARTS
from edgefast.api.loaded import render_path
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import Element, Hostname
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.shape import shape_of
from edgefast.api.model.units import parse_timestamp
from edgefast.api.validation.hostname import check_hostname
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef, Source, did_you_mean

#: The name of an object whose own cannot be read.
NAMELESS = "?"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
#: Fields of a part of an object that are looked at; no part has as many.
_MAX_KEYS = 32
#: A hostname with what people write around it: scheme, port, path, the dot of the root.
_HOSTNAME = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*://)?([^/:\s]+?)\.?(?::\d*)?(?:/.*)?\s*", re.DOTALL)


def read_meta(raw: object, ref: ObjectRef) -> ObjectMeta:
    """Return what can be read of the metadata; `name` is NAMELESS when its own cannot."""
    known = raw if isinstance(raw, dict) else {}
    uid, generation, created = (
        known.get(one) for one in ("uid", "generation", "creationTimestamp")
    )
    aged = isinstance(created, str) and parse_timestamp(created) is not None
    return ObjectMeta(
        name=ref.name if _NAME.fullmatch(ref.name) else NAMELESS,
        namespace=ref.namespace,
        uid=uid if isinstance(uid, str) else "",
        generation=generation if isinstance(generation, int) else 0,
        creation_timestamp=created if isinstance(created, str) and aged else "",
    )


def read_spec(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the `spec` of an object, empty if it is not a mapping."""
    spec = raw.get("spec")
    return spec if isinstance(spec, dict) else {}


def note_closed(
    first: Violation, *, widened: Iterable[tuple[int, int]] = (), lost: bool = False
) -> Closed:
    """Return the note of an object with a mistake."""
    message = f"{first.reason} {first.message}"
    return Closed(render_path(first.path), message, frozenset(widened), lost)


def name_stand_in(source: Source) -> str:
    """Return the name of an object of a file whose own cannot be read: no other one has it, and names of listeners can be cut at slashes."""
    return f"{NAMELESS}{source}".replace("/", "|")


def read_hostnames(raw: object) -> tuple[tuple[str, ...], bool]:
    """Return the hostnames, and whether there are some of which none can be read."""
    found: dict[str, None] = {}
    items = list(items_of(raw))
    for one in items:
        inner = _HOSTNAME.fullmatch(one.lower()) if isinstance(one, str) else None
        if inner is None:
            continue
        try:
            host = msgspec.convert(inner[1], Hostname)
        except msgspec.ValidationError:
            continue
        if not check_hostname(host):
            found[host] = None
    return tuple(found), bool(items) and not found


def items_of(raw: object) -> Iterator[Any]:
    """Give the entries of a list, one more than is read at most; what stands where a list should is its only entry."""
    if isinstance(raw, list | tuple):
        return islice(raw, MAX_CLOSED_PARTS + 1)
    return iter(() if raw is None else (raw,))


def names_of(struct: type[Element]) -> list[str]:
    """Return the names of the fields."""
    return [one.name for one in shape_of(struct).fields]


def _meant(name: str, struct: type[Element]) -> str | None:
    """Return the field that a name is, or all but is."""
    return word_of(name, names_of(struct))


def field_of(raw: dict[str, Any], name: str, struct: type[Element]) -> Any:
    """Return a field; when there is none of that name, the one whose name was perhaps meant to be it."""
    if raw.get(name) is not None:
        return raw[name]
    known = names_of(struct)
    near = (
        key for key in islice(raw, _MAX_KEYS) if key not in known and _meant(key, struct) == name
    )
    return raw.get(next(near, name))


def is_strange(raw: dict[str, Any], struct: type[Element]) -> bool:
    """Tell whether there is a field that may mean anything."""
    return len(raw) > _MAX_KEYS or any(_meant(key, struct) is None for key in raw)


def words_of(struct: type[Element], name: str) -> tuple[Any, ...]:
    """Return the words that a field may have."""
    found = shape_of(struct).field(name)
    assert found is not None
    return found.shape.enum


def word_of(text: object, words: Collection[str]) -> str | None:
    """Return the word that a text is, or all but is."""
    if not isinstance(text, str) or text in words:
        return text if isinstance(text, str) else None
    message = did_you_mean(text, words)
    return next((word for word in words if message == f"did you mean {word}?"), None)


def build(struct: type[Any], raw: object) -> Any:
    """Return the Struct of sound fields, None when one of them is not."""
    return Walk(redact=True).build(struct, raw)
