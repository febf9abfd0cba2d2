"""Closed scopes: of a GatewayClass or Namespace with a mistake, what others must know so that nothing opens because of it.

In: the plain value of a document, and what is wrong with it. Out: a GatewayClass that is not accepted, so that Gateways of it hold
their places; a Namespace that no selector chooses, for the labels that cannot be read may be the ones that keep it out.
Must never: raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from edgefast.problem import ObjectRef
from edgefast.resources.decode.nearly import build, field_of, read_meta
from edgefast.resources.gatewayapi.gatewayclass import GatewayClass, GatewayClassSpec
from edgefast.resources.kubernetes.namespace import Namespace
from edgefast.resources.loaded import Path, render_path
from edgefast.resources.model.closed import Closed
from edgefast.resources.rules.rule import Violation

__all__ = ["close_gateway_class", "close_namespace"]


def close_gateway_class(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, _: Collection[Path] = ()
) -> GatewayClass:
    """Return the closed GatewayClass of an object; `controller_name` is "" where it cannot be read."""
    spec = raw.get("spec")
    name = field_of(spec if isinstance(spec, dict) else {}, "controllerName", GatewayClassSpec)
    sound = build(GatewayClassSpec, {"controllerName": name})
    meta = msgspec.structs.replace(read_meta(raw.get("metadata"), ref), namespace="")
    made = sound or GatewayClassSpec(controller_name="")
    return GatewayClass(metadata=meta, spec=made, closed=_closed(first))


def close_namespace(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, _: Collection[Path] = ()
) -> Namespace:
    """Return the closed Namespace of an object; it has no labels."""
    meta = msgspec.structs.replace(read_meta(raw.get("metadata"), ref), namespace="")
    return Namespace(metadata=meta, closed=_closed(first))


def _closed(first: Violation) -> Closed:
    return Closed(render_path(first.path), f"{first.reason} {first.message}")
