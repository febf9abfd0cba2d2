"""Progress: in force is what every proxy that counts has, and who is late is named and not waited for."""

from __future__ import annotations

from typing import Any

import pytest

from controller.status.progress import PATIENCE, Progress, Reach

pytestmark = pytest.mark.pure


# Steps: a table that is published, or (ready proxies, served tables by proxy).
@pytest.mark.parametrize(
    ("steps", "reached"),
    [
        pytest.param(["a"], 0, id="proxies are not known"),
        pytest.param(["a", ("", {})], 1, id="no proxies"),
        pytest.param(["a", ("xy", {"x": "a"})], 0, id="a ready proxy lacks it"),
        pytest.param(["a", ("xy", {"x": "a", "y": "a"})], 1, id="every ready proxy has it"),
        pytest.param(["a", ("x", {"x": "a"}), "a"], 2, id="no table changes"),
        pytest.param(["a", ("", {"x": "a"}), "b"], 1, id="a connected proxy counts at once"),
        pytest.param([("x", {"x": "a"}), *"aba"], 3, id="a table comes back"),
        pytest.param([("x", {"x": "a"}), *"abcde", ("x", {"x": "d"})], 4, id="coalesced batches"),
    ],
)
def test_what_every_proxy_that_counts_has_is_in_force(steps: list[Any], reached: int) -> None:
    one, revision = Progress(), 0
    for step in steps:
        if isinstance(step, str):
            revision += 1
            one.publish(revision, step, 0.0)
        else:
            one.see_proxies(*step)
    assert one.reached(100.0 if len(steps) == 1 else 0.0) == reached


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
