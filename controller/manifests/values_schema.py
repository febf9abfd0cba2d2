"""values.schema.json: the validation schema for helm, made from the models.

In: the shape of the values.
Out: a JSON schema (draft 7). It is strict: an unknown value is an error, as for `edgefast install`.
Only `global` is allowed, because helm passes it to every chart. A value with a default is required,
because only a null removes it.
Must never: be looser than the models, except for conditions over several fields (the templates
check those).
"""

from __future__ import annotations

from typing import Any

from controller.manifests.values import ChartValues
from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.edge.edgeproxy_fleet import ContainerResources
from edgefast.api.model.shape import FieldShape, Shape, shape_of

DRAFT = "http://json-schema.org/draft-07/schema#"


def render_schema() -> dict[str, Any]:
    """Return the schema of all values."""
    schema = _struct(shape_of(ChartValues), defaulted=True)
    schema["properties"]["global"] = {"type": "object", "description": "helm's; not read."}
    return {"$schema": DRAFT, "title": "gateway-chart", **schema}


def _struct(shape: Shape, *, defaulted: bool) -> dict[str, Any]:
    required = [one.name for one in shape.fields if one.required or (defaulted and _kept(one))]
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {one.name: _property(one, defaulted) for one in shape.fields},
    }
    return {**schema, "required": sorted(required)} if required else schema


def _kept(field: FieldShape) -> bool:
    return field.default is not None


def _property(field: FieldShape, defaulted: bool) -> dict[str, Any]:
    free = (EdgeGateway, ContainerResources)
    schema = _schema(field.shape, defaulted and field.shape.struct not in free)
    return {"description": field.description, **schema} if field.description else schema


def _schema(shape: Shape, defaulted: bool = False) -> dict[str, Any]:
    match shape.kind:
        case "struct":
            return _struct(shape, defaulted=defaulted)
        case "list":
            assert shape.item is not None
            schema: dict[str, Any] = {"type": "array", "items": _schema(shape.item)}
            if shape.list_set:
                schema["uniqueItems"] = True
            return schema | _bounds(shape, "minItems", "maxItems")
        case "map":
            assert shape.item is not None
            schema = {"type": "object"}
            if shape.item.kind != "any":
                schema["additionalProperties"] = _schema(shape.item)
            if shape.key is not None:
                schema["propertyNames"] = _schema(shape.key)
            return schema | _bounds(shape, "minProperties", "maxProperties")
        case "choice":
            return {"anyOf": [_schema(one) for one in shape.choices]}
        case "any":
            return {}
        case "bytes":
            return {"type": "string", "contentEncoding": "base64"}
        case _:
            return _scalar(shape)


def _bounds(shape: Shape, least: str, most: str) -> dict[str, Any]:
    given = {least: shape.min_length, most: shape.max_length}
    return {name: value for name, value in given.items() if value is not None}


def _scalar(shape: Shape) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": shape.kind}
    if shape.enum:
        schema["enum"] = list(shape.enum)
    if shape.pattern is not None:
        schema["pattern"] = shape.pattern.replace(r"\Z", "$").replace(r"\/", "/")
    limits = {"minimum": shape.minimum, "maximum": shape.maximum}
    schema |= {name: value for name, value in limits.items() if value is not None}
    return schema | _bounds(shape, "minLength", "maxLength")
