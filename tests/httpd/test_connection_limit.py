"""Places: whom a newcomer takes the place of, and how many there are."""

from __future__ import annotations

import resource

import pytest

from edgefast.httpd.connection_limit import ConnectionLimit, count_connections

pytestmark = pytest.mark.pure


def test_who_has_waited_the_longest_goes_for_a_newcomer() -> None:
    places: ConnectionLimit[str] = ConnectionLimit(3)
    assert [places.enter(one) for one in "abc"] == [None, None, None]
    assert places.enter("d") == "a"
    places.wait("b")  # it got an answer
    assert places.enter("e") == "c"
    assert places.enter("f") == "d"
    assert places.enter("g") == "b"
    assert len(places) == 3


def test_who_is_at_work_stays() -> None:
    places: ConnectionLimit[str] = ConnectionLimit(3)
    for one in "abc":
        places.enter(one)
    places.work("a")
    assert places.enter("d") == "b"
    places.wait("a")
    assert [places.enter(one) for one in "efg"] == ["c", "d", "a"]


def test_whoever_lost_its_place_or_left_is_nobody() -> None:
    places: ConnectionLimit[str] = ConnectionLimit(2)
    for one in "abc":
        places.enter(one)
    places.work("a")
    places.wait("a")
    places.leave("a")
    assert len(places) == 2
    places.leave("b")
    assert places.enter("d") is None
    assert [places.give_up() for _ in range(3)] == ["c", "d", None]


@pytest.mark.parametrize(
    ("descriptors", "at_work", "places"),
    [(1 << 20, 18, 2560), (20_000, 18, 2500), (1024, 18, 128), (256, 18, 32), (64, 18, 22)],
)
def test_most_descriptors_are_for_other_work(
    monkeypatch: pytest.MonkeyPatch, descriptors: int, at_work: int, places: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, 1 << 20))
    assert count_connections(at_work) == places


def test_no_limit_on_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert count_connections(18) == 2560
