"""Annotations: annotations of other projects on an object; edgefast applies none of them.

In: the annotations of an object from any source.
Out: those of the domains in the tables, each with its equivalent in edgefast; those that decide
access come first. Most objects have none; for them the cost is one look-up.
Must never: look at a value: a snippet, or a secret, may be in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from edgefast.api.limits import MAX_SHOWN_NAME
from edgefast.api.migration.field_mappings import PAGE, PROJECTS, describe_mapping

__all__ = ["Annotated", "Unapplied", "find_annotated", "is_access_annotation", "name_annotations"]

#: Annotations of one object that are told one by one.
_MOST = 32

_TABLES = {one.annotations.domain: one.annotations for one in PROJECTS if one.annotations}
_TITLES = {one.annotations.domain: one.title for one in PROJECTS if one.annotations}
_PREFIXES = tuple(f"{domain}/" for domain in _TABLES)


class Annotated(msgspec.Struct, frozen=True):
    """One annotation."""

    name: str  # "nginx.ingress.kubernetes.io/auth-url"
    short: str  # "auth-url"
    access_policies: bool  # it decides who gets in; so may one that is in no table
    project: str
    said: str  # what of it is here


class Unapplied(NamedTuple):
    """An annotation that is not applied; an error if it decides access."""

    path: tuple[str, ...]
    message: str
    hint: str
    access_policies: bool


class Rest(NamedTuple):
    """Annotations that are not told one by one."""

    number: int = 0
    access_policies: bool = False  # some of them do


_NO_REST = Rest()


def find_annotated(annotations: Iterable[str]) -> tuple[list[Annotated], Rest]:
    """Return what an object has of other projects' annotations, so many of them at most, and what there is beside."""
    names = [one for one in annotations if one.startswith(_PREFIXES)]
    if not names:
        return [], _NO_REST
    names.sort(key=lambda name: (not _access_policies(name), name))
    rest = names[_MOST:]
    return [_read(one) for one in names[:_MOST]], Rest(
        len(rest), bool(rest) and _access_policies(rest[0])
    )


def is_access_annotation(name: str) -> bool:
    """Tell whether an annotation of a domain in the tables decides access, or may decide it."""
    return name.startswith(_PREFIXES) and _access_policies(name)


def _access_policies(name: str) -> bool:
    domain, _, short = name.partition("/")
    return short not in _TABLES[domain].others


def _read(name: str) -> Annotated:
    domain, _, short = name.partition("/")
    table = _TABLES[domain]
    shown = short[:MAX_SHOWN_NAME]
    message = describe_mapping(shown, table.access_policies.get(short) or table.others.get(short))
    return Annotated(name[:MAX_SHOWN_NAME], shown, _access_policies(name), _TITLES[domain], message)


def name_annotations(raw: Mapping[str, Any]) -> Iterator[Unapplied]:
    """Yield the annotations of a document that are not applied, with their replacement."""
    metadata = raw.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    names = annotations if isinstance(annotations, dict) else ()
    found, rest = find_annotated(one for one in names if isinstance(one, str))
    for one in found:
        path = ("metadata", "annotations", one.name)
        message = one.said.removeprefix(f"{one.short}: ")
        yield Unapplied(path, "not applied", f"{message}; see {PAGE}", one.access_policies)
    if rest.number:
        message = f"{rest.number} more are not applied"
        yield Unapplied(("metadata", "annotations"), message, f"see {PAGE}", rest.access_policies)
