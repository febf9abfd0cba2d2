"""Wires the harness into pytest: the marker, the logs of the proxy below a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wire.harness.gateway import LIVE

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder are wire tests."""
    for item in items:
        if item.path.is_relative_to(FOLDER):
            item.add_marker(pytest.mark.wire)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    """Show the end of the log of every running proxy below a failure."""
    report = yield
    if report.failed:  # type: ignore[attr-defined]
        report.sections += [(one.title, one.log_tail()) for one in LIVE]  # type: ignore[attr-defined]
    return report
