"""Table difference: nothing that differs is left out, and of a copy with few changes few entries are left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast.resources.tablediff import find_unlike

pytestmark = pytest.mark.pure

tables = st.dictionaries(st.integers(0, 12), st.sampled_from("abc"))


@given(tables, tables)
def test_what_differs_is_in_it(old: dict[int, str], new: dict[int, str]) -> None:
    before, after = find_unlike(old, new)
    assert before.items() <= old.items()
    assert after.items() <= new.items()
    same = {key for key in old.keys() & new.keys() if old[key] is new[key]}
    assert before.keys() >= old.keys() - same
    assert after.keys() >= new.keys() - same
    # What is left out of the one is left out of the other.
    assert old.keys() - before.keys() == new.keys() - after.keys()


def test_a_copy_with_one_change() -> None:
    old = {number: object() for number in range(1000)}
    for key in (0, 500, 999):
        value = object()
        assert find_unlike(old, old | {key: value}) == ({key: old[key]}, {key: value})
        less = {other: one for other, one in old.items() if other != key}
        assert find_unlike(old, less) == ({key: old[key]}, {})
    more = object()
    assert find_unlike(old, old | {1000: more}) == ({}, {1000: more})
    assert find_unlike(old, old) == ({}, {})
    assert find_unlike({}, old) == ({}, old)
