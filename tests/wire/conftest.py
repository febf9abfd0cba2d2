"""Wires the harness into pytest: the marker, usual fixtures, the logs of the proxy below a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from origin.recording import RecordingOrigin
from wire.harness.certificates import Authority
from wire.harness.gateway import LIVE

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    """A backend that records what it gets and answers with the target."""
    with RecordingOrigin() as running:
        yield running


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Issues the certificates of a module's tests."""
    return Authority()


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
