"""SortedMap: a dict in order that never changes, and versions of it that share what they have in common."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast.collections.sorted_map import CHUNK, EMPTY, SortedMap, find_unlike, values_of

pytestmark = pytest.mark.pure

numbers = st.integers(0, 400)
entries = st.dictionaries(numbers, st.integers(0, 3), max_size=300)
# A key and its value, or None to take it out.
edits = st.lists(
    st.lists(st.tuples(numbers, st.one_of(st.none(), st.integers(0, 3))), max_size=150), max_size=4
)


@given(entries, edits)
def test_it_is_a_dict_in_order_whatever_was_done(
    first: dict[int, int], steps: list[list[tuple[int, int | None]]]
) -> None:
    versions = [(SortedMap(first), first)]
    for step in steps:
        map_, plain = versions[-1]
        draft, plain = map_.edit(), dict(plain)
        for key, value in step:
            if value is None:
                assert draft.pop(key, -1) == plain.pop(key, -1)
            else:
                draft[key] = plain[key] = value
            assert draft.get(key) == plain.get(key)
            assert (key in draft, len(draft)) == (key in plain, len(plain))
        versions.append((draft.done(), plain))
    for map_, plain in versions:  # the older ones too: none has changed
        order = sorted(plain)
        assert list(map_) == order
        assert list(reversed(map_)) == order[::-1]
        assert list(map_.items()) == [(key, plain[key]) for key in order]
        assert list(map_.values()) == list(values_of(map_)) == [plain[key] for key in order]
        assert len(map_) == len(plain)
        assert map_ == plain
        for key in range(401):
            assert map_.get(key, "none") == plain.get(key, "none")
            assert (key in map_) == (key in plain)
        for key in (-1, 0, 150, 400, 500):
            assert list(map_.starting_at(key)) == [one for one in order if one >= key]
        sizes = [len(chunk) for chunk in map_._chunks]
        assert max(sizes) <= CHUNK
        assert len(plain) == 0 or min(sizes) > 0
        assert map_._firsts == [next(iter(chunk)) for chunk in map_._chunks[1:]]


@given(entries, edits)
def test_what_differs_is_found_and_nothing_else(
    first: dict[int, int], steps: list[list[tuple[int, int | None]]]
) -> None:
    boxes = [object() for _ in range(4)]
    old = SortedMap({key: boxes[value] for key, value in first.items()})
    draft = old.edit()
    for key, value in (one for step in steps for one in step):
        if value is None:
            draft.pop(key, None)
        else:
            draft[key] = boxes[value]
    new = draft.done()
    before, after = find_unlike(old, new)
    assert before == {key: one for key, one in old.items() if new.get(key) is not one}
    assert after == {key: one for key, one in new.items() if old.get(key) is not one}
    assert list(before) == sorted(before)
    assert list(after) == sorted(after)
    assert (before, after) == find_unlike(dict(old), dict(new)) == find_unlike(dict(old), new)


@given(entries, edits)
def test_versions_that_follow_each_other_are_compared_by_what_was_touched(
    first: dict[int, int], steps: list[list[tuple[int, int | None]]]
) -> None:
    boxes = [object() for _ in range(4)]
    draft = SortedMap({key: boxes[value] for key, value in first.items()}).edit()
    versions = [draft.done()]
    for step in steps:  # one draft for all of them: it goes on from what it has made
        for key, value in step:
            if value is None:
                draft.pop(key, None)
            else:
                draft[key] = boxes[value]
        versions.append(draft.done())
    for old in versions:
        for new in versions:  # neighbours, those further apart, and the wrong way round
            assert find_unlike(old, new) == find_unlike(dict(old), dict(new))


def test_comparing_neighbours_looks_at_what_was_touched_alone() -> None:
    class Key(int):
        looked = 0

        def __hash__(self) -> int:
            Key.looked += 1
            return int(self)

    old = SortedMap({Key(number): object() for number in range(10_000)})
    draft = old.edit()
    draft[Key(5_000)] = object()
    new = draft.done()
    Key.looked = 0
    gone, come = find_unlike(old, new)
    assert (list(gone), list(come)) == ([5_000], [5_000])
    assert Key.looked < CHUNK / 4


def test_a_change_among_ten_thousand_touches_one_chunk() -> None:
    old = SortedMap({number: object() for number in range(10_000)})
    for key in (0, 5_000, 9_999, 10_000, -1):
        draft = old.edit()
        draft[key] = object()
        new = draft.done()
        kept = {id(chunk) for chunk in old._chunks} & {id(chunk) for chunk in new._chunks}
        # Where the last one is small it joins the one before.
        assert len(old._chunks) - len(kept) == (2 if key in (9_999, 10_000) else 1)
        assert max(len(new._chunks), len(old._chunks)) < 10_000 / 16


def test_many_removals_leave_few_chunks() -> None:
    map_ = SortedMap({number: number for number in range(10_000)})
    for start in range(10):
        draft = map_.edit()
        for key in range(start, 10_000, 10):
            if key % 1000:
                del draft[key]
        map_ = draft.done()
    assert list(map_) == list(range(0, 10_000, 1000))
    assert len(map_._chunks) <= 2


def test_what_changes_nothing_is_the_same_map() -> None:
    one = object()
    map_ = SortedMap({"a": one})
    draft = map_.edit()
    draft["a"] = one
    assert draft.pop("b", None) is None
    assert draft.done() is map_
    assert EMPTY.edit().done() is EMPTY


def test_a_draft_goes_on_after_it_was_done() -> None:
    draft = SortedMap({1: "a"}).edit()
    draft[2] = "b"
    first = draft.done()
    draft[3] = "c"
    second = draft.done()
    assert (dict(first), dict(second)) == ({1: "a", 2: "b"}, {1: "a", 2: "b", 3: "c"})


def test_what_is_not_there() -> None:
    map_ = SortedMap({1: "a"})
    with pytest.raises(KeyError):
        map_[2]
    with pytest.raises(KeyError):
        EMPTY["x"]
    draft = map_.edit()
    with pytest.raises(KeyError):
        del draft[2]
    with pytest.raises(KeyError):
        draft[2]


def test_values_are_a_sequence() -> None:
    values = values_of(SortedMap({number: str(number) for number in range(500)}))
    assert (values[0], values[499], values[-1]) == ("0", "499", "499")
    assert values[2:4] == ("2", "3")
    assert values == tuple(map(str, range(500)))
    assert values != ("0",)
    assert list(reversed(values)) == list(values)[::-1]
    assert list(islice(values, 2)) == ["0", "1"]
    with pytest.raises(IndexError):
        values[500]
