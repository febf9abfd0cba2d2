"""Bounds that a change of complexity would break: calls of functions are counted, because times depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from edgefast.translate import Settings, translate
from tests.translate import world

pytestmark = pytest.mark.pure

#: Calls, of Python and of C functions, that the translation of one route may take; 2026-11: about 404.
PER_ROUTE = 450


def count_calls(work: Callable[[], object]) -> int:
    """How many functions `work` calls, directly and not."""
    count = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_work_grows_with_the_routes_and_not_faster() -> None:
    small, large = world.many(250), world.many(1000)
    few = count_calls(lambda: translate(small, Settings()))
    many = count_calls(lambda: translate(large, Settings()))
    assert many < 1000 * PER_ROUTE
    assert many < 4.4 * few


def test_one_route_more_is_a_fraction_of_a_thousand() -> None:
    snapshot = world.many(1000)
    changed = snapshot.replace([world.route(5, path="/new")])
    translation = translate(snapshot, Settings())
    whole = count_calls(lambda: translate(snapshot, Settings()))
    again = count_calls(lambda: translate(changed, Settings(), translation))
    assert again < whole / 10
    assert translate(changed, Settings(), translation).work.routes == 1


def test_one_route_more_costs_the_same_among_few_and_among_many() -> None:
    def calls(there: int) -> int:
        snapshot = world.many(there)
        before = translate(snapshot, Settings())
        changed = snapshot.replace([world.route(there + 1)])
        return count_calls(lambda: translate(changed, Settings(), before))

    few, many = calls(50), calls(1000)
    assert many < 1.3 * few
