"""What who has only so much time may ask of pytest: tests that would begin later are skipped, and say so."""

from __future__ import annotations

import time

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--begin-until`."""
    parser.addoption(
        "--begin-until",
        type=float,
        metavar="EPOCH",
        help="skip tests that would begin after this time, in seconds since the epoch",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that comes too late."""
    until: float | None = item.config.getoption("--begin-until")
    if until is not None and time.time() > until:
        pytest.skip("no time left")
