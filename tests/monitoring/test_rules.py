"""The rules file: promtool takes it, and alerts fire when they should, and not before (alerts.yaml)."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast.monitoring.alerts import ALERTS, RECORDED
from edgefast.monitoring.generate import DOCS
from monitoring.promtool import run_promtool

pytestmark = pytest.mark.pure


def test_promtool_takes_the_rules() -> None:
    said = run_promtool("check", "rules", DOCS / "monitoring" / "rules.yaml")
    assert f"SUCCESS: {len(ALERTS) + len(RECORDED)} rules found" in said


def test_alerts_fire_when_they_should() -> None:
    assert "SUCCESS" in run_promtool("test", "rules", Path(__file__).with_name("alerts.yaml"))
