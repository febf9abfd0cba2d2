"""Readable: the valid parts of an object with an error.

In: plain values, and the Struct of a part. Out: metadata, hostnames and Structs of valid parts. A
part counts by its exact name and value; an invalid part can mean anything. A misspelled field is
the exception. It counts as the field that its message suggests, because the place of an object (its
parents, hostnames and ports) cannot be widened: all other hostnames belong to other objects.
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
from edgefast.api.loaded import Path, render_path
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
    """Return the note of an object with an error."""
    message = f"{first.reason} {first.message}"
    return Closed(render_path(first.path), message, frozenset(widened), lost)


def name_stand_in(source: Source) -> str:
    """Return a unique name for an object without a readable one; names of listeners can be cut at slashes."""
    return f"{NAMELESS}{source}".replace("/", "|")


def is_repeated(repeated: Collection[Path], *fields: str) -> bool:
    """Tell whether a document gives `spec`, or one of these fields of it, twice: the first of two is lost."""
    return not {("spec",), *(("spec", one) for one in fields)}.isdisjoint(repeated)


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
    """Give the entries of a list, one more than is read at most; another value is its only entry."""
    if isinstance(raw, list | tuple):
        return islice(raw, MAX_CLOSED_PARTS + 1)
    return iter(() if raw is None else (raw,))


def names_of(struct: type[Element]) -> list[str]:
    """Return the names of the fields."""
    return [one.name for one in shape_of(struct).fields]


def field_of(raw: dict[str, Any], name: str, struct: type[Element]) -> Any:
    """Return a field; without it, an unknown field whose message suggests this name."""
    if raw.get(name) is not None:
        return raw[name]
    known, hint = names_of(struct), did_you_mean(name, (name,))
    near = (
        key
        for key in islice(raw, _MAX_KEYS)
        if key not in known and did_you_mean(key, known) == hint
    )
    return raw.get(next(near, name))


def is_strange(raw: dict[str, Any], struct: type[Element]) -> bool:
    """Tell whether there is an unknown field whose message suggests no name: it can mean anything."""
    known = names_of(struct)
    return len(raw) > _MAX_KEYS or any(
        key not in known and not did_you_mean(key, known) for key in raw
    )


def build(struct: type[Any], raw: object, *, lenient: bool = False) -> Any:
    """Return the Struct of a valid part, None for an invalid one; `lenient`: of values of the right types."""
    return Walk(lenient=lenient, redact=True).build(struct, raw)
