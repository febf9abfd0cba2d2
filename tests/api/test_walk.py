"""The fast way and the strict walk agree, whatever a document looks like."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast.api.decode.document import _decode_fast
from edgefast.api.decode.walk import Walk
from edgefast.api.kinds import KINDS, KindInfo
from edgefast.api.model.shape import Shape, shape_of

pytestmark = pytest.mark.pure

_WORDS = st.sampled_from(
    ["a", "web", "x-a", "*", "/", "/a//b", "/p", "a.example.com", "*.a.com", "A_b", "", "10s"]
    + ["500ms", "10.0.0.0/8", "10.0.0.1", "::1", "50%", "32KiB", "YQ==", "a" * 300]
)
_NUMBERS = st.sampled_from([-1, 0, 1, 2, 80, 302, 404, 70_000, 2**31, 2**64])
_ODD = st.one_of(_WORDS, _NUMBERS, st.booleans(), st.none(), st.just([]), st.just({}), st.just(1.5))


def _documents(shape: Shape, depth: int = 0) -> st.SearchStrategy[Any]:
    """Documents that are mostly right: each value is of its type, now and then it is not."""
    right = _right(shape, depth)
    return st.one_of(right, right, right, right, right, right, right, right, _ODD)


def _right(shape: Shape, depth: int) -> st.SearchStrategy[Any]:
    if shape.enum:
        return st.sampled_from(list(shape.enum))
    if shape.kind == "struct":
        required = {
            one.name: _documents(one.shape, depth + 1) for one in shape.fields if one.required
        }
        optional = {
            one.name: _documents(one.shape, depth + 1) for one in shape.fields if not one.required
        }
        return st.fixed_dictionaries(required, optional=optional)
    if shape.kind == "list" and shape.item is not None:
        return st.lists(_documents(shape.item, depth + 1), max_size=3)
    if shape.kind == "map" and shape.item is not None:
        return st.dictionaries(_WORDS, _documents(shape.item, depth + 1), max_size=2)
    if shape.kind == "choice":
        return st.one_of([_right(one, depth) for one in shape.choices])
    if shape.kind == "boolean":
        return st.booleans()
    return _NUMBERS if shape.kind in ("integer", "number") else _WORDS


def _has_null(raw: Any) -> bool:
    if isinstance(raw, dict):
        return any(_has_null(one) for one in raw.values())
    return any(_has_null(one) for one in raw) if isinstance(raw, list) else raw is None


@pytest.mark.parametrize("info", KINDS.values(), ids=lambda info: info.kind)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_fast_and_strict_agree(info: KindInfo, data: st.DataObject) -> None:
    raw = data.draw(_right(shape_of(info.struct), 0))
    if not isinstance(raw["metadata"], dict):
        raw["metadata"] = {"name": "a"}
    if not info.namespaced:
        raw["metadata"].pop("namespace", None)
    fast = _decode_fast(copy.deepcopy(raw), info)
    walk = Walk()
    strict = walk.build(info.struct, raw)
    if fast is not None:
        assert walk.violations == []
        assert strict == fast
    elif strict is not None:
        # Only null, and the "off" that YAML reads as false, are for the walk alone.
        assert _has_null(raw) or info.kind == "EdgeProxy"


def test_lenient_walk_never_asks_limits() -> None:
    info = KINDS["gateway.edge.io", "Backend"]
    raw = {"metadata": {"name": "A B"}, "spec": {"endpoints": [], "new": 1}}
    assert Walk(lenient=True).build(info.struct, raw) is not None
    strict = Walk()
    assert strict.build(info.struct, raw) is None
    assert [one.reason for one in strict.violations] == ["Invalid", "NotSupported", "Required"]
