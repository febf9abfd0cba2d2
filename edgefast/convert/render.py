"""Render: objects of a conversion as YAML with comments.

In: `Converted` objects. Out: text of one file.
Must never: write a value that YAML reads as another type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from edgefast.api.gateway.httproute import HTTPRoute
from edgefast.api.kinds import Object, info_of
from edgefast.convert.conversion import Converted

__all__ = ["plain_object", "render_objects"]

#: Texts that are written without quotes: no YAML parser reads another type.
_BARE = re.compile(r"/?[A-Za-z][A-Za-z0-9._/-]*|/")
_WORDS = frozenset("y n yes no on off true false null".split())
#: What is omitted: the decoder writes it.
_NOTED = ("adopted", "aimed", "closed", "newer", "origin", "unserved")
_LONGEST_COMMENT = 400


def plain_object(obj: Object) -> dict[str, Any]:
    """Return an object as a document of its API."""
    info = info_of(obj)
    value: dict[str, Any] = msgspec.to_builtins(obj)
    for name in _NOTED:
        value.pop(name, None)
    if isinstance(obj, HTTPRoute):
        _complete_matches(value)
    head = {"apiVersion": info.api_versions[0], "kind": info.kind}
    return {**head, "metadata": value.pop("metadata"), **value}


def _complete_matches(value: dict[str, Any]) -> None:
    """Write the path of each match, also where it is the default."""
    for rule in value["spec"].get("rules", ()):
        given = rule.pop("matches", [{}])
        matches = []
        for one in given:
            path = {"type": "PathPrefix", "value": "/", **one.pop("path", {})}
            matches.append({"path": path, **one})
        rest = dict(rule)
        rule.clear()
        rule.update({"matches": matches, **rest})


def render_objects(objects: Iterable[Converted]) -> str:
    """Return documents, each below its comment."""
    return "---\n".join("".join(f"{line}\n" for line in _render(one)) for one in objects)


def _render(one: Converted) -> Iterator[str]:
    for line in one.comment.split("\n") if one.comment else ():
        yield _comment(line)
    yield from _mapping(plain_object(one.obj), "", "", one.parts)


def _comment(text: str) -> str:
    """Return a comment line: texts contain names of files of others."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return f"# {shown[:_LONGEST_COMMENT]}"


def _mapping(
    value: Mapping[str, Any], indent: str, path: str, parts: Mapping[str, str]
) -> Iterator[str]:
    for key, inner in value.items():
        where = f"{path}.{key}" if path else key
        if about := parts.get(where):
            yield f"{indent}{_comment(about)}"
        name = _scalar(key)
        if isinstance(inner, Mapping) and inner:
            yield f"{indent}{name}:"
            yield from _mapping(inner, f"{indent}  ", where, parts)
        elif isinstance(inner, list | tuple) and inner:
            yield f"{indent}{name}:"
            yield from _sequence(inner, indent, where, parts)
        else:
            yield f"{indent}{name}: {_scalar(inner)}"


def _sequence(
    value: Iterable[Any], indent: str, path: str, parts: Mapping[str, str]
) -> Iterator[str]:
    for at, inner in enumerate(value):
        where = f"{path}[{at}]"
        if about := parts.get(where):
            yield f"{indent}{_comment(about)}"
        if isinstance(inner, Mapping) and inner:
            lines = list(_mapping(inner, f"{indent}  ", where, parts))
            first = next(at for at, one in enumerate(lines) if not one.lstrip().startswith("# "))
            yield from lines[:first]
            yield f"{indent}- {lines[first].lstrip()}"
            yield from lines[first + 1 :]
        else:
            yield f"{indent}- {_scalar(inner)}"


def _scalar(value: Any) -> str:
    """Return a scalar in YAML: JSON is YAML, and plain words need no quotes."""
    if isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return msgspec.json.encode(value).decode()
