"""What one worker notes of a store that fails: where it stops, why, and what became of it, also where its place is taken."""

from __future__ import annotations

import logging

import pytest

from edgefast.rate_limit.error_log import ErrorLog
from edgefast.rate_limit.error_reply import CODES, Refusal

pytestmark = pytest.mark.pure


def test_it_is_down_from_its_stop_on(caplog: pytest.LogCaptureFixture) -> None:
    log = ErrorLog()
    with caplog.at_level(logging.DEBUG, "edgefast.rate_limit"):
        for turn in range(100):
            log.on_refusal("a:1", CODES["OOM"] if turn % 2 else CODES["BUSY"], turn >= 2, turn / 10)
        assert log.down == {"a:1": "the store is busy with another script"}
        log.on_success("a:1")
        log.on_success("a:1")
    assert (log.down, log.over) == ({}, {"a:1": "serves again"})
    assert log.errors == {"oom": 50, "busy": 50}
    lines = [(one.levelname, one.getMessage().partition(": a:1")[2]) for one in caplog.records]
    assert {level for level, _ in lines} == {"DEBUG"}, "the agent tells it, once for all workers"
    assert [line for _, line in lines][-2:] == [
        " does not serve: the store is busy with another script",
        " serves again",
    ]
    assert len(lines) == 4


def test_a_primary_that_was_replaced_is_said_to_be_gone() -> None:
    log = ErrorLog()
    log.on_refusal("a:1", Refusal("connect", "Connection refused"), True, 0.0)
    log.forget("a:1")
    log.forget("b:1")
    assert (log.down, log.over) == (
        {},
        {"a:1": "has no counters any more; other servers have them"},
    )
    log.on_refusal("a:1", Refusal("connect", "Connection refused"), True, 1.0)
    assert log.over == {}, "it is down again before anybody was told"
