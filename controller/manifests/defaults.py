"""Defaults of the chart's values, and values.yaml, their documentation for users and helm.

In: the models.
Out: plain values, or commented YAML in the order of the models.
Must never: contain a default that the models do not have.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from controller.manifests.values import CONFIG_DEFAULT, ChartValues
from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.model.shape import FieldShape, Shape, shape_of

HEAD = """\
# Values of gateway-chart. Made from controller/manifests/values.py by
# `python -m controller.manifests.generate --write`; values.schema.json refuses what is not here.
"""


def default_values() -> dict[str, Any]:
    """Return the values of a chart that nobody changed."""
    values = _defaults(shape_of(ChartValues), ChartValues())
    values["config"]["edgeGateway"] = copy.deepcopy(CONFIG_DEFAULT)
    return values


def _defaults(shape: Shape, given: Any) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for field in shape.fields:
        value = getattr(given, field.attr)
        if field.shape.struct is EdgeGateway:
            result[field.name] = {}
        elif field.shape.kind == "struct":
            result[field.name] = _defaults(field.shape, value)
        elif value is not None:
            result[field.name] = msgspec.json.decode(msgspec.json.encode(value))
    return result


def render_values() -> str:
    """Return the text of values.yaml."""
    return HEAD + "".join(_lines(shape_of(ChartValues), default_values(), ""))


def _lines(shape: Shape, values: dict[str, Any], indent: str) -> Iterator[str]:
    for field in shape.fields:
        if not indent:
            yield "\n"
        yield f"{indent}# {field.description}\n"
        yield from _field(field, values.get(field.name), indent)


def _field(field: FieldShape, value: Any, indent: str) -> Iterator[str]:
    if value is None:
        yield f"{indent}# {field.name}:\n"
    elif field.shape.kind == "struct" and field.shape.struct is not EdgeGateway:
        yield f"{indent}{field.name}:" + ("\n" if value else " {}\n")
        yield from _lines(field.shape, value, indent + "  ")
    else:
        text = yaml.safe_dump({field.name: value}, sort_keys=False)
        yield "".join(f"{indent}{line}\n" for line in text.splitlines())
