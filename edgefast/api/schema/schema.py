"""Schema: OpenAPI v3 structural schemas of edgefast's kinds, made from the models.

In: a kind. Out: the `openAPIV3Schema` of its CRD: types, limits, defaults, descriptions and CEL
rules, exactly as the decoder applies them.
Must never: be edited beside the models; this module has only the mapping.
"""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.edge.backend import Backend
from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.edge.edgeproxy_defaults import DEFAULT_SPEC
from edgefast.api.edge.httproutefilter import HTTPRouteFilter
from edgefast.api.edge.ratelimitfilter import RateLimitFilter
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.model.fields import Element
from edgefast.api.model.shape import FieldShape, Shape, shape_of
from edgefast.api.model.unsupported_fields import UNSERVED, Closes
from edgefast.api.validation.rules import rules_of

#: The kinds that have a schema, in the order of the reference docs.
OWN_KINDS: dict[str, type[Element]] = {
    "EdgeProxy": EdgeProxy,
    "RateLimitFilter": RateLimitFilter,
    "Backend": Backend,
    "SecurityPolicy": SecurityPolicy,
    "BackendTrafficPolicy": BackendTrafficPolicy,
    "HTTPRouteFilter": HTTPRouteFilter,
    "EdgeGateway": EdgeGateway,
}

_TYPES = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean"}


def json_schema(kind: str) -> dict[str, Any]:
    """Return the structural schema of one of OWN_KINDS; KeyError for another kind.

    Source of the form: Kubernetes "structural schema" rules of CustomResourceDefinition v1.
    """
    struct = OWN_KINDS[kind]
    defaults = {"spec": DEFAULT_SPEC} if struct is EdgeProxy else {}
    schema = _struct_schema(shape_of(struct), defaults)
    for path, closes in UNSERVED.get(kind, {}).items():
        _keep_unserved(schema, path.replace("[]", ".[]").split("."), closes)
    if "metadata" in schema["properties"]:
        spec = schema["properties"]["spec"]
        schema["properties"] = {
            "apiVersion": {"type": "string", "description": "Version of this kind."},
            "kind": {"type": "string", "description": f"Always {kind}."},
            "metadata": {"type": "object"},
            "spec": spec,
        }
        required = [name for name in schema.get("required", ()) if name != "metadata"]
        schema.pop("required", None)
        if required:
            schema["required"] = required
    return schema


def _keep_unserved(schema: dict[str, Any], path: list[str], closes: Closes) -> None:
    """Let an API server keep a field that is known and not served; the controller says what stands closed because of it."""
    for part in path[:-1]:
        schema = schema["items"] if part == "[]" else schema["properties"][part]
    fate = "it is ignored" if closes == "nothing" else "objects with this field deny all requests"
    schema.setdefault("properties", {})[path[-1]] = {
        "x-kubernetes-preserve-unknown-fields": True,
        "description": f"Not supported: {fate}.",
    }


def describe(struct: type[Element]) -> str:
    """Return what a Struct is, from its docstring."""
    return " ".join((inspect.getdoc(struct) or "").split())


def plain_default(field: FieldShape) -> Any:
    """Return a field's default as it is written in a document, None when absence says it all."""
    default = None if field.required else msgspec.to_builtins(field.default)
    if isinstance(default, tuple):
        default = list(default)
    return default if default is not None and default not in ((), [], {}) else None


def _struct_schema(shape: Shape, documented: Any) -> dict[str, Any]:
    assert shape.struct is not None
    properties = {}
    for field in shape.fields:
        below = _documented(documented, field)
        schema = _schema(field.shape, below)
        text = field.description or schema.get("description", "")
        if below is not None and not isinstance(below, Element):
            text = f"{text} Default: {_words(below)}.".lstrip()
        if text:
            schema["description"] = text
        default = plain_default(field)
        if default is not None:
            schema["default"] = default
        properties[field.name] = schema
    result: dict[str, Any] = {
        "type": "object",
        "description": describe(shape.struct),
    }
    if properties:  # API servers drop an empty one: what they keep would not be what was applied
        result["properties"] = properties
    required = [field.name for field in shape.fields if field.required]
    if required:
        result["required"] = required
    rules = [
        {"rule": rule.cel, "message": rule.message} for rule in rules_of(shape.struct) if rule.cel
    ]
    if rules:
        result["x-kubernetes-validations"] = rules
    return result


def _documented(documented: Any, field: FieldShape) -> Any:
    """The default that is applied later (EdgeProxy), as opposed to one of the CRD."""
    if isinstance(documented, dict):
        return documented.get(field.name)
    return getattr(documented, field.attr, None) if documented is not None else None


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value == () else str(value)


def _schema(shape: Shape, documented: Any = None) -> dict[str, Any]:
    match shape.kind:
        case "struct":
            return _struct_schema(shape, documented)
        case "list":
            return _list_schema(shape)
        case "map":
            return _map_schema(shape)
        case "choice":
            return _choice_schema(shape)
        case "bytes":
            return {"type": "string", "format": "byte"}
        case "any":
            return {"x-kubernetes-preserve-unknown-fields": True}
        case _:
            return _scalar_schema(shape)


def _scalar_schema(shape: Shape) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": _TYPES[shape.kind]}
    if shape.kind == "integer" and not shape.enum:
        wide = shape.maximum is not None and shape.maximum > 2**31 - 1
        schema["format"] = "int64" if wide else "int32"
    if shape.enum:
        schema["enum"] = list(shape.enum)
    limits = (
        ("minLength", shape.min_length),
        ("maxLength", shape.max_length),
        ("minimum", shape.minimum),
        ("maximum", shape.maximum),
    )
    schema |= {name: value for name, value in limits if value is not None}
    if shape.pattern is not None:
        schema["pattern"] = shape.pattern.replace(r"\Z", "$")
    return schema


def _list_schema(shape: Shape) -> dict[str, Any]:
    assert shape.item is not None
    schema: dict[str, Any] = {"type": "array", "items": _schema(shape.item)}
    if shape.min_length is not None:
        schema["minItems"] = shape.min_length
    if shape.max_length is not None:
        schema["maxItems"] = shape.max_length
    if shape.list_map_keys:
        schema["x-kubernetes-list-type"] = "map"
        schema["x-kubernetes-list-map-keys"] = list(shape.list_map_keys)
    else:
        schema["x-kubernetes-list-type"] = "set" if shape.list_set else "atomic"
    return schema


def _map_schema(shape: Shape) -> dict[str, Any]:
    assert shape.item is not None
    if shape.item.kind == "any":
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema: dict[str, Any] = {"type": "object", "additionalProperties": _schema(shape.item)}
    if shape.max_length is not None:
        schema["maxProperties"] = shape.max_length
    return schema


def _choice_schema(shape: Shape) -> dict[str, Any]:
    kinds = {one.kind for one in shape.choices}
    if kinds == {"integer", "number"}:
        return _scalar_schema(next(one for one in shape.choices if one.kind == "number"))
    assert kinds == {"integer", "string"}
    text = next(one for one in shape.choices if one.kind == "string")
    number = next(one for one in shape.choices if one.kind == "integer")
    schema: dict[str, Any] = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }
    if text.pattern is not None:
        schema["pattern"] = text.pattern.replace(r"\Z", "$")
    if number.minimum is not None:
        schema["minimum"] = number.minimum
    return schema
