"""Shape: a model Struct as a tree, for decoding and for schemas.

In: a Struct class. Out: a `Shape` with every field's name, type, limits, default and description.
All come from the annotations, so that decoder, CRD schema and reference docs cannot differ.
Must never: know a kind by name.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import msgspec
from msgspec import NODEFAULT
from msgspec import inspect as types

from edgefast.api.model.fields import Element

#: Fields of objects that are the decoder's and no document's.
NOTED_FIELDS = frozenset({"adopted", "aimed", "closed", "newer", "origin", "unserved"})

ShapeKind = Literal[
    "string", "integer", "number", "boolean", "bytes", "list", "map", "struct", "choice", "any"
]


class FieldShape(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One field of a struct: `name` in documents, `attr` in Python."""

    name: str
    attr: str
    shape: Shape
    required: bool
    default: Any
    description: str = ""
    served: bool = True  # False: the API has it, and translation refuses it


class Shape(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One type. Only the members that belong to `kind` are filled in."""

    kind: ShapeKind
    #: string, integer: the values allowed, sorted.
    enum: tuple[str | int, ...] = ()
    #: string: those of them that are served.
    words: tuple[str, ...] = ()
    #: string: regular expression and what it means in words.
    pattern: str | None = None
    expects: str = ""
    #: string, list, map: characters, items, entries.
    min_length: int | None = None
    max_length: int | None = None
    #: integer, number.
    minimum: float | None = None
    maximum: float | None = None
    #: list, map: what is in it.
    item: Shape | None = None
    #: map: what its keys are; None: any text.
    key: Shape | None = None
    #: list: entries are unique by these fields, or as a whole.
    list_map_keys: tuple[str, ...] = ()
    list_set: bool = False
    #: struct.
    struct: type[Element] | None = None
    fields: tuple[FieldShape, ...] = ()
    unread: frozenset[str] = frozenset()
    #: choice: scalar types, one of which fits.
    choices: tuple[Shape, ...] = ()

    def field(self, name: str) -> FieldShape | None:
        """Return the field of that document name."""
        return next((one for one in self.fields if one.name == name), None)


@functools.cache
def shape_of(struct: type[Element]) -> Shape:
    """Return the shape of a Struct class; made once."""
    info = types.type_info(struct)
    assert isinstance(info, types.StructType)
    return Shape(
        kind="struct",
        struct=struct,
        fields=tuple(_field_shape(one) for one in info.fields if one.name not in NOTED_FIELDS),
        unread=getattr(struct, "unread", frozenset()),
    )


def _field_shape(info: types.Field) -> FieldShape:
    default = info.default
    if info.default_factory is not NODEFAULT:
        default = info.default_factory()
    return FieldShape(
        name=info.encode_name,
        attr=info.name,
        shape=_shape(info.type, {}),
        required=info.required,
        default=default,
        description=_description(info.type),
        served=_extra(info.type).get("refuses") != (),
    )


def _extra(info: types.Type) -> dict[str, Any]:
    return (info.extra or {}) if isinstance(info, types.Metadata) else {}


def _description(info: types.Type) -> str:
    if isinstance(info, types.Metadata) and info.extra_json_schema:
        return str(info.extra_json_schema.get("description", ""))
    return ""


def _shape(info: types.Type, extra: dict[str, Any]) -> Shape:
    match info:
        case types.Metadata():
            return _shape(info.type, {**extra, **(info.extra or {})})
        case types.UnionType():
            return _choice(info, extra)
        case types.StrType():
            return Shape(
                kind="string",
                pattern=info.pattern,
                expects=extra.get("expects", ""),
                min_length=info.min_length,
                max_length=info.max_length,
            )
        case types.LiteralType():
            values = tuple(one for one in info.values if isinstance(one, str | int))
            words = all(isinstance(one, str) for one in values)
            refused = extra.get("refuses", ())
            return Shape(
                kind="string" if words else "integer",
                enum=values,
                words=tuple(one for one in values if isinstance(one, str) and one not in refused),
            )
        case types.IntType():
            return Shape(kind="integer", minimum=info.ge, maximum=info.le)
        case types.FloatType():
            return Shape(kind="number", minimum=info.ge, maximum=info.le)
        case types.BoolType():
            return Shape(kind="boolean")
        case types.BytesType():
            return Shape(kind="bytes")
        case types.VarTupleType():
            return Shape(
                kind="list",
                item=_shape(info.item_type, {}),
                min_length=info.min_length,
                max_length=info.max_length,
                list_map_keys=extra.get("list_map_keys", ()),
                list_set=extra.get("list_set", False),
            )
        case types.DictType():
            return Shape(
                kind="map",
                item=_shape(info.value_type, {}),
                key=_key(info.key_type),
                min_length=info.min_length,
                max_length=info.max_length,
            )
        case types.StructType():
            return shape_of(info.cls)
        case types.AnyType():
            return Shape(kind="any")
        case _:
            raise TypeError(f"no shape for {info!r}")


def _key(info: types.Type) -> Shape | None:
    shape = _shape(info, {})
    free = (shape.pattern, shape.min_length, shape.max_length) == (None, None, None)
    return None if free and not shape.enum else shape


def _choice(info: types.UnionType, extra: dict[str, Any]) -> Shape:
    given = [one for one in info.types if not isinstance(one, types.NoneType)]
    if len(given) == 1:
        return _shape(given[0], extra)
    return Shape(kind="choice", choices=tuple(_shape(one, {}) for one in given))
