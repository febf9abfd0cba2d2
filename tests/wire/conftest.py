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
    """Below a failure: of every running proxy, which tests used its process before, and the end of its log."""
    report = yield
    if report.failed:  # type: ignore[attr-defined]
        shown = [(one.title, f"{one.past}\n{one.log_tail()}".lstrip()) for one in LIVE]
        report.sections += shown  # type: ignore[attr-defined]
    return report
