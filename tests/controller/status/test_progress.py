"""Progress: in force is what every proxy that counts has, and who is late is named and not waited for."""

from __future__ import annotations

import pytest

from controller.status.progress import PATIENCE, Progress, Reach

pytestmark = pytest.mark.pure


def test_nothing_is_in_force_before_the_proxies_are_known() -> None:
    one = Progress()
    one.publish(1, "a", 0.0)
    assert one.reached(100.0) == 0


def test_a_fleet_without_proxies_holds_nothing_up() -> None:
    one = Progress()
    one.publish(1, "a", 0.0)
    one.see_proxies((), {})
    assert one.reached(0.0) == 1


def test_every_ready_proxy_must_have_it() -> None:
    one = Progress()
    one.publish(1, "a", 0.0)
    one.see_proxies(("x", "y"), {"x": "a"})
    assert one.reached(0.0) == 0
    one.see_proxies(("x", "y"), {"x": "a", "y": "a"})
    assert one.reached(0.0) == 1


def test_a_revision_that_changes_no_table_is_in_force_at_once() -> None:
    one = Progress()
    one.publish(1, "a", 0.0)
    one.see_proxies(("x",), {"x": "a"})
    one.publish(2, "a", 1.0)
    assert one.reached(1.0) == 2


def test_a_connected_proxy_counts_before_it_is_seen_to_be_ready() -> None:
    one = Progress()
    one.publish(1, "a", 0.0)
    one.see_proxies((), {"x": "a"})
    one.publish(2, "b", 0.0)
    assert one.reached(0.0) == 1


def test_tables_that_come_back_are_of_their_latest_revision() -> None:
    one = Progress()
    one.see_proxies(("x",), {"x": "a"})
    for revision, version in enumerate(("a", "b", "a"), 1):
        one.publish(revision, version, 0.0)
    assert one.reached(0.0) == 3


def test_coalesced_batches_count_for_all_revisions_between() -> None:
    one = Progress()
    one.see_proxies(("x",), {"x": "a"})
    for revision, version in enumerate("abcde", 1):
        one.publish(revision, version, 0.0)
    one.see_proxies(("x",), {"x": "d"})
    assert one.reached(0.0) == 4


def test_a_straggler_is_named_and_no_longer_waited_for() -> None:
    one = Progress()
    one.publish(1, "a", 0.0)
    one.see_proxies(("x", "y"), {"x": "a", "y": "a"})
    one.publish(2, "b", 100.0)
    one.see_proxies(("x", "y"), {"x": "b", "y": "a"})
    assert (one.reached(100.0), one.reach(100.0)) == (1, Reach(2))
    assert one.next_look(100.0) == pytest.approx(PATIENCE)
    late = 100.0 + PATIENCE
    assert (one.reached(late), one.reach(late)) == (2, Reach(2, ("y",)))
    one.see_proxies(("x", "y"), one._served, {"x": "not behind", "y": "too large", "z": "gone"})
    assert one.reach(late) == Reach(2, ("y",), {"y": "too large"})
    # The next revision does not wait for it again, but for the other one.
    one.publish(3, "c", late)
    assert one.reached(late) == 2
    one.see_proxies(("x", "y"), {"x": "c", "y": "a"})
    assert one.reached(late) == 3
    assert one.next_look(late) == 0.0
    one.see_proxies(("x", "y"), {"x": "c", "y": "c"})
    assert one.reach(late) == Reach(2)


def test_what_no_proxy_has_is_never_in_force() -> None:
    one = Progress()
    one.publish(1, "a", 0.0)
    one.see_proxies(("x", "y"), {"x": "", "y": ""})
    assert one.reached(1e6) == 0
    assert one.reach(1e6).behind == ("x", "y")


def test_a_proxy_that_lags_a_little_all_the_time_is_no_straggler() -> None:
    one = Progress()
    one.publish(1, "v1", 0.0)
    for revision in range(2, 3000):
        now = revision * 0.1
        one.publish(revision, f"v{revision}", now)
        one.see_proxies(("x",), {"x": f"v{revision - 5}"})
        if revision > 10:
            assert one.reached(now) == revision - 5
            assert one.reach(now) == Reach(1)
    assert len(one._steps) < 20


def test_memory_is_bounded_by_a_proxy_that_never_follows() -> None:
    one = Progress()
    one.see_proxies(("x",), {"x": "v0"})
    for revision in range(1, 5000):
        one.publish(revision, f"v{revision}", 0.0)
    assert len(one._steps) <= 1000
