"""The breaker with the time in our hands: after three failures nobody asks, five attempts a second, the first success closes."""

from __future__ import annotations

import pytest

from edgefast.rate_limit.breaker import Breaker

pytestmark = pytest.mark.pure


def test_it_opens_at_the_third_failure_in_a_row() -> None:
    breaker = Breaker()
    assert not breaker.open
    assert [breaker.on_failure(), breaker.on_failure()] == [False, False]
    assert not breaker.on_success()
    assert [breaker.on_failure(), breaker.on_failure()] == [False, False]
    assert not breaker.open
    assert breaker.on_failure() and breaker.open
    assert not breaker.on_failure(), "it opens once"


def test_the_first_success_closes_it() -> None:
    breaker = Breaker()
    for _ in range(10):
        breaker.on_failure()
    assert breaker.on_success()
    assert not breaker.open and breaker.failures == 0


def test_the_first_attempt_is_made_at_once() -> None:
    assert Breaker().wait(0.0) == 0.0


def test_a_connection_that_lived_is_replaced_at_once() -> None:
    breaker = Breaker()
    breaker.on_attempt(10.0)
    breaker.on_success()
    assert breaker.wait(11.0) == 0.0


def test_connections_that_die_at_once_are_not_made_in_a_tight_loop() -> None:
    breaker = Breaker()
    breaker.on_attempt(10.0)
    breaker.on_success()
    assert breaker.wait(10.01) == pytest.approx(0.04)


def test_a_second_without_the_store_costs_five_attempts() -> None:
    breaker, now, attempts = Breaker(), 100.0, []
    while now < 101.2:
        now += breaker.wait(now)
        breaker.on_attempt(now)
        attempts.append(round(now, 3))
        breaker.on_failure()  # refused at once
    assert attempts[:3] == [100.0, 100.05, 100.1], "three failures open it soon"
    assert attempts[3:] == [100.3, 100.5, 100.7, 100.9, 101.1, 101.3]


def test_a_slow_attempt_delays_the_next_one_by_nothing_more() -> None:
    breaker = Breaker()
    for _ in range(3):
        breaker.on_failure()
    breaker.on_attempt(5.0)
    breaker.on_failure()  # it hung for half a second
    assert breaker.wait(5.5) == 0.0


def test_answers_that_are_late_together_are_one_failure() -> None:
    """A store that stands still for a moment is late for all that is under way; one that goes on being late opens it."""
    breaker = Breaker()
    assert [breaker.on_late(10.0 + at / 1000, 0.02) for at in (0, 1, 5, 19)] == [True] + [False] * 3
    assert breaker.failures == 1
    breaker.on_late(10.025, 0.02)
    assert not breaker.open
    breaker.on_late(10.05, 0.02)
    assert breaker.open
