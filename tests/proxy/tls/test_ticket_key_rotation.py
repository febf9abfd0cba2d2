"""When secrets of session tickets begin, end and are forgotten."""

from __future__ import annotations

from itertools import count, pairwise

import pytest

from edgefast._csrc import lib
from edgefast.proxy.tls.ticket_key_rotation import (
    MOST,
    PERIOD,
    TicketSecret,
    find_due,
    plan_given,
    plan_own,
)
from edgefast.xds.ticket_secrets import TicketSecrets

START = 1_000_000

pytestmark = pytest.mark.pure


class Chance:
    """Secrets that tell which one they are."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> bytes:
        return bytes([next(self._numbers)]) * 32


def encrypts(secrets: tuple[TicketSecret, ...], now: int) -> bytes:
    return max(
        (one for one in secrets if one.begins <= now < one.ends), key=lambda o: o.begins
    ).secret


def decrypts(secrets: tuple[TicketSecret, ...], now: int) -> set[bytes]:
    return {one.secret for one in secrets if now < one.forgotten}


def number(*numbers: int) -> set[bytes]:
    return {bytes([one]) * 32 for one in numbers}


def given(previous: int, current: int, coming: int) -> TicketSecrets:
    return TicketSecrets(
        *(bytes([one]) * 32 if one else b"" for one in (previous, current, coming))
    )


def test_they_are_what_csrc_has_room_for() -> None:
    assert (PERIOD, MOST) == (lib.EF_TICKET_LIFETIME * 1000, lib.EF_TICKET_SECRETS)


def test_a_secret_is_there_a_period_before_it_encrypts_and_a_period_after() -> None:
    chance = Chance()
    held = plan_own((), START, chance)
    for period in range(6):
        now = START + period * PERIOD
        held = plan_own(held, now, chance)
        assert encrypts(held, now) == bytes([period + 1]) * 32
        previous = {period} if period else set()
        assert decrypts(held, now) == number(*previous, period + 1, period + 2)
        assert plan_own(held, now, chance) == held
        assert find_due(held, now) == now + PERIOD


@pytest.mark.parametrize("late", [1, PERIOD // 2, PERIOD - 1])
def test_a_late_agent_changes_nothing_of_what_encrypts(late: int) -> None:
    """Workers choose by time: they went on to the next one already."""
    held = plan_own((), START, Chance())
    now = START + PERIOD + late
    before = encrypts(held, now)
    after = plan_own(held, now, Chance())
    assert encrypts(after, now) == before
    assert encrypts(after, START + 2 * PERIOD) != before


def test_after_a_long_sleep_there_is_a_new_one() -> None:
    chance = Chance()
    held = plan_own((), START, chance)
    now = START + 2 * PERIOD
    after = plan_own(held, now, chance)
    assert encrypts(after, now) == bytes([3]) * 32
    assert decrypts(after, now) == number(2, 3, 4)
    now = START + 9 * PERIOD
    assert decrypts(plan_own(after, now, chance), now) == number(5, 6)


def test_times_of_another_boot_are_not_believed() -> None:
    ahead = plan_own((), START + 40 * PERIOD, Chance())
    chance = Chance()
    chance()
    chance()
    assert decrypts(plan_own(ahead, START, chance), START) == number(3, 4)


def test_given_secrets_take_turns_as_the_controller_says() -> None:
    held = plan_own((), START, Chance())
    own = number(1, 2)
    held = plan_given(held, START + 5, given(0, 11, 12), own)
    assert encrypts(held, START + 5) == bytes([11]) * 32
    assert decrypts(held, START + 5) == number(1, 11, 12)  # one's own still decrypts
    assert encrypts(held, START + PERIOD + 5) == bytes([11]) * 32
    now = START + PERIOD
    held = plan_given(held, now, given(11, 12, 13), own)
    assert encrypts(held, now) == bytes([12]) * 32
    assert decrypts(held, now) == number(1, 11, 12, 13)
    assert decrypts(held, START + PERIOD + 5) == number(11, 12, 13)
    assert decrypts(held, now + PERIOD) == number(12, 13)


def test_a_controller_that_says_nothing_more_leaves_what_all_replicas_have() -> None:
    one = plan_given((), START, given(10, 11, 12))
    other = plan_given((), START + 99, given(10, 11, 12))
    for now in (START + 2 * PERIOD, START + 2 * PERIOD + 50, START + 3 * PERIOD - 1):
        assert encrypts(one, now) in decrypts(other, now)
        assert encrypts(other, now) in decrypts(one, now)
    assert not any(o.begins <= START + 3 * PERIOD < o.ends for o in one)


def test_what_the_controller_names_no_more_is_forgotten_at_once() -> None:
    """Somebody may know it. Also when another process was given it: who has made it is not known then."""
    held = plan_given((), START, given(10, 11, 12))
    held = plan_given(held, START + 1, given(0, 21, 22))
    assert decrypts(held, START + 1) == number(21, 22)
    assert encrypts(held, START + 1) == bytes([21]) * 32


def test_said_again_is_no_rotation() -> None:
    first = plan_given((), START, given(10, 11, 12))
    again = plan_given(first, START + 1000, given(10, 11, 12))
    assert {one.secret: one.begins for one in again if one.secret != bytes([12]) * 32} == {
        one.secret: one.begins for one in first if one.secret != bytes([12]) * 32
    }
    was, now = (next(o for o in held if o.secret == bytes([10]) * 32) for held in (first, again))
    assert now.forgotten == was.forgotten


def test_a_ring_never_overflows_and_its_times_are_in_order() -> None:
    held: tuple[TicketSecret, ...] = ()
    for n in range(1, 60):
        held = plan_given(held, START + n, given(n - 1, n, n + 1))
        assert len(held) <= MOST
        assert encrypts(held, START + n) == bytes([n]) * 32
        assert {bytes([n + 1]) * 32} < decrypts(held, START + n)
        assert all(one.begins <= one.ends <= one.forgotten for one in held)
    assert all(a.forgotten <= b.forgotten for a, b in pairwise(held))


def test_secrets_are_not_shown() -> None:
    secret = b"not to be read by anybody at all"
    shown = repr((TicketSecrets(secret, secret, secret), TicketSecret(secret, 1, 2, 3)))
    assert secret.decode() not in shown
