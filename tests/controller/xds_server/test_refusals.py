"""Refusals: all are counted; the same one is told once an hour, and a crowd of callers a few lines a second."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from controller.xds_server.limits import REFUSAL_AGAIN, REFUSAL_LINES, REFUSAL_SUMS, REFUSALS_KEPT
from controller.xds_server.refusal import Refusals, Refused

pytestmark = pytest.mark.pure

NO = Refused("no_credential", "UNAUTHENTICATED", "a token is required")


class Clock:
    """Time that tests move."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.refusals = Refusals(lambda: self.now)

    def knock(self, peer: str = "ipv4:10.0.0.1:5", fleet: str = "", refused: Refused = NO) -> None:
        self.refusals.note(refused, peer=peer, method="/x/Delta", fleet=fleet)


@pytest.fixture(autouse=True)
def _has_received(caplog: Any) -> None:
    caplog.set_level(logging.INFO, logger="edgefast.controller.push")


def test_a_fleet_that_knocks_for_hours_is_told_once_an_hour(caplog: Any) -> None:
    """Three pods of a fleet of the mode before, each with a new port every five seconds."""
    clock = Clock()
    for at in range(2 * 720):
        for pod in range(3):
            clock.knock(f"ipv4:10.0.0.{pod}:{40000 + at}", "shop/edge")
        clock.now += 5
    assert clock.refusals.counts["no_credential"] == 2 * 720 * 3
    assert len([one for one in caplog.messages if "a token is required" in one]) == 2 * 3
    sums = [int(one.split()[0]) for one in caplog.messages if "more calls were refused" in one]
    assert len(sums) <= 2 * 720 * 5 / REFUSAL_SUMS
    assert sum(sums) + 2 * 3 + clock.refusals._unsaid == 2 * 720 * 3


def test_other_callers_and_other_causes_are_told(caplog: Any) -> None:
    clock = Clock()
    clock.knock()
    clock.knock("ipv6:[::1]:7")
    clock.knock(fleet="shop/edge")
    clock.knock(refused=Refused("slow", "UNAVAILABLE", "it does not read"))
    clock.knock()
    assert len(caplog.messages) == 4
    clock.now += REFUSAL_AGAIN
    clock.knock()
    assert len(caplog.messages) == 6  # again, and the sum of what was not told


def test_a_crowd_is_bounded_in_lines_and_in_memory(caplog: Any) -> None:
    clock = Clock()
    for at in range(2 * REFUSALS_KEPT):
        clock.knock(f"ipv4:10.1.{at // 256}.{at % 256}:9")
        clock.now += 0.01 if at < 200 else 0.2
    first = [one for one in caplog.messages[: 2 * REFUSAL_LINES] if "10.1.0." in one]
    assert len(first) == 2 * REFUSAL_LINES  # two seconds of a hundred callers each
    assert len(clock.refusals._reported) == REFUSALS_KEPT
