"""The short soak: 75 s with four kills. The long one is `PYTHONPATH=tests python -m wire.soak`."""

from __future__ import annotations

import pytest

from wire.soak.soak import run

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]


def test_nothing_is_lost_and_nothing_grows() -> None:
    report = run(75, kill=18)
    assert len(report.journal.kills) >= 4
    assert not report.judge(), report.text()
