"""Lines about a store that fails: one when it stops, one when it goes on, also where its place is taken by another."""

from __future__ import annotations

import logging

import pytest

from edgefast.ratelimit.errorlog import ErrorLog
from edgefast.ratelimit.refusal import CODES, Refusal

pytestmark = pytest.mark.pure


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.getMessage() for line in caplog.records if line.levelname == "WARNING"]


def test_one_line_when_it_stops_and_one_when_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    log = ErrorLog("limited requests pass")
    with caplog.at_level(logging.INFO, "edgefast.ratelimit"):
        for turn in range(100):
            log.on_refusal("a:1", CODES["OOM"] if turn % 2 else CODES["BUSY"], turn >= 2, turn / 10)
        log.on_success("a:1")
        log.on_success("a:1")
    assert warnings(caplog) == [
        "rate limits: a:1 does not serve: the store is busy with another script; limited requests pass",
        "rate limits: a:1 serves again",
    ]
    assert log.errors == {"oom": 50, "busy": 50}


def test_a_primary_that_was_replaced_is_said_to_be_gone(caplog: pytest.LogCaptureFixture) -> None:
    log = ErrorLog("limited requests pass")
    with caplog.at_level(logging.INFO, "edgefast.ratelimit"):
        log.on_refusal("a:1", Refusal("connect", "Connection refused"), True, 0.0)
        log.forget("a:1")
        log.forget("b:1")
    assert [line.partition(": ")[2].partition(" ")[2] for line in warnings(caplog)] == [
        "does not serve: Connection refused; limited requests pass",
        "holds no counters any more; others serve them",
    ]
