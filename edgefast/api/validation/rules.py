"""Rules: all rules by their Struct, and a quick "is any broken" for whole objects.

In: built objects. Out: `rules_of(struct)` for the walker and the schemas. `obeys(obj)` is for the
fast path and also checks lists that are maps or sets.
Must never: report; the walker does, with paths and lines, when `obeys` returns no.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from edgefast.api.model.fields import Element
from edgefast.api.model.shape import FieldShape, Shape, shape_of
from edgefast.api.validation import (
    backend,
    config,
    core,
    edge,
    filter,
    gateway,
    grpcroute,
    health_check,
    hostname,
    httproute,
    ingress,
    jwt,
    load_balancer,
    oidc,
    policy,
    policy_target,
    reference,
    response_rewrite,
    route_filter,
    session_persistence,
    traffic,
    xbackend,
    zone_aware,
)
from edgefast.api.validation.rule import Rule

_BOOKS = (
    reference.BOOK,
    httproute.BOOK,
    grpcroute.BOOK,
    filter.BOOK,
    gateway.BOOK,
    hostname.BOOK,
    core.BOOK,
    edge.BOOK,
    policy.BOOK,
    policy_target.BOOK,
    jwt.BOOK,
    oidc.BOOK,
    route_filter.BOOK,
    response_rewrite.BOOK,
    traffic.BOOK,
    backend.BOOK,
    health_check.BOOK,
    load_balancer.BOOK,
    session_persistence.BOOK,
    xbackend.BOOK,
    zone_aware.BOOK,
    ingress.BOOK,
    config.BOOK,
)

_Obeys = Callable[[Any], bool]


@functools.cache
def rules_of(struct: type[Element]) -> tuple[Rule, ...]:
    """Return the rules about a Struct, in the order they are written."""
    return tuple(rule for book in _BOOKS for rule in book.rules if rule.struct is struct)


def obeys(obj: Element) -> bool:
    """Tell whether an object breaks no rule anywhere in it."""
    check = _checker(type(obj))
    return check is None or check(obj)


@functools.cache
def _checker(struct: type[Element]) -> _Obeys | None:
    """Return a function that visits only the parts that have rules, None when none has."""
    checks = [rule.check for rule in rules_of(struct) if not rule.late]
    visits = [step for one in shape_of(struct).fields if (step := _visit(one)) is not None]
    if not checks and not visits:
        return None

    def check_struct(obj: Any) -> bool:
        for attr, default, visit in visits:
            value = getattr(obj, attr)
            if value is not default and value is not None and not visit(value):
                return False
        for check in checks:
            for _ in check(obj):
                return False
        return True

    return check_struct


def _visit(field: FieldShape) -> tuple[str, Any, _Obeys] | None:
    visit = _visit_value(field.shape)
    return None if visit is None else (field.attr, field.default, visit)


def _visit_value(shape: Shape) -> _Obeys | None:
    if shape.kind == "struct":
        assert shape.struct is not None
        return _checker(shape.struct)
    if shape.kind not in ("list", "map") or shape.item is None:
        return None
    inner = _visit_value(shape.item)
    if shape.kind == "map":
        return None if inner is None else _every(inner, values=True)
    keyed = shape.list_set or bool(shape.list_map_keys)
    if not keyed:
        return None if inner is None else _every(inner)
    return _unique(shape, inner)


def _every(inner: _Obeys, *, values: bool = False) -> _Obeys:
    def check_each(items: Any) -> bool:
        for item in items.values() if values else items:
            if not inner(item):
                return False
        return True

    return check_each


def _unique(shape: Shape, inner: _Obeys | None) -> _Obeys:
    attrs = _key_attrs(shape)

    def check_unique(items: Any) -> bool:
        if len(items) > 1:
            if attrs:
                keys = {tuple(getattr(item, attr) for attr in attrs) for item in items}
            else:
                keys = set(items)
            if len(keys) != len(items):
                return False
        return inner is None or all(inner(item) for item in items)

    return check_unique


def _key_attrs(shape: Shape) -> tuple[str, ...]:
    assert shape.item is not None
    names = [shape.item.field(name) for name in shape.list_map_keys]
    return tuple(one.attr for one in names if one is not None)
