"""ClientShare: what clients hold, whose turn is next, and which client loses some of it first."""

from __future__ import annotations

import random

import pytest

from edgefast.core.fastpath import ClientShare

pytestmark = pytest.mark.pure


def test_clients_have_turns() -> None:
    share: ClientShare[str] = ClientShare()
    for member in ("a1", "a2", "a3", "b1", "c1", "c2"):
        share.add(member[:1].encode(), member)
    assert [share.take() for _ in range(3)] == ["a1", "b1", "c1"]
    share.add(b"b", "b2")
    assert [share.take() for _ in range(4)] == ["a2", "c2", "b2", "a3"]
    assert len(share) == share.count == 0


def test_a_unit_moves_from_a_client_with_two_more() -> None:
    share: ClientShare[str] = ClientShare()
    share.add(b"a", "a1")
    assert share.evict(b"b") is None
    share.add(b"a", "a2")
    assert share.evict(b"a") is None
    assert share.evict(b"b") == "a2"
    share.add(b"b", "b1")
    assert share.evict(b"a") is share.evict(b"b") is None


def test_the_client_that_has_most_for_longest_loses_first() -> None:
    share: ClientShare[str] = ClientShare()
    for member in ("a1", "b1", "b2", "a2", "c1"):
        share.add(member[:1].encode(), member)
    assert share.evict(b"new") == "b2"
    assert share.evict(b"new") == "a2"
    assert share.evict(b"new") is None


def test_units_count_and_not_members() -> None:
    share: ClientShare[str] = ClientShare()
    for number in range(5):
        share.add(b"many", f"small{number}")
    share.add(b"few", "large", 9)
    assert share.count == 14
    assert share.evict(b"new", 9) is None
    assert share.evict(b"new", 8) == "large"
    assert share.evict(b"new", 8) is None
    assert share.evict(b"new", 4) == "small4"
    assert share.remove("small0") == 1
    assert share.remove("small0") == 0


def test_unidentified_members_are_never_of_the_client_with_most() -> None:
    share: ClientShare[str] = ClientShare()
    for number in range(9):
        share.add(None, f"unknown{number}")
    share.add(b"a", "a1")
    assert share.evict(b"b") is None
    share.add(b"a", "a2")
    assert share.evict(None) == "a2"
    assert share.take_last(None) == "unknown8"
    assert share.take_last(b"c") is None


@pytest.mark.parametrize("seed", range(20))
def test_as_a_search_of_all_clients(seed: int) -> None:
    """The client with most, its members and all counts are those of a plain table."""
    draw = random.Random(seed)
    share: ClientShare[int] = ClientShare()
    held: dict[bytes, dict[int, int]] = {}
    for number in range(2000):
        client = b"%d" % draw.randrange(12)
        members = held.setdefault(client, {})
        act = draw.random()
        if act < 0.5:
            units = draw.randrange(1, 6)
            share.add(client, number, units)
            members[number] = units
        elif act < 0.7 and members:
            member = draw.choice(list(members))
            assert share.remove(member) == members.pop(member)
        elif act < 0.8 and members:
            last = list(members)[-1]
            assert share.take_last(client) == last
            del members[last]
        else:
            units = draw.randrange(1, 6)
            most = max(sum(one.values()) for one in held.values())
            evicted = share.evict(client, units)
            assert (evicted is None) == (most <= sum(members.values()) + units)
            if evicted is not None:
                owner = next(one for one in held.values() if evicted in one)
                assert sum(owner.values()) == most
                assert list(owner)[-1] == evicted
                del owner[evicted]
        assert share.count == sum(sum(one.values()) for one in held.values())
        assert len(share) == sum(map(len, held.values()))
